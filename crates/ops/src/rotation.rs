//! Rotary positions for the rows of a tensor.

use burn::{backend::Dispatch, tensor::Tensor};
pub use burn_attn_kernels_cpu::tiled::RotaryLayout;

use crate::backend::{AttentionOps, Rotation};

/// Rotates the pairs of numbers in every row of `x` by the angles of its position.
///
/// ```text
/// first'[i]  = first[i] · cos[offset + row][i] − second[i] · sin[offset + row][i]
/// second'[i] = second[i] · cos[offset + row][i] + first[i] · sin[offset + row][i]
/// ```
///
/// Numbers beyond the pairs are left as they are. The gradient of `x` is the gradient of the result, rotated by the
/// inverse angle. The tables get no gradient.
///
/// # Shapes
///
/// - `x`, result: `[batch, heads, len, d_head]`; in memory, the result is laid out as `[batch, len, heads, d_head]`
/// - `cos`, `sin`: `[positions, pairs]`, where `2 · pairs` is at most `d_head`
/// - `offsets`: one number for all sequences, or one for each
///
/// # Panics
///
/// When the tables differ in shape or have too many pairs, a row is beyond them, or the number of offsets is neither 1 nor
/// `batch`.
///
/// # Cost
///
/// `6 · pairs` operations per row. On the CPU, in f32 and f64, one pass over memory, and `x` may be a view; elsewhere two
/// passes, four for [`Interleaved`](RotaryLayout::Interleaved).
///
/// # Source
///
/// Su et al., "RoFormer: enhanced transformer with rotary position embedding" (arXiv:2104.09864), equation 34. PyTorch
/// equivalent: `apply_rotary_pos_emb` of Hugging Face's `transformers`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::{RotaryLayout, rotate};
///
/// let device = Device::default();
/// let [cos, sin] = [f32::cos, f32::sin].map(|wave| {
///     Tensor::<2>::from_data([[wave(0.0)], [wave(1.0)]], &device)
/// });
/// let x = Tensor::<4>::from_data([[[[1.0, 0.0]]]], &device);
/// let rotated = rotate(x, cos, sin, vec![1], RotaryLayout::HalfSplit);
/// assert_eq!(rotated.into_data().to_vec::<f32>().unwrap(), [0.5403023, 0.84147096]);
/// ```
pub fn rotate(
    x: Tensor<4>,
    cos: Tensor<2>,
    sin: Tensor<2>,
    mut offsets: Vec<usize>,
    layout: RotaryLayout,
) -> Tensor<4> {
    let [batch, heads, len, d_head] = x.dims();
    let [positions, pairs] = cos.dims();
    let (cosines, sines) = (cos.dims(), sin.dims());
    assert!(
        cosines == sines,
        "rotate: cosines are {cosines:?}, but sines are {sines:?}"
    );
    assert!(
        2 * pairs <= d_head,
        "rotate: {pairs} pairs do not fit into {d_head} numbers"
    );
    assert!(
        offsets.len() == 1 || offsets.len() == batch,
        "rotate: {} offsets for {batch} sequences",
        offsets.len()
    );
    for &offset in &offsets {
        let needed = offset.saturating_add(len);
        assert!(
            needed <= positions,
            "rotate: {len} rows from position {offset} on need {needed} positions, but there are {positions}"
        );
    }
    if batch == 0 || heads == 0 || len == 0 || pairs == 0 {
        return x;
    }
    // Sequences of equal length have one offset, which needs no gather.
    if offsets.iter().all(|offset| *offset == offsets[0]) {
        offsets.truncate(1);
    }
    let rotation = Rotation {
        offsets,
        layout,
        inverse: false,
    };
    let [cos, sin] = [cos, sin].map(Tensor::into_dispatch);
    let rotated = <Dispatch as AttentionOps>::rotate(x.into_dispatch(), cos, sin, rotation);
    Tensor::from_dispatch(rotated)
}
