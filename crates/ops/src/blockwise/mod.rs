//! The operation made of plain tensor operations, block by block: linear in memory, forward and backward, on every backend.
//!
//! The scores of a block of queries and keys exist only while it is their turn. The forward pass keeps the logsumexp of every
//! row; the backward pass computes the scores again and takes the weights from them. Blocks that causal mask or window hide
//! are left out.
//!
//! Source: Dao et al., "FlashAttention" (arXiv:2205.14135), algorithms 1 and 4, with the matrix products of the backend.

mod backward;
mod plan;
mod sums;

use burn::backend::{Backend, TensorMetadata, tensor::FloatTensor};

use crate::{
    Body, OptionalFloat, Results, ScoreInputs,
    composed::{
        self, DropoutRows, cast, float_dtype,
        merge::merge,
        of_part,
        part::{Reach, aligned, narrow},
    },
};
pub(crate) use backward::backward;
use plan::{Plan, Sizes};

/// Output and logsumexp; see [`AttentionOps::attention`](crate::AttentionOps::attention).
pub(crate) fn forward<B: Backend>(inputs: ScoreInputs<B>, value: FloatTensor<B>) -> Results<B> {
    let Some(sizes) = Sizes::of::<B>(&inputs, &value) else {
        return composed::without_scores::<B>(inputs, &value);
    };
    let plan = Plan::forward(sizes);
    if plan.is_whole() {
        return composed::forward::<B>(inputs, value);
    }
    let dtype = float_dtype(inputs.query.dtype());
    let rows = dropout_rows::<B>(&inputs);
    let inputs = aligned::<B>(inputs);
    let of_queries = plan.queries().map(|queries| {
        let mut inputs = inputs.clone();
        let mut parts = Vec::new();
        for keys in plan.keys_of(&queries) {
            let part = plan.part(&queries, &keys);
            let value = narrow::<B>(value.clone(), 2, &keys);
            parts.push(of_part::<B>(part.of(&inputs), value, rows.as_ref(), &part));
            // A sink joins the sum once.
            inputs.sinks = OptionalFloat::Absent;
        }
        let (output, logsumexp) = match parts.is_empty() {
            true => {
                let part = plan.part(&queries, &(0..sizes.len_kv));
                composed::without_scores::<B>(part.of(&inputs), &value)
            }
            false => merge::<B>(parts),
        };
        (cast::<B>(output, dtype), logsumexp)
    });
    let (outputs, logsumexps) = of_queries.unzip::<_, _, Vec<_>, Vec<_>>();
    (B::float_cat(outputs, 2), B::float_cat(logsumexps, 2))
}

impl Sizes {
    /// None where there is no score.
    fn of<B: Backend>(inputs: &ScoreInputs<B>, value: &FloatTensor<B>) -> Option<Self> {
        let [batch, heads_q, len_q, dim_qk] = inputs.query.shape().dims::<4>();
        let [_, _, len_kv, dim_v] = value.shape().dims::<4>();
        let sizes = Self {
            rows_of_heads: batch * heads_q,
            len_q,
            len_kv,
            dim: dim_qk.max(dim_v),
            reach: Reach::new(
                &inputs.scalars,
                inputs.mask.query_offsets.as_ref().is_some(),
                len_q,
                len_kv,
            ),
            block_area: match inputs.scalars.body {
                Body::BlocksOf(area) => Some(area),
                Body::Fastest | Body::Blockwise => None,
            },
        };
        // Not their product, which 32 bits may not hold.
        let has_scores = ![sizes.rows_of_heads, len_q, len_kv].contains(&0);
        has_scores.then_some(sizes)
    }
}

/// What decides over dropout, if there is any.
fn dropout_rows<B: Backend>(inputs: &ScoreInputs<B>) -> Option<DropoutRows<B>> {
    let [batch, heads_q, len_q, _] = inputs.query.shape().dims::<4>();
    let device = inputs.query.device();
    inputs
        .scalars
        .dropout
        .map(|dropout| DropoutRows::<B>::new(dropout, [batch, heads_q, len_q], &device))
}
