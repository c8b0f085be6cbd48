//! Positions as rotations of queries and keys.

mod config;
mod rotation;
mod scaling;

pub use burn_attn_ops::RotaryLayout;
pub use config::{RotaryAxes, RotaryConfig};
pub use rotation::Rotary;
pub use scaling::{RotaryScaling, YarnScaling};
