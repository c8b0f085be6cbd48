//! The computation of every attention module between its projections: split into heads, attend, merge.

use burn::{
    module::{Module, Param},
    nn::Dropout,
    tensor::Tensor,
};
use burn_attn_ops::{
    AttentionBias, AttentionMask, AttentionOptions, attention, attention_weights,
    backend::next_dropout_seed, split_heads,
};

use super::qk_norm::QkNorm;
use crate::{
    dropout::is_active,
    parameter::floats,
    positions::{Position, Positions},
};

/// Output of `forward_with_weights` of an attention module.
#[derive(Clone, Debug)]
pub struct AttentionOutput {
    /// `[batch, len_q, d_model]`: in inference bit for bit the result of `forward`; in training each call samples a new dropout mask.
    pub states: Tensor<3>,
    /// `[batch, heads, len_q, len_kv]`: how much each query attends to each key, before dropout.
    pub weights: Tensor<4>,
}

impl From<Attended> for AttentionOutput {
    fn from((states, weights): Attended) -> Self {
        let weights = weights.expect("weights were requested");
        Self { states, weights }
    }
}

/// The states, and the weights of the heads if they were requested.
pub(crate) type Attended = (Tensor<3>, Option<Tensor<4>>);

/// The heads of an attention module: everything but its projections.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2.2; the fields of
/// [`HeadsConfig`](crate::HeadsConfig) name their sources.
#[derive(Module, Debug)]
pub struct Heads {
    n_heads: usize,
    n_kv_heads: usize,
    d_head: usize,
    d_value_head: usize,
    scale: Option<f64>,
    softcap: Option<f64>,
    dropout: Dropout,
    /// Normalises queries and keys.
    pub qk_norm: Option<QkNorm>,
    /// `[n_heads]`: one score per head that joins every softmax and has no value.
    pub sinks: Option<Param<Tensor<1>>>,
    /// The position encoding of queries and keys.
    pub position: Position,
}

/// The sizes that follow from a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) d_head: usize,
    pub(super) d_value_head: usize,
}

impl Sizes {
    /// Widths of the projections of query, key and value.
    pub(super) fn widths(&self) -> [usize; 3] {
        [
            self.n_heads * self.d_head,
            self.n_kv_heads * self.d_head,
            self.n_kv_heads * self.d_value_head,
        ]
    }

    /// Width of the merged heads.
    pub(super) fn merged(&self) -> usize {
        self.n_heads * self.d_value_head
    }
}

/// Query, key and value, each `[batch, heads, len, dim]`.
pub(super) type Projected = [Tensor<4>; 3];

/// The parts of the heads that may have parameters.
pub(super) struct Parameters {
    pub(super) qk_norm: Option<QkNorm>,
    pub(super) sinks: Option<Param<Tensor<1>>>,
    pub(super) position: Position,
}

impl Heads {
    pub(super) fn new(
        sizes: Sizes,
        parameters: Parameters,
        [scale, softcap]: [Option<f64>; 2],
        dropout: Dropout,
    ) -> Self {
        let Sizes {
            n_heads,
            n_kv_heads,
            d_head,
            d_value_head,
        } = sizes;
        let Parameters {
            qk_norm,
            sinks,
            position,
        } = parameters;
        let of_norm = qk_norm.as_ref().and_then(QkNorm::scale);
        Self {
            n_heads,
            n_kv_heads,
            d_head,
            d_value_head,
            scale: scale.or(of_norm),
            softcap,
            dropout,
            qk_norm,
            sinks,
            position,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            n_heads: self.n_heads,
            n_kv_heads: self.n_kv_heads,
            d_head: self.d_head,
            d_value_head: self.d_value_head,
        }
    }

    /// `[batch, len, width]` of queries, keys and values side by side, into heads.
    pub(super) fn split_all(&self, x: Tensor<3>) -> Projected {
        if self.d_head == self.d_value_head {
            return split_heads(x, [self.n_heads, self.n_kv_heads, self.n_kv_heads]);
        }
        let [query, key, value] = self.sizes().widths();
        [
            self.split_query(x.clone().narrow(2, 0, query)),
            self.split_key(x.clone().narrow(2, query, key)),
            self.split_value(x.narrow(2, query + key, value)),
        ]
    }

    /// `[batch, len, width]` of keys and values side by side, into heads.
    pub(super) fn split_memory(&self, x: Tensor<3>) -> [Tensor<4>; 2] {
        if self.d_head == self.d_value_head {
            return split_heads(x, [self.n_kv_heads; 2]);
        }
        let [_, key, value] = self.sizes().widths();
        [
            self.split_key(x.clone().narrow(2, 0, key)),
            self.split_value(x.narrow(2, key, value)),
        ]
    }

    /// `[batch, len, n_heads · d_head]` to `[batch, n_heads, len, d_head]`.
    pub(super) fn split_query(&self, x: Tensor<3>) -> Tensor<4> {
        let [heads] = split_heads(x, [self.n_heads]);
        heads
    }

    /// `[batch, len, n_kv_heads · d_head]` to `[batch, n_kv_heads, len, d_head]`.
    pub(super) fn split_key(&self, x: Tensor<3>) -> Tensor<4> {
        let [heads] = split_heads(x, [self.n_kv_heads]);
        heads
    }

    /// As [`split_key`](Self::split_key), for values.
    pub(super) fn split_value(&self, x: Tensor<3>) -> Tensor<4> {
        self.split_key(x)
    }

    /// `[batch, heads, len, d_head]` to `[batch, len, heads · d_head]`.
    fn merge(x: Tensor<4>) -> Tensor<3> {
        let [batch, n_heads, len, d_head] = x.dims();
        x.swap_dims(1, 2).reshape([batch, len, n_heads * d_head])
    }

    /// Queries at `positions`, normalised and rotated by the `position` encoding.
    pub(super) fn prepare_query(
        &self,
        query: Tensor<4>,
        position: &Position,
        positions: &Positions,
    ) -> Tensor<4> {
        position.rotate(self.normalised_query(query), positions)
    }

    /// Queries before their rotation.
    pub(super) fn normalised_query(&self, query: Tensor<4>) -> Tensor<4> {
        match &self.qk_norm {
            Some(norm) if query.shape().num_elements() > 0 => norm.query(query),
            _ => query,
        }
    }

    /// As [`prepare_query`](Self::prepare_query), for keys.
    pub(super) fn prepare_key(
        &self,
        key: Tensor<4>,
        position: &Position,
        positions: &Positions,
    ) -> Tensor<4> {
        if key.shape().num_elements() == 0 {
            return key;
        }
        let key = match &self.qk_norm {
            Some(norm) => norm.key(key),
            None => key,
        };
        position.rotate(key, positions)
    }

    /// The queries and keys of one sequence, from its first token on.
    pub(super) fn prepare(&self, [query, key, value]: Projected, position: &Position) -> Projected {
        let start = Positions::default();
        [
            self.prepare_query(query, position, &start),
            self.prepare_key(key, position, &start),
            value,
        ]
    }

    /// Attention of prepared queries and keys over all heads, which are merged again. The weights are those before dropout.
    pub(super) fn attend(
        &self,
        [query, key, value]: Projected,
        mut options: AttentionOptions,
        with_weights: bool,
    ) -> Attended {
        let weights =
            with_weights.then(|| attention_weights(query.clone(), key.clone(), options.clone()));
        if is_active(&self.dropout, &query.device()) {
            options = options.dropout(self.dropout.prob, next_dropout_seed());
        }
        (Self::merge(attention(query, key, value, options)), weights)
    }

    /// The options of the caller and of these heads.
    pub(super) fn options(&self, mask: AttentionMask, bias: AttentionBias) -> AttentionOptions {
        let mut options = AttentionOptions::default().mask(mask).bias(bias);
        options.scale = self.scale;
        options.softcap = self.softcap;
        options.sinks = self.sinks.as_ref().map(floats);
        options
    }
}
