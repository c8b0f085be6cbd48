//! What the examples share.

pub mod devices;
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
pub mod text;
#[cfg(feature = "train")]
pub mod vocabulary;
