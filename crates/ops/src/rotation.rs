//! Rotary positions for the rows of a tensor.

use core::ops::Range;

use burn::{
    backend::{
        Backend, Dispatch, TensorMetadata, get_or_init_device_settings,
        tensor::{Device, FloatTensor},
    },
    tensor::{DType, FloatDType, Shape, Slice, Tensor, TensorData},
};
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
/// opposite angle; the tables get none.
///
/// # Shapes
///
/// - `x`, result: `[batch, heads, len, d_head]`; in memory, the result is laid out as `[batch, len, heads, d_head]`
/// - `cos`, `sin`: `[positions, pairs]`, where `2 · pairs` is at most `d_head`
/// - `offsets`: one for all sequences, or `batch` of them
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
    assert!(
        cos.dims() == sin.dims(),
        "rotate: cosines are {:?}, but sines are {:?}",
        cos.dims(),
        sin.dims()
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
        assert!(
            offset.saturating_add(len) <= positions,
            "rotate: {len} rows from position {offset} on need {} positions, but there are {positions}",
            offset.saturating_add(len)
        );
    }
    if batch == 0 || heads == 0 || len == 0 || pairs == 0 {
        return x;
    }
    // One offset needs no gather: every step of sequences of equal length.
    if offsets.iter().all(|offset| *offset == offsets[0]) {
        offsets.truncate(1);
    }
    let rotation = Rotation {
        offsets,
        layout,
        opposite: false,
    };
    Tensor::from_dispatch(<Dispatch as AttentionOps>::rotate(
        x.into_dispatch(),
        cos.into_dispatch(),
        sin.into_dispatch(),
        rotation,
    ))
}

/// The rotation by plain tensor operations.
pub(crate) fn composed<B: Backend>(
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
    let sin = if rotation.opposite {
        B::float_neg(sin)
    } else {
        sin
    };

    // The memory order of a projection, so that merging the heads needs no copy.
    let x = B::float_swap_dims(x, 1, 2);
    let kept = (width < d_head).then(|| numbers::<B>(x.clone(), width..d_head));
    let x = if width < d_head {
        numbers::<B>(x, 0..width)
    } else {
        x
    };
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
        [offset] => B::float_slice(table, &[Slice::from(*offset..*offset + len), Slice::full()]),
        offsets => {
            let rows = offsets.iter().flat_map(|&offset| offset..offset + len);
            let rows: Vec<i64> = rows.map(|row| row as i64).collect();
            let device: Device<B> = table.device();
            let int_dtype = get_or_init_device_settings::<B>(&device).int_dtype;
            let rows = TensorData::new(rows, [offsets.len() * len]).convert_dtype(int_dtype.into());
            B::float_select(table, 0, B::int_from_data(rows, &device))
        }
    };
    if rows.dtype() == dtype {
        rows
    } else {
        B::float_cast(rows, FloatDType::from(dtype))
    }
}

/// Both halves of `[batch, len, heads, 2 · pairs]`, rotated.
fn halves<B: Backend>(
    x: FloatTensor<B>,
    cos: FloatTensor<B>,
    sin: FloatTensor<B>,
) -> Vec<FloatTensor<B>> {
    let [_, _, _, width] = x.shape().dims::<4>();
    let first = numbers::<B>(x.clone(), 0..width / 2);
    let second = numbers::<B>(x, width / 2..width);
    let [real, imaginary] = [&first, &second]
        .map(|half| [&cos, &sin].map(|wave| B::float_mul(half.clone(), wave.clone())));
    let ([a_cos, a_sin], [b_cos, b_sin]) = (real, imaginary);
    vec![B::float_sub(a_cos, b_sin), B::float_add(b_cos, a_sin)]
}

/// A range of the numbers of every row.
fn numbers<B: Backend>(x: FloatTensor<B>, range: Range<usize>) -> FloatTensor<B> {
    let full = Slice::full();
    B::float_slice(x, &[full, full, full, Slice::from(range)])
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
