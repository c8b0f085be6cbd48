//! The scores: scale, softcap, bias and mask, in the order of the contract.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{FloatDType, Shape, Slice},
};

use super::{
    dtype::{cast, reshape},
    hidden::Hidden,
    part::{Part, narrow},
    scalars::{cap, times_scalar},
};
use crate::backend::ScoreInputs;

/// What masked scores were computed from.
pub(crate) struct Terms<B: Backend> {
    /// The ratios of the scores to the softcap, if there is one.
    pub(crate) ratios: Option<FloatTensor<B>>,
    /// True where a pair is hidden, of the shape of the scores.
    pub(crate) hidden: Option<BoolTensor<B>>,
    /// The query, scaled, with zeros for rows that see nothing: `[batch, heads_kv, heads_q / heads_kv · len_q, dim_qk]`.
    pub(crate) query: FloatTensor<B>,
    /// The key, with zeros for those that no query sees: `[batch, heads_kv, len_kv, dim_qk]`.
    pub(crate) key: FloatTensor<B>,
    /// Keys that no query sees: zeros in the key, and to be set to zero in the value.
    pub(crate) unseen: Option<BoolTensor<B>>,
    /// Rows without visible keys: zeros in the query, and to be set to zero in the output, or in its gradient.
    pub(crate) rows_without_keys: Option<BoolTensor<B>>,
}

/// The scores of one part of a call, `[batch, heads_q, len_q, len_kv]`, −∞ where hidden: from the
/// [`aligned`](super::part::aligned) operands of the part, computed in `dtype`.
pub(crate) fn scores<B: Backend>(
    inputs: ScoreInputs<B>,
    part: &Part,
    dtype: FloatDType,
) -> (FloatTensor<B>, Terms<B>) {
    let [batch, heads_q, len_q, dim_qk] = inputs.query.shape().dims::<4>();
    let [_, heads_kv, len_kv, _] = inputs.key.shape().dims::<4>();
    let scalars = inputs.scalars;
    let shape = Shape::new([batch, heads_q, len_q, len_kv]);

    let bias = inputs.bias.into_option();
    let bias = bias.map(|bias| cast::<B>(bias, dtype));
    let distance = inputs.distance_bias.into_option();
    let distance = distance.map(|distance| relative_shift::<B>(distance, len_q, len_kv));
    let hidden = Hidden::<B>::new(
        &inputs.query.device(),
        batch,
        part,
        inputs.mask,
        &scalars,
        [bias.clone(), distance.clone()],
    );
    let (unseen, rows_without_keys) = (hidden.unseen(heads_kv), hidden.rows_without_keys());
    let key = zero_where::<B>(cast::<B>(inputs.key, dtype), unseen.clone());
    let query = zero_where::<B>(cast::<B>(inputs.query, dtype), rows_without_keys.clone());

    // Scaling the query touches `dim_qk` numbers per row; scaling the scores would touch `len_kv`, and overflow earlier.
    let query = times_scalar::<B>(query, scalars.scale);
    // ANCHOR: grouped-heads
    let grouped = Shape::new([batch, heads_kv, heads_q / heads_kv * len_q, dim_qk]);
    let query = reshape::<B>(query, grouped);
    let scores = times_transposed::<B>(query.clone(), key.clone());
    let scores = reshape::<B>(scores, shape.clone());
    // ANCHOR_END: grouped-heads
    let hidden = hidden.over(&shape);

    let (scores, ratios) = match scalars.softcap {
        Some(softcap) => {
            // The product of a hidden pair may overflow to NaN, by which the gradient of tanh would multiply.
            let scores = zero_where::<B>(scores, hidden.clone());
            let (capped, ratios) = cap::<B>(scores, softcap);
            (capped, Some(ratios))
        }
        None => (scores, None),
    };
    let biases = [bias, distance].into_iter().flatten();
    let scores = biases.fold(scores, |scores, bias| {
        B::float_add(scores, expand::<B>(bias, &shape))
    });
    // ANCHOR: mask-last
    // The mask comes last, so that no bias, not even +∞ or NaN, can make a hidden key win.
    let masked = match hidden.clone() {
        Some(hidden) => B::float_mask_fill(scores, hidden, f64::NEG_INFINITY.into()),
        None => scores,
    };
    // ANCHOR_END: mask-last
    let terms = Terms {
        ratios,
        hidden,
        query,
        key,
        unseen,
        rows_without_keys,
    };
    (masked, terms)
}

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

/// Expanded dimension by dimension, so that a gradient is summed dimension by dimension: in Burn 0.22.1's CubeCL backends one
/// sum over all dimensions is a single loop, which is slow and inexact, and which Mesa's software driver leaves after 65,535
/// rounds.
pub(crate) fn expand<B: Backend>(tensor: FloatTensor<B>, shape: &Shape) -> FloatTensor<B> {
    let full = shape.dims::<4>();
    let mut dims = tensor.shape().dims::<4>();
    let mut expanded = tensor;
    for dim in 0..4 {
        if dims[dim] != full[dim] {
            dims[dim] = full[dim];
            expanded = B::float_expand(expanded, Shape::new(dims));
        }
    }
    expanded
}

/// `left · rightᵀ` of matrices `[.., rows, dim]` and `[.., columns, dim]`.
///
/// A single column is not multiplied as a matrix: in Burn 0.22.1 on wgpu, the gradient of a matrix product with a single
/// column computed by fusion mixes up the heads.
pub(crate) fn times_transposed<B: Backend>(
    left: FloatTensor<B>,
    right: FloatTensor<B>,
) -> FloatTensor<B> {
    match right.shape().dims::<4>()[2] {
        1 => B::float_sum_dim(B::float_mul(left, right), 3),
        _ => B::float_matmul(left, B::float_transpose(right)),
    }
}

/// `left · right` of matrices `[.., rows, columns]` and `[.., columns, dim]`; one column is handled as in
/// [`times_transposed`].
pub(crate) fn times<B: Backend>(left: FloatTensor<B>, right: FloatTensor<B>) -> FloatTensor<B> {
    match right.shape().dims::<4>()[2] {
        1 => B::float_mul(left, right),
        _ => B::float_matmul(left, right),
    }
}

/// Selects zeros, in the gradient too: multiplying a NaN by a weight of zero would keep the NaN.
pub(crate) fn zero_where<B: Backend>(
    tensor: FloatTensor<B>,
    hidden: Option<BoolTensor<B>>,
) -> FloatTensor<B> {
    let Some(hidden) = hidden else {
        return tensor;
    };
    let shape = tensor.shape();
    B::float_mask_fill(tensor, B::bool_expand(hidden, shape), 0.0.into())
}
