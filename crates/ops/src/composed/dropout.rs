//! Which numbers dropout keeps.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{Device, FloatTensor},
    },
    tensor::{Distribution, FloatDType, TensorData},
};
use burn_attn_kernels_cpu::Dropout;

use super::{cast, float_dtype};

/// 1 for the attention weights that dropout keeps, 0 for the others.
///
/// The numbers come from the counter-based generator of the contract, drawn on the host: the same on every backend.
pub(super) fn kept<B: Backend>(
    dropout: Dropout,
    shape: [usize; 4],
    device: &Device<B>,
    dtype: FloatDType,
) -> FloatTensor<B> {
    let [batch, heads_q, len_q, len_kv] = shape;
    let mut factors = vec![0.0; shape.iter().product()];
    let mut rows = factors.chunks_exact_mut(len_kv);
    for item in 0..batch {
        for head in 0..heads_q {
            for (query, row) in rows.by_ref().take(len_q).enumerate() {
                dropout.row(item, head, query).fill(row, 1.0);
            }
        }
    }
    let data = TensorData::new(factors, shape);
    cast::<B>(B::float_from_data(data, device), dtype)
}

/// Factors for a tensor of any shape, from the same generator; each run of [`RUN`] numbers is one of its rows.
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) fn factors_of_host<B: Backend>(
    like: FloatTensor<B>,
    dropout: Dropout,
) -> FloatTensor<B> {
    /// Long enough that hashing the row costs nothing.
    const RUN: usize = 4096;
    let shape = like.shape();
    let mut factors = vec![0.0; shape.num_elements()];
    let dtype = float_dtype(like.dtype());
    // f64 has a scale that f32 would round.
    let (filled, scale) = match dtype {
        FloatDType::F64 => (1.0, Some(dropout.kept_scale())),
        _ => (dropout.kept_scale() as f32, None),
    };
    for (row, run) in factors.chunks_mut(RUN).enumerate() {
        dropout.row(0, 0, row).fill(run, filled);
    }
    let data = TensorData::new(factors, shape);
    let factors = cast::<B>(B::float_from_data(data, &like.device()), dtype);
    match scale {
        Some(scale) => B::float_mul_scalar(factors, scale.into()),
        None => factors,
    }
}

/// Factors for a tensor of any shape, from the generator of its device.
pub(crate) fn factors_of_device<B: Backend>(
    like: FloatTensor<B>,
    dropout: Dropout,
) -> FloatTensor<B> {
    let keeps = Distribution::Bernoulli(1.0 - dropout.probability);
    let dtype = float_dtype(like.dtype());
    let kept = B::float_random(like.shape(), keeps, &like.device(), dtype);
    B::float_mul_scalar(kept, dropout.kept_scale().into())
}
