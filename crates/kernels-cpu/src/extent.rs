//! How many elements sizes and strides span, saturating: a product that wraps around would fit any buffer.

/// Number of elements of a contiguous tensor of this shape.
pub(crate) fn elements<const N: usize>(shape: [usize; N]) -> usize {
    let sizes = shape.into_iter();
    sizes.fold(1, |product: usize, size| product.saturating_mul(size))
}

/// The end of `count` elements that begin at these indices along axes with these strides.
#[inline(always)]
pub(crate) fn reach<const N: usize>(
    indices: [usize; N],
    strides: [usize; N],
    count: usize,
) -> usize {
    let axes = indices.into_iter().zip(strides);
    axes.fold(count, |end, (index, stride)| {
        end.saturating_add(index.saturating_mul(stride))
    })
}

/// The strides of row-major batch items, heads and rows.
pub(crate) fn row_major(heads: usize, len: usize, dim: usize) -> [usize; 3] {
    [elements([heads, len, dim]), elements([len, dim]), dim]
}
