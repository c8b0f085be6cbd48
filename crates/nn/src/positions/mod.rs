//! Position encodings: attention itself does not know the order of its inputs.
//!
//! | module | acts on | learned | longest sequence |
//! | --- | --- | --- | --- |
//! | [`Sinusoidal`] | the embeddings, once | no | `max_len` |
//! | [`Learned`] | the embeddings, once | yes | `max_len` |
//! | [`Rotary`] | queries and keys, in every layer | no | `max_len`, which has to be raised together with [`RotaryScaling`] |
//! | [`Alibi`] | the scores, in every layer | optionally | any |
//! | [`RelativeBias`] | the scores, in every layer | yes | any |
//!
//! The first two are modules that your model calls. The last three belong to the heads of an attention module:
//! [`PositionEncoding`] chooses one of them in the configuration, [`Position`] is the module that is built.
//! [`Positions`] says at which positions the rows of a tensor are, where they do not start at 0. [`QueryOffset`] says where queries
//! stand if queries and keys differ in number, by one rule for all encodings and masks.
//!
//! The input of every attention module, layer and stack takes [`positions`](crate::AttentionContext::positions) of its tokens: gaps, texts
//! that start again at 0, drafts that compete for one place. Rotary angles, ALiBi, relative biases and windows count between them.
//! Causality does not: a token sees those that come before it in its row, whatever their positions.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_ops::backend::counting;

use crate::parameter::{select_rows, wide};

mod alibi;
mod encoding;
mod learned;
mod offset;
mod relative;
mod rotary;
mod rows;
mod sinusoidal;

pub use alibi::{Alibi, AlibiConfig};
pub(crate) use encoding::BiasSource;
pub use encoding::{Position, PositionEncoding};
pub use learned::{Learned, LearnedConfig};
pub use offset::QueryOffset;
pub(crate) use offset::ResolvedOffset;
pub use relative::{RelativeBias, RelativeBiasConfig};
pub use rotary::{Rotary, RotaryAxes, RotaryConfig, RotaryLayout, RotaryScaling, YarnScaling};
pub use rows::Positions;
use rows::TableRows;
pub(crate) use rows::check_lengths;
pub use sinusoidal::{Sinusoidal, SinusoidalConfig, SinusoidalLayout};

fn add_rows(module: &str, x: Tensor<3>, table: Tensor<2>, positions: &Positions) -> Tensor<3> {
    let [batch, len, _] = x.dims();
    let [max_len, d_model] = table.dims();
    let rows = positions.table_rows(module, [batch, len], max_len);
    // In a reshape, Burn takes 0 to mean the previous size.
    if batch == 0 || len == 0 {
        return x;
    }
    // A fixed table is not a parameter, so casting a model leaves it alone; only the rows that are needed are cast here.
    let dtype = x.dtype();
    let rows = match rows {
        TableRows::Together(offset) => {
            let rows = table.narrow(0, offset, len).cast(dtype);
            return x + rows.unsqueeze();
        }
        rows => indices(rows.listed(len), &x.device()),
    };
    x + select_rows(table, |table| table.select(0, rows))
        .cast(dtype)
        .reshape([batch, len, d_model])
}

/// A fixed table in the default type of `device`, but at least in f32: modules in f32 read it too.
fn fixed_table(numbers: TensorData, device: &Device) -> Tensor<2> {
    let dtype = wide(device.settings().float_dtype.into());
    Tensor::from_data(numbers, (device, dtype))
}

/// Indices or counts of tokens or rows, as a tensor.
pub(crate) fn indices(rows: impl IntoIterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i64> = rows.into_iter().map(|row| row as i64).collect();
    Tensor::from_data(rows.as_slice(), counting(device))
}
