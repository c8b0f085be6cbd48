//! Models that other people trained, from a folder as Hugging Face's `transformers` saves it: `config.json` and the weights.
//!
//! Every family has a `from_pretrained`. A field of `config.json` is used, known to change nothing, or refused by name; so is a tensor.
//!
//! # Names on the Hub
//!
//! With the feature `hub`, what is no folder can be a name on the Hugging Face Hub: `"sentence-transformers/all-MiniLM-L6-v2"`, or
//! `"openai-community/gpt2@607a30d783dfa663caf39e06633721c8d4cfcd7e"` with a branch, a tag or a commit; without one it is `main`.
//!
//! The files are those of the local cache that the Python library `huggingface_hub` has too. What is complete there is used as it is, without a
//! network: `main` then is what it was when it was downloaded. Otherwise `config.json`, `tokenizer.json` if there is one, and the weights
//! are downloaded (`model.safetensors`, its shards, or `pytorch_model.bin`); what breaks off goes on at the next call.
//!
//! | variable | what it says |
//! | --- | --- |
//! | `HF_HUB_CACHE` | the cache; else it is `hub` in `HF_HOME`, and that is `~/.cache/huggingface` |
//! | `HF_HUB_OFFLINE` | `1`: nothing is downloaded |
//! | `HF_TOKEN` | who asks, for models that not everybody may have; else it is the file `token` in `HF_HOME` |
//! | `HF_ENDPOINT` | another server |

mod config_file;
mod error;
mod fields;
#[cfg(feature = "hub")]
mod hub;
mod language_model;
mod source;
#[cfg(feature = "tokenizers")]
mod tokenizer;

pub(crate) use config_file::{ConfigFile, MOST_POSITIONS};
pub use error::PretrainedError;
pub(crate) use language_model::load;
#[cfg(feature = "tokenizers")]
pub use tokenizer::{Tokenizer, tokenizer};
