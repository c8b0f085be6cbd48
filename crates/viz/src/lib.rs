#![doc = include_str!("../README.md")]
//!
//! # Details
//! An [`AttentionMap`] holds the weights of one attention layer, `[heads, queries, keys]`, and its tokens; [`render_text`], [`render_svg`] and
//! [`AttentionPage`] draw it. An [`ImageMap`] draws what a model saw in an image: what a query read, boxes, classes of pixels. The output is deterministic: the same map gives the same bytes. Heads are counted from 0 in code and from 1
//! in pictures.
//!
//! # Source
//! The views follow BertViz (Vig, 2019, <https://arxiv.org/abs/1906.05714>): the overview of every layer and head is its
//! model view, the lines between tokens its head view.

mod color;
mod error;
mod escape;
mod image_map;
mod label;
mod limits;
mod map;
mod page;
mod svg;
mod text;

pub use color::{Background, ColorScale};
pub use error::{MapError, MapWeight};
pub use image_map::{ImageMap, class_color};
pub use map::AttentionMap;
pub use page::{AttentionGroup, AttentionPage};
pub use svg::{SvgOptions, render_svg};
pub use text::{TextOptions, render_text};
