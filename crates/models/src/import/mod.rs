#![doc = include_str!("../../MIGRATING.md")]

mod attention;
mod burn_nn;
mod checkpoint;
mod part;
mod transformer;

pub use burn_nn::multi_head_attention;
pub use checkpoint::{Checkpoint, burn_nn, burn_nn_record, pytorch, table};
pub use part::{Import, Library};
