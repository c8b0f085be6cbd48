//! Pictures of attention: which token looks at which, as terminal text, as an SVG, or as an interactive page.
//!
//! Everything starts from an [`AttentionMap`]: the weights of one attention layer, `[heads, queries, keys]`, with the
//! tokens they belong to. It is plain data, so the weights may come from any framework:
//!
//! ```
//! use burn_attn_viz::{AttentionMap, TextOptions, render_text};
//!
//! let tokens = || ["le", "chat", "dort"].map(String::from).to_vec();
//! let weights = vec![
//!     0.9, 0.1, 0.0, // "le" looks at "le" and a little at "chat"
//!     0.2, 0.7, 0.1, // "chat" looks mostly at itself
//!     0.0, 0.8, 0.2, // "dort" looks at "chat"
//! ];
//! let map = AttentionMap::new("encoder, layer 1", tokens(), tokens(), weights)?;
//! assert_eq!(map.heads(), 1);
//!
//! let picture = render_text(&map, 0, &TextOptions::default());
//! assert!(picture.contains("dort      ████ ░░░░"));
//! # Ok::<(), burn_attn_viz::MapError>(())
//! ```
//!
//! | to look | use | to get |
//! | --- | --- | --- |
//! | in the terminal, while training | [`render_text`] | shade blocks, or 24-bit colour |
//! | in a paper or a README | [`render_svg`] | one standalone SVG, one head or all |
//! | at a whole model, with the mouse | [`AttentionPage`] | one HTML file, no network |
//!
//! The output is deterministic: the same map gives the same bytes. Heads are counted from 0 in code and from 1 in
//! pictures.
//!
//! # Source
//! The views follow BertViz (Vig, 2019, <https://arxiv.org/abs/1906.05714>): the overview of every layer and head is its
//! model view, the lines between tokens its head view.

mod color;
mod error;
mod escape;
mod label;
mod limits;
mod map;
mod page;
mod svg;
mod text;

pub use color::{Background, ColorScale};
pub use error::MapError;
pub use map::AttentionMap;
pub use page::{AttentionGroup, AttentionPage};
pub use svg::{SvgOptions, render_svg};
pub use text::{TextOptions, render_text};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
