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

use burn::tensor::{Int, Tensor, TensorData};

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

/// `x` plus the rows of a table at its positions.
fn add_rows(module: &str, x: Tensor<3>, table: Tensor<2>, positions: &Positions) -> Tensor<3> {
    let [batch, len, _] = x.dims();
    let [max_len, d_model] = table.dims();
    match positions {
        Positions::Offset(offset) => {
            check_len(module, *offset, len, max_len);
            x + table.narrow(0, *offset, len).unsqueeze()
        }
        Positions::Offsets(offsets) => {
            if let [first, rest @ ..] = offsets.as_slice()
                && rest.len() + 1 == batch
                && rest.iter().all(|other| other == first)
            {
                return add_rows(module, x, table, &Positions::Offset(*first));
            }
            assert!(
                offsets.len() == batch,
                "{module}: {} offsets for {batch} sequences",
                offsets.len()
            );
            for &offset in offsets {
                check_len(module, offset, len, max_len);
            }
            let rows = offsets.iter().flat_map(|&offset| offset..offset + len);
            let rows: Vec<i64> = rows.map(|row| row as i64).collect();
            let rows = TensorData::new(rows, [batch * len]);
            let rows = Tensor::<1, Int>::from_data(rows, &x.device());
            x + table.select(0, rows).reshape([batch, len, d_model])
        }
    }
}

/// Panics unless positions `offset .. offset + len` are within `max_len`.
fn check_len(module: &str, offset: usize, len: usize, max_len: usize) {
    assert!(
        offset.saturating_add(len) <= max_len,
        "{module}: {len} tokens from position {offset} on need {} positions, but there are {max_len}",
        offset.saturating_add(len)
    );
}
