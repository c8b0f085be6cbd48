//! Positions as rotations of queries and keys.

mod config;
mod rotation;
mod scaling;

pub use config::{RotaryConfig, RotaryLayout};
pub use rotation::Rotary;
pub use scaling::RotaryScaling;
