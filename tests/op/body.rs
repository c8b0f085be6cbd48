//! The implementations of the operation.

use burn::tensor::Tensor;
use burn_attn::{AttentionOptions, ops};

/// Which implementation of the operation computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// What a user gets: the kernels of the backend, or the blockwise body where it has none.
    Backend,
    /// The blockwise body in blocks that hold one in so many of the scores, whatever the backend has.
    Blockwise(usize),
    /// The composed body, whatever the backend has.
    Composed,
}

impl Body {
    /// Output and logsumexp.
    pub fn attend(
        self,
        [query, key, value]: [Tensor<4>; 3],
        options: AttentionOptions,
    ) -> (Tensor<4>, Tensor<3>) {
        match self {
            Self::Backend => ops::attention_with_logsumexp(query, key, value, options),
            Self::Blockwise(parts) => {
                let area = (query.dims()[2] * key.dims()[2] / parts).max(1);
                ops::backend::blockwise_attention(query, key, value, options, Some(area))
            }
            Self::Composed => ops::backend::composed_attention(query, key, value, options),
        }
    }
}
