//! A bias by distance as a bias of pairs.

use burn::{
    backend::{Backend, TensorMetadata, tensor::FloatTensor},
    tensor::{Shape, Slice},
};

use super::part::narrow;

/// The distance bias `[batch or 1, heads_q, len_q + len_kv − 1]` of every pair, `[batch or 1, heads_q, len_q, len_kv]`.
///
/// Entry `(i, j)` is number `len_q − 1 − i + j` of the reversed bias: every row is the one above, moved by one. The same
/// rows appear in `len_q` copies of the bias, one after the other, when they are read in rows that are one number shorter.
/// This reading takes no indices, and its gradient is made of plain sums: the gradient of a selection is one loop over all pairs in
/// each head, which GPUs do not parallelise, and which Mesa's software driver leaves after 65,535 rounds.
///
/// Source: the relative shift of Transformer-XL (arXiv:1901.02860), appendix B.
pub(crate) fn relative_shift<B: Backend>(
    distance: FloatTensor<B>,
    len_q: usize,
    len_kv: usize,
) -> FloatTensor<B> {
    let [batch, heads_q, len] = distance.shape().dims::<3>();
    let reversed = reversed::<B>(distance);
    if len_q == 1 {
        return B::float_reshape(reversed, Shape::new([batch, heads_q, 1, len_kv]));
    }
    let copies = B::float_reshape(reversed, Shape::new([batch, heads_q, 1, len]));
    let copies = B::float_expand(copies, Shape::new([batch, heads_q, len_q, len]));
    let copies = B::float_reshape(copies, Shape::new([batch, heads_q, len_q * len]));
    let first = len_q - 1;
    let rows = narrow::<B>(copies, 2, &(first..first + len_q * (len - 1)));
    let rows = B::float_reshape(rows, Shape::new([batch, heads_q, len_q, len - 1]));
    narrow::<B>(rows, 3, &(0..len_kv))
}

/// `[batch, heads, len]` from its end to its start.
///
/// By a step of −1: Burn 0.22.1's fusion records `float_flip` as an operation on integers, which a remote server refuses.
pub(crate) fn reversed<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let backwards = Slice::with_step(0, None, -1);
    B::float_slice(x, &[Slice::full(), Slice::full(), backwards])
}
