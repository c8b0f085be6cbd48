//! The heads of a packed projection, as views.

use burn::{
    backend::{Backend, TensorMetadata, tensor::FloatTensor},
    tensor::Shape,
};

use super::part::narrow;

/// See [`split_heads`](crate::split_heads).
pub(crate) fn split<B: Backend>(x: FloatTensor<B>, heads: &[usize]) -> Vec<FloatTensor<B>> {
    let [batch, len, width] = x.shape().dims::<3>();
    let all: usize = heads.iter().sum();
    let x = B::float_reshape(x, Shape::new([batch, len, all, width / all]));
    let x = B::float_swap_dims(x, 1, 2);
    let mut first = 0;
    let parts = heads.iter().map(|&heads| {
        let range = first..first + heads;
        first = range.end;
        narrow::<B>(x.clone(), 1, &range)
    });
    parts.collect()
}
