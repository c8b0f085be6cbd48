//! Positions: attention itself does not know the order of its inputs.

mod learned;
mod sinusoidal;

pub use learned::{Learned, LearnedConfig};
pub use sinusoidal::{Sinusoidal, SinusoidalConfig};

/// Panics unless positions `offset .. offset + len` are within `max_len`.
fn check_len(module: &str, offset: usize, len: usize, max_len: usize) {
    assert!(
        offset.saturating_add(len) <= max_len,
        "{module}: {len} tokens from position {offset} on need {} positions, but there are {max_len}",
        offset.saturating_add(len)
    );
}
