//! The position biases that a cache holds.

use burn::tensor::Tensor;

use crate::{
    parameter::bytes,
    positions::{BiasSource, Position},
};

/// The biases of ALiBi or a relative table that a cache holds. They are the same tensors for many tokens, so a token needs no memory for
/// them. Layers that share the cache, but not their learned slopes, compute them in turn.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionBias {
    /// What the biases are computed from.
    source: Option<BiasSource>,
    /// The bias of a query at the position of the last of `len` keys: `[1, n_heads, 1, len]`.
    pub(super) of_last_query: Option<Tensor<4>>,
    /// The bias of queries at any position within the capacity, as [`AttentionBias::distances`] takes it.
    pub(super) distances: Option<Tensor<2>>,
}

impl PositionBias {
    /// Forgets the biases of any other position encoding.
    pub(super) fn follow(&mut self, position: &Position) {
        let source = position.bias_source();
        if self.source != source {
            *self = Self {
                source,
                ..Self::default()
            };
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.of_last_query.as_ref().map_or(0, bytes) + self.distances.as_ref().map_or(0, bytes)
    }
}
