//! Dropout of any tensor, cheap enough for every sublayer.

use burn::{
    backend::Dispatch,
    tensor::{DType, Tensor},
};
use burn_attn_kernels_cpu::AttentionDropout;

use crate::backend::AttentionOps;

/// Sets each number of a tensor of any shape to zero with probability `probability` and scales the others by
/// `1 / (1 − probability)`. Panics when `probability` is not in `[0, 1)`.
///
/// The CPU backends draw from the counter-based generator of attention dropout, which is cheaper than Burn's generator: the
/// same `seed` keeps the same numbers. Other backends draw from the generator of the device and ignore `seed`.
/// Take a seed for every call from [`next_dropout_seed`](crate::next_dropout_seed): with a constant, all steps and all tensors of equal shape keep the same
/// numbers. [`seed`](crate::seed) makes runs repeatable on both. Every call drops, even outside training.
///
/// # Cost
///
/// A few operations per number; one more tensor of the same size, kept for the backward pass. Half precision is scaled in f32,
/// which takes a tensor in f32: in bf16, a scale of `1 / 0.9` would make the mean of all numbers 0.16 % smaller.
///
/// # Source
///
/// Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors" (arXiv:1207.0580). PyTorch
/// equivalent: `torch.nn.functional.dropout`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::{dropout, next_dropout_seed};
///
/// let x = Tensor::<2>::ones([64, 64], &Device::default());
/// let dropped = dropout(x, 0.5, next_dropout_seed());
/// assert!(dropped.to_data().iter::<f32>().all(|x| x == 0.0 || x == 2.0));
/// assert!((dropped.mean().into_scalar::<f32>() - 1.0).abs() < 0.1);
/// ```
pub fn dropout<const D: usize>(x: Tensor<D>, probability: f64, seed: u64) -> Tensor<D> {
    assert!(
        (0.0..1.0).contains(&probability),
        "dropout: probability must be in [0, 1), got {probability}"
    );
    if probability == 0.0 || x.shape().num_elements() == 0 {
        return x;
    }
    let like = x.clone().without_autodiff();
    let dropout = AttentionDropout { probability, seed };
    let factors = <Dispatch as AttentionOps>::dropout_factors(like.into_dispatch(), dropout);
    // The factors are constants, without autodiff: only `x` gets a gradient.
    let dropped = x * Tensor::from_dispatch(factors);
    match dropped.dtype() {
        dtype @ (DType::F16 | DType::BF16) => {
            (dropped.cast(DType::F32) * dropout.kept_scale()).cast(dtype)
        }
        _ => dropped,
    }
}
