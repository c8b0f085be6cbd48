//! What the examples share.

pub mod devices;
pub mod exit;
pub mod files;
pub mod lock;
pub mod pictures;
