//! Models that other people trained, from a folder as Hugging Face's `transformers` saves it: `config.json` and the weights.
//!
//! Every family has a `from_pretrained`. A field of `config.json` is used, known to change nothing, or refused by name; so is a tensor.

mod config_file;
mod error;
mod language_model;

pub(crate) use config_file::ConfigFile;
pub use error::PretrainedError;
pub(crate) use language_model::load;
