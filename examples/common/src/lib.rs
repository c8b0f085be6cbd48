//! What the examples share.

pub mod devices;
#[cfg(feature = "train")]
mod display;
pub mod error;
pub mod exit;
pub mod files;
pub mod fnv;
#[cfg(feature = "train")]
pub mod input;
#[cfg(feature = "train")]
pub mod learner;
pub mod lock;
pub mod memory;
pub mod pictures;
#[cfg(feature = "train")]
pub mod run_folder;
pub mod text;
#[cfg(feature = "train")]
pub mod training;
#[cfg(feature = "train")]
pub mod vocabulary;
