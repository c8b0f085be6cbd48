//! Position biases for one query per sequence, computed once for many tokens.

use burn::tensor::DType;
use burn_attn_ops::{AttentionBias, backend::bias_at_positions};

use super::KvCache;
use crate::{parameter::wide, positions::Position};

impl KvCache {
    /// The position bias of a query at the position of the last of `len_kv` keys: a view of that for the most keys there may be.
    pub(crate) fn bias_of_last_query(
        &mut self,
        position: &Position,
        len_kv: usize,
    ) -> AttentionBias {
        self.bias.follow(position);
        if position.bias_source().is_none() {
            return AttentionBias::none();
        }
        let reach = self.window.unwrap_or(usize::MAX).saturating_add(1);
        let (len, dtype) = (self.capacity().min(reach), self.statistics());
        let made = self.bias.of_last_query.take();
        let made = made.filter(|bias| bias.dims()[3] >= len_kv);
        self.bias.of_last_query = made.or_else(|| {
            let keys: Vec<isize> = (1 - len as isize..=0).collect();
            let bias = bias_at_positions(position.bias(), &keys, dtype)?;
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
    pub(crate) fn bias_of_distances(&mut self, position: &Position) -> AttentionBias {
        let (capacity, dtype) = (self.capacity(), self.statistics());
        self.bias.follow(position);
        let made = self.bias.distances.take();
        let made = made.filter(|bias| bias.dims()[1] == 2 * capacity + 1);
        self.bias.distances = made.or_else(|| {
            let end = capacity as isize;
            let positions: Vec<isize> = (-end..=end).rev().collect();
            bias_at_positions(position.bias(), &positions, dtype)
        });
        let bias = self.bias.distances.clone();
        bias.map_or_else(AttentionBias::none, AttentionBias::distances)
    }

    /// The dtype in which scores are accumulated.
    fn statistics(&self) -> DType {
        wide(self.keys.layout.dtype)
    }
}
