//! Position biases for one query per sequence, computed once for many tokens.

use burn::tensor::{DType, FloatDType, Tensor};
use burn_attn_ops::AttentionBias;

use super::KvCache;
use crate::positions::{BiasSource, Position};

/// The biases of ALiBi or a relative table that a cache holds.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionBias {
    /// What they are computed from.
    source: Option<BiasSource>,
    /// Of a query at the position of the last of `len` keys: `[1, n_heads, 1, len]`.
    of_last_query: Option<Tensor<4>>,
    /// Of queries at any position within the capacity, as [`AttentionBias::distances`] takes it.
    distances: Option<Tensor<2>>,
}

impl PositionBias {
    /// Forgets the biases of another position encoding than this one.
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
}

impl KvCache {
    /// The position bias of a query at the position of the last of `len_kv` keys.
    ///
    /// It is a view of the bias for the whole capacity, so a token needs no memory for it.
    pub(crate) fn bias_of_last_query(
        &mut self,
        position: &Position,
        len_kv: usize,
    ) -> AttentionBias {
        self.bias.follow(position);
        let made = self.bias.of_last_query.take();
        let made = made.filter(|bias| bias.dims()[3] >= len_kv);
        self.bias.of_last_query = made.or_else(|| {
            let reach = self
                .window
                .map_or(usize::MAX, |window| window.saturating_add(1));
            let len = self.capacity().min(reach);
            let keys: Vec<isize> = (1 - len as isize..=0).collect();
            let bias = position.bias_of_positions(&keys, self.statistics())?;
            let [n_heads, _] = bias.dims();
            Some(bias.reshape([1, n_heads, 1, len]))
        });
        let Some(bias) = self.bias.of_last_query.clone() else {
            return AttentionBias::none();
        };
        let [_, _, _, len] = bias.dims();
        AttentionBias::dense(bias.narrow(3, len - len_kv, len_kv))
    }

    /// The position bias of one query per sequence, at any position, over [`whole`](Self::whole).
    ///
    /// It is the same tensor until the memory grows, so a token needs no memory for it.
    pub(crate) fn bias_of_distances(&mut self, position: &Position) -> AttentionBias {
        let room = self.capacity() as isize;
        let count = 2 * self.capacity() + 1;
        self.bias.follow(position);
        let made = self.bias.distances.take();
        let made = made.filter(|bias| bias.dims()[1] == count);
        self.bias.distances = made.or_else(|| {
            let positions: Vec<isize> = (-room..=room).rev().collect();
            position.bias_of_positions(&positions, self.statistics())
        });
        let bias = self.bias.distances.clone();
        bias.map_or_else(AttentionBias::none, AttentionBias::distances)
    }

    /// Keys and values over the whole capacity, `[batch, n_kv_heads, capacity, d_head]` and likewise for the values.
    pub(crate) fn whole(&self) -> [Tensor<4>; 2] {
        let capacity = self.capacity();
        [
            self.keys().read(&self.key_layout, 0, capacity),
            self.values().read(&self.value_layout, 0, capacity),
        ]
    }

    /// The type in which scores are added up.
    fn statistics(&self) -> FloatDType {
        match self.key_layout.dtype {
            DType::F64 => FloatDType::F64,
            _ => FloatDType::F32,
        }
    }
}
