//! The operation made of plain tensor operations, block by block: linear in memory, forward and backward, on every backend.
//!
//! The scores of a block of queries and keys exist only while the block is computed. The forward pass takes some queries and
//! all keys that these may see, so that each row gets its softmax at once, and keeps the logsumexp of every row. The
//! backward pass recomputes the scores, in squares, and derives the weights from the logsumexp. Keys that a causal mask or
//! a window hides from all queries of a block are left out.
//!
//! Source: Dao et al., "FlashAttention" (arXiv:2205.14135), algorithm 4, with the matrix products of the backend.

mod backward;
mod captured;
mod nan;
mod plan;
mod sums;
#[cfg(all(test, feature = "wgpu", feature = "flex"))]
pub(crate) mod tests;

use burn::{
    backend::{Backend, TensorMetadata, tensor::FloatTensor},
    tensor::FloatDType,
};

use crate::{
    backend::{Body, Results, ScoreInputs},
    composed::{
        self, DropoutRows, cast, float_dtype, of_part,
        part::{aligned, narrow},
        position::Reach,
    },
};
pub(crate) use backward::backward;
pub(crate) use nan::{any, refuse_nan_of_function};
use plan::{Plan, Sizes};

/// Output and logsumexp; see [`AttentionOps::fused_attention`](crate::backend::AttentionOps::fused_attention).
pub(crate) fn forward<B: Backend>(inputs: ScoreInputs<B>, value: FloatTensor<B>) -> Results<B> {
    let dtype = float_dtype(inputs.query.dtype());
    forward_in::<B>(inputs, value, dtype)
}

/// [`forward`] with an output in `dtype`.
fn forward_in<B: Backend>(
    inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
    dtype: FloatDType,
) -> Results<B> {
    let Some(sizes) = Sizes::of::<B>(&inputs, &value) else {
        return composed::without_scores::<B>(inputs, &value, dtype);
    };
    let plan = Plan::forward(sizes, &inputs.mask.tables);
    if plan.is_whole() {
        return composed::forward_in::<B>(inputs, value, dtype);
    }
    let rows = DropoutRows::<B>::of(&inputs);
    let inputs = aligned::<B>(inputs);
    let of_queries = plan.queries().map(|queries| {
        let keys = plan.keys_of(&queries);
        if keys.is_empty() {
            let part = plan.part(&queries, &(0..sizes.len_kv));
            return composed::without_scores::<B>(part.of(&inputs), &value, dtype);
        }
        let part = plan.part(&queries, &keys);
        let value = narrow::<B>(value.clone(), 2, &keys);
        let (output, logsumexp) = of_part::<B>(part.of(&inputs), value, rows.as_ref(), &part);
        (cast::<B>(output, dtype), logsumexp)
    });
    let (outputs, logsumexps) = of_queries.unzip::<_, _, Vec<_>, Vec<_>>();
    (B::float_cat(outputs, 2), B::float_cat(logsumexps, 2))
}

impl Sizes {
    /// `None` where there are no scores.
    fn of<B: Backend>(inputs: &ScoreInputs<B>, value: &FloatTensor<B>) -> Option<Self> {
        let p = inputs.problem(value);
        let sizes = Self {
            rows_of_heads: p.batch * p.heads_q,
            len_q: p.len_q,
            len_kv: p.len_kv,
            dim: p.dim_qk.max(p.dim_v),
            reach: Reach::new(&inputs.scalars, &inputs.mask, p.len_q, p.len_kv),
            block_area: match inputs.scalars.body {
                Body::Blockwise(area) => area,
                Body::Fastest => None,
            },
        };
        // Not their product, which 32 bits may not hold.
        let has_scores = ![sizes.rows_of_heads, p.len_q, p.len_kv].contains(&0);
        has_scores.then_some(sizes)
    }
}
