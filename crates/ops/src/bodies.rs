//! Attention by one body, for tests and benchmarks.

use burn::{backend::Dispatch, tensor::Tensor};

use crate::{
    AttentionOptions,
    attention::attention_by,
    backend::{AttentionOps, Body, ScoreInputs},
    composed,
};

/// [`attention_with_logsumexp`](crate::attention_with_logsumexp) by the blockwise body, even where the backend has kernels.
/// Blocks have about `block_area` scores per head; without `block_area`, the body chooses their size.
pub fn blockwise_attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    options: AttentionOptions,
    block_area: Option<usize>,
) -> (Tensor<4>, Tensor<3>) {
    let body = |mut inputs: ScoreInputs<Dispatch>, value| {
        inputs.scalars.body = match block_area {
            Some(area) => Body::BlocksOf(area),
            None => Body::Blockwise,
        };
        <Dispatch as AttentionOps>::fused_attention(inputs, value)
    };
    attention_by(body, query, key, value, options)
}

/// [`attention_with_logsumexp`](crate::attention_with_logsumexp) by the composed body, which Burn differentiates.
pub fn composed_attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    options: AttentionOptions,
) -> (Tensor<4>, Tensor<3>) {
    attention_by(composed::forward::<Dispatch>, query, key, value, options)
}
