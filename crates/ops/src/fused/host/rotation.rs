//! Rotary positions over tensors in host memory.

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::Shape,
};
use burn_attn_kernels_cpu::tiled::{self, Execution};

use super::tensors::{Host, HostElement, elements, row_major, rows, with_rows};
use crate::{backend::Rotation, composed};

pub(super) fn by_kernel<B: Host, T: HostElement<Real = T>>(
    x: FloatTensor<B>,
    mut tables: [FloatTensor<B>; 2],
    rotation: Rotation,
) -> FloatTensor<B> {
    let [batch, heads, len, dim] = x.shape().dims::<4>();
    let [_, pairs] = tables[0].shape().dims::<2>();
    let mut offsets = rotation.offsets;
    if tables.iter().any(|table| table.dtype() != x.dtype()) {
        // Only the rows that are needed are cast.
        tables = tables.map(|table| composed::rotation::rows::<B>(table, &offsets, len, x.dtype()));
        offsets = (0..offsets.len()).map(|item| item * len).collect();
    }
    let x = with_rows::<B, T>(&x);
    let [cos, sin] = tables.each_ref().map(row_major::<B, T>);
    let kernel = tiled::Rotation::<T> {
        x: rows::<B, T>(&x),
        sizes: [batch, heads, len, dim],
        cos: elements::<B, T>(&cos),
        sin: elements::<B, T>(&sin),
        pairs,
        offsets: &offsets,
        layout: rotation.layout,
        inverse: rotation.inverse,
    };
    let mut out = vec![T::default(); batch * heads * len * dim];
    kernel.run(&mut out, Execution::available());
    // The memory order of a projection, so that merging the heads needs no copy.
    let out = B::float_tensor(out, Shape::new([batch, len, heads, dim]));
    B::float_swap_dims(out, 1, 2)
}
