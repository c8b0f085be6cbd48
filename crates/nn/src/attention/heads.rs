//! The computation of every attention module between its projections: split into heads, attend, merge.

use burn::{
    module::{Module, Param},
    nn::Dropout,
    tensor::Tensor,
};
use burn_attn_ops::{
    AttentionBias, AttentionMask, AttentionOptions, ScoreFunction, attention,
    attention_with_logsumexp, merge_partial, next_dropout_seed, split_heads,
};

use super::qk_norm::QkNorm;
use crate::{
    dropout::is_active,
    parameter::floats,
    positions::{Position, Positions},
    trace::Recorder,
};

/// Output of `forward_with_weights` of an attention module.
#[derive(Clone, Debug)]
pub struct AttentionOutput {
    /// `[batch, len_q, d_model]`: in inference bit for bit the result of `forward`; in training each call samples a new dropout mask.
    pub states: Tensor<3>,
    /// `[batch, heads, len_q, len_kv]`: how much each query attends to each key, before dropout.
    pub weights: Tensor<4>,
}

/// The heads of an attention module: everything but its projections.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2.2; the fields of
/// [`HeadsConfig`](crate::HeadsConfig) name their sources.
#[derive(Module, Debug)]
pub struct Heads {
    #[module(skip)]
    pub(super) sizes: Sizes,
    pub(super) scale: Option<f64>,
    pub(super) softcap: Option<f64>,
    pub(super) dropout: Dropout,
    /// Normalises queries and keys.
    pub qk_norm: Option<QkNorm>,
    pub(super) norm_after_rotary: bool,
    /// `[n_heads]`: one score per head that joins every softmax and has no value.
    pub sinks: Option<Param<Tensor<1>>>,
    /// The position encoding of queries and keys.
    pub position: Position,
}

/// The sizes that follow from a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) d_head: usize,
    pub(super) d_value_head: usize,
}

impl Sizes {
    /// Heads of the projections of query, key and value, and the width of each head.
    pub(super) fn parts(&self) -> [(usize, usize); 3] {
        [
            (self.n_heads, self.d_head),
            (self.n_kv_heads, self.d_head),
            (self.n_kv_heads, self.d_value_head),
        ]
    }

    /// Widths of the projections of query, key and value.
    pub(super) fn widths(&self) -> [usize; 3] {
        self.parts().map(|(heads, width)| heads * width)
    }

    pub(super) fn merged(&self) -> usize {
        self.n_heads * self.d_value_head
    }
}

/// Query, key and value, each `[batch, heads, len, dim]`.
pub(super) type Projected = [Tensor<4>; 3];

/// Key and value, each `[batch, n_kv_heads, len, dim]`.
pub(super) type KeyValue = [Tensor<4>; 2];

/// Output and logsumexp of attention to some of the keys.
pub(super) type Partial = (Tensor<4>, Tensor<3>);

/// `[batch, len, width]` of projections side by side, each of this many heads of this width, to `[batch, heads, len, dim]` of each.
pub(super) fn split<const N: usize>(x: Tensor<3>, parts: [(usize, usize); N]) -> [Tensor<4>; N] {
    if parts.iter().all(|(_, width)| *width == parts[0].1) {
        return split_heads(x, parts.map(|(heads, _)| heads));
    }
    let mut first = 0;
    parts.map(|(heads, width)| {
        let [part] = split_heads(x.clone().narrow(2, first, heads * width), [heads]);
        first += heads * width;
        part
    })
}

/// `[batch, heads, len, dim]` to `[batch, len, heads · dim]`.
// ANCHOR: merge-heads
pub(super) fn merge(x: Tensor<4>) -> Tensor<3> {
    let [batch, n_heads, len, dim] = x.dims();
    x.swap_dims(1, 2).reshape([batch, len, n_heads * dim])
}
// ANCHOR_END: merge-heads

impl Heads {
    /// Number of query heads.
    pub fn n_heads(&self) -> usize {
        self.sizes.n_heads
    }

    /// `x` normalised and rotated, in the order of the configuration.
    fn prepared(
        &self,
        x: Tensor<4>,
        normalise: impl FnOnce(&QkNorm, Tensor<4>) -> Tensor<4>,
        rotate: impl FnOnce(Tensor<4>) -> Tensor<4>,
    ) -> Tensor<4> {
        let norm = self.qk_norm.as_ref();
        match norm.filter(|_| x.shape().num_elements() > 0) {
            None => rotate(x),
            Some(norm) if self.norm_after_rotary => normalise(norm, rotate(x)),
            Some(norm) => rotate(normalise(norm, x)),
        }
    }

    /// Queries, normalised and rotated by `rotate`.
    pub(super) fn prepare_query(
        &self,
        query: Tensor<4>,
        rotate: impl FnOnce(Tensor<4>) -> Tensor<4>,
    ) -> Tensor<4> {
        self.prepared(query, QkNorm::query, rotate)
    }

    /// Keys at `positions`, normalised and rotated by the `position` encoding.
    pub(super) fn prepare_key(
        &self,
        key: Tensor<4>,
        position: &Position,
        positions: &Positions,
    ) -> Tensor<4> {
        self.prepared(key, QkNorm::key, |key| position.rotate(key, positions))
    }

    /// Attention of prepared queries and keys over all heads, which are merged again. `prefix` is the attention of these queries to a
    /// shared prefix, which is merged in.
    pub(super) fn attend(
        &self,
        [query, key, value]: Projected,
        options: AttentionOptions,
        prefix: Option<Partial>,
        recorder: &mut Recorder,
    ) -> Tensor<3> {
        recorder.attends([&query, &key, &value], &options);
        let options = self.in_training(options, &query);
        let mixed = match prefix {
            None => attention(query, key, value, options),
            Some(prefix) => {
                let own = attention_with_logsumexp(query, key, value, options);
                merge_partial(&[prefix, own]).0
            }
        };
        recorder.step("mixed", &mixed);
        merge(mixed)
    }

    /// `options`, in training with dropout.
    pub(super) fn in_training(
        &self,
        options: AttentionOptions,
        query: &Tensor<4>,
    ) -> AttentionOptions {
        match is_active(&self.dropout, &query.device()) {
            true => options.dropout(self.dropout.prob, next_dropout_seed()),
            false => options,
        }
    }

    pub(super) fn options(
        &self,
        mask: AttentionMask,
        bias: AttentionBias,
        score_function: Option<ScoreFunction>,
    ) -> AttentionOptions {
        let mut options = AttentionOptions::default().mask(mask).bias(bias);
        options.score_function = score_function;
        options.scale = self.scale;
        options.softcap = self.softcap;
        options.sinks = self.sinks.as_ref().map(floats);
        options
    }
}
