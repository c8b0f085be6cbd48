//! The scores: scale, score function, softcap, bias and mask, in the order of the contract.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{FloatDType, Shape},
};

use super::{
    dtype::{cast, expand, reshape},
    function::{self, ScorePart},
    hidden::Hidden,
    part::Part,
    relative::relative_shift,
    scalars::{cap, times_scalar},
};
use crate::{backend::ScoreInputs, function::captured::Frame, routed};

/// What masked scores were computed from.
pub(crate) struct Terms<B: Backend> {
    /// The ratios of the scores to the softcap, if there is one.
    pub(crate) ratios: Option<FloatTensor<B>>,
    /// The score function on this part, if there is one.
    pub(crate) function: Option<ScorePart>,
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
    let offsets = inputs.mask.query_offsets.as_ref();
    let block = |frame: &Frame| {
        let device = routed::tensor::<B, 4>(inputs.query.clone()).device();
        let (sizes, by_position) = ([batch, heads_q], scalars.by_position);
        function::block::<B>(frame, sizes, part, offsets, by_position, &device)
    };
    let by_functions = function::hidden::<B>(&inputs.mask.functions, part, block);
    let score_function = inputs
        .score_function
        .map(|call| (block(&call.captures.frame), call));
    let hidden = Hidden::<B>::new(
        &inputs.query.device(),
        batch,
        part,
        (inputs.mask, by_functions),
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

    let function = score_function.map(|(block, call)| {
        let captured = inputs.captured.as_ref();
        ScorePart::new::<B>(call, block, scores.clone(), captured, hidden.clone(), part)
    });
    let scores = function.as_ref().map_or(scores, ScorePart::result::<B>);
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
        function,
        hidden,
        query,
        key,
        unseen,
        rows_without_keys,
    };
    (masked, terms)
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
