//! Rotary positions by plain tensor operations.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{Device, FloatTensor},
    },
    tensor::{DType, Shape, TensorData},
};
use burn_attn_kernels_cpu::tiled::RotaryLayout;

use super::{
    dtype::{cast, counting_dtype},
    part::narrow,
};
use crate::backend::Rotation;

/// See [`rotate`](crate::rotate).
pub(crate) fn rotate<B: Backend>(
    x: FloatTensor<B>,
    cos: FloatTensor<B>,
    sin: FloatTensor<B>,
    rotation: &Rotation,
) -> FloatTensor<B> {
    let [_, _, len, d_head] = x.shape().dims::<4>();
    let [_, pairs] = cos.shape().dims::<2>();
    let width = 2 * pairs;
    let [cos, sin] = [cos, sin].map(|table| {
        let rows = rows::<B>(table, &rotation.offsets, len, x.dtype());
        let [count, _] = rows.shape().dims::<2>();
        B::float_reshape(rows, Shape::new([count / len, len, 1, pairs]))
    });
    let sin = match rotation.inverse {
        true => B::float_neg(sin),
        false => sin,
    };

    // The memory order of a projection, so that merging the heads needs no copy.
    let x = B::float_swap_dims(x, 1, 2);
    let kept = (width < d_head).then(|| narrow::<B>(x.clone(), 3, &(width..d_head)));
    let x = narrow::<B>(x, 3, &(0..width));
    let mut parts = match rotation.layout {
        RotaryLayout::HalfSplit => halves::<B>(x, cos, sin),
        RotaryLayout::Interleaved => {
            let halves = halves::<B>(transpose::<B>(x, [pairs, 2]), cos, sin);
            vec![transpose::<B>(B::float_cat(halves, 3), [2, pairs])]
        }
    };
    parts.extend(kept);
    B::float_swap_dims(B::float_cat(parts, 3), 1, 2)
}

/// The rows of a table that sequences of `len` tokens need, sequence after sequence: `[len, pairs]` if all start at one
/// position, `[batch · len, pairs]` otherwise.
pub(crate) fn rows<B: Backend>(
    table: FloatTensor<B>,
    offsets: &[usize],
    len: usize,
    dtype: DType,
) -> FloatTensor<B> {
    let rows = match offsets {
        [offset] => narrow::<B>(table, 0, &(*offset..*offset + len)),
        offsets => {
            let rows = offsets.iter().flat_map(|&offset| offset..offset + len);
            let rows: Vec<i64> = rows.map(|row| row as i64).collect();
            let device: Device<B> = table.device();
            let int_dtype = counting_dtype::<B>(&device);
            let rows = TensorData::new(rows, [offsets.len() * len]).convert_dtype(int_dtype.into());
            B::float_select(table, 0, B::int_from_data(rows, &device))
        }
    };
    cast::<B>(rows, dtype.into())
}

/// Both halves of `[batch, len, heads, 2 · pairs]`, rotated.
fn halves<B: Backend>(
    x: FloatTensor<B>,
    cos: FloatTensor<B>,
    sin: FloatTensor<B>,
) -> Vec<FloatTensor<B>> {
    let [_, _, _, width] = x.shape().dims::<4>();
    let first = narrow::<B>(x.clone(), 3, &(0..width / 2));
    let second = narrow::<B>(x, 3, &(width / 2..width));
    let [real, imaginary] = [&first, &second]
        .map(|half| [&cos, &sin].map(|wave| B::float_mul(half.clone(), wave.clone())));
    let ([a_cos, a_sin], [b_cos, b_sin]) = (real, imaginary);
    vec![B::float_sub(a_cos, b_sin), B::float_add(b_cos, a_sin)]
}

/// The last dimension, read as a matrix of these sizes, transposed: `[pairs, 2]` turns pairs into halves, `[2, pairs]` back.
///
/// One copy of whole rows; slices of every second number are several times slower on CPUs, and so are their gradients.
fn transpose<B: Backend>(x: FloatTensor<B>, [rows, columns]: [usize; 2]) -> FloatTensor<B> {
    let [batch, len, heads, width] = x.shape().dims::<4>();
    let matrices = B::float_reshape(x, Shape::new([batch, len, heads, rows, columns]));
    let transposed = B::float_swap_dims(matrices, 3, 4);
    B::float_reshape(transposed, Shape::new([batch, len, heads, width]))
}
