//! Positions: attention itself does not know the order of its inputs.
//!
//! | module | acts on | learned |
//! | --- | --- | --- |
//! | [`Sinusoidal`] | the embeddings, once | no |
//! | [`Learned`] | the embeddings, once | yes |
//! | [`Rotary`] | queries and keys, in every layer | no |
//! | [`Alibi`] | the scores, in every layer | on request |
//! | [`RelativeBias`] | the scores, in every layer | yes |
//!
//! The last three belong to the heads of an attention module: [`PositionEncoding`] is how its configuration names one of
//! them, [`Position`] is the one that was built.

mod alibi;
mod encoding;
mod learned;
mod relative;
mod rotary;
mod rows;
mod sinusoidal;

pub use alibi::{Alibi, AlibiConfig};
pub use encoding::{Position, PositionEncoding};
pub use learned::{Learned, LearnedConfig};
pub use relative::{RelativeBias, RelativeBiasConfig};
pub use rotary::{Rotary, RotaryConfig, RotaryLayout, RotaryScaling};
pub use rows::Positions;
pub use sinusoidal::{Sinusoidal, SinusoidalConfig};

/// Panics unless positions `offset .. offset + len` are within `max_len`.
fn check_len(module: &str, offset: usize, len: usize, max_len: usize) {
    assert!(
        offset.saturating_add(len) <= max_len,
        "{module}: {len} tokens from position {offset} on need {} positions, but there are {max_len}",
        offset.saturating_add(len)
    );
}
