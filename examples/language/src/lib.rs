#![doc = include_str!("../README.md")]

pub mod atom_map;
pub mod conversation;
pub mod error;
pub mod input;
pub mod passages;
pub mod pictures;
pub mod sentences;
pub mod smiles;
pub mod template;
pub mod text_index;
pub mod tokens;
pub mod weights;

pub use error::Error;
