//! Position biases for one query per sequence, computed once for many tokens.

use burn::tensor::{DType, Tensor};
use burn_attn_ops::{AttentionBias, backend::bias_at_positions};

use crate::positions::{BiasSource, Position};

/// The biases of ALiBi or a relative table that a cache holds. They are the same tensors for many tokens, so a token needs no memory for
/// them.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionBias {
    /// What the biases are computed from.
    source: Option<BiasSource>,
    /// Of a query at the position of the last of `len` keys: `[1, n_heads, 1, len]`.
    of_last_query: Option<Tensor<4>>,
    /// Of queries at any position within the capacity, as [`AttentionBias::distances`] takes it.
    distances: Option<Tensor<2>>,
}

impl PositionBias {
    /// Forgets the biases of any other position encoding.
    fn follow(&mut self, position: &Position) {
        let source = position.bias_source();
        if self.source != source {
            *self = Self {
                source,
                ..Self::default()
            };
        }
    }

    /// Memory held (bytes).
    pub(super) fn bytes(&self) -> usize {
        fn of<const D: usize>(bias: &Tensor<D>) -> usize {
            bias.shape().num_elements() * bias.dtype().size()
        }
        self.of_last_query.as_ref().map_or(0, of) + self.distances.as_ref().map_or(0, of)
    }

    /// The bias of a query at the position of the last of `len_kv` keys: a view of that for `len` keys, the most there may be.
    pub(super) fn of_last_query(
        &mut self,
        position: &Position,
        [len_kv, len]: [usize; 2],
        dtype: DType,
    ) -> AttentionBias {
        self.follow(position);
        let made = self.of_last_query.take();
        let made = made.filter(|bias| bias.dims()[3] >= len_kv);
        self.of_last_query = made.or_else(|| {
            let keys: Vec<isize> = (1 - len as isize..=0).collect();
            let bias = bias_at_positions(position.bias(), &keys, dtype)?;
            let [n_heads, _] = bias.dims();
            Some(bias.reshape([1, n_heads, 1, len]))
        });
        let Some(bias) = self.of_last_query.clone() else {
            return AttentionBias::none();
        };
        let [_, _, _, len] = bias.dims();
        AttentionBias::dense(bias.narrow(3, len - len_kv, len_kv))
    }

    /// The bias of one query per sequence, at any position, over `capacity` keys.
    pub(super) fn of_distances(
        &mut self,
        position: &Position,
        capacity: usize,
        dtype: DType,
    ) -> AttentionBias {
        self.follow(position);
        let made = self.distances.take();
        let made = made.filter(|bias| bias.dims()[1] == 2 * capacity + 1);
        self.distances = made.or_else(|| {
            let end = capacity as isize;
            let positions: Vec<isize> = (-end..=end).rev().collect();
            bias_at_positions(position.bias(), &positions, dtype)
        });
        let bias = self.distances.clone();
        bias.map_or_else(AttentionBias::none, AttentionBias::distances)
    }
}
