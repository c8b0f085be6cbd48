#![doc = include_str!("../README.md")]

pub mod atom_map;
pub mod batches;
#[cfg(feature = "hub")]
pub mod downloads;
pub mod encoder;
pub mod fine_tuning;
pub mod index_file;
pub mod passages;
pub mod question_answering;
pub mod questions;
pub mod reviews;
pub mod sentences;
pub mod sentiment;
pub mod smiles;
pub mod text_index;
pub mod tokens;
pub mod weights;

pub use example_common::{
    error::{self, Error},
    input,
};
