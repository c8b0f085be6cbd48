//! What every attention module does between its projections: split into heads, attend, merge.

use burn::{
    module::{Module, Param},
    nn::Dropout,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use burn_attn_ops::{
    AttentionBias, AttentionMask, AttentionOptions, attention, attention_weights,
    next_dropout_seed, split_heads,
};

use super::{heads_config::Sizes, qk_norm::QkNorm};
use crate::{
    cache::{Context, KvCache, KvCacheConfig, Shape},
    dropout::is_active,
    positions::{Position, Positions},
};

/// What an attention module returns when asked for its weights.
#[derive(Clone, Debug)]
pub struct AttentionOutput {
    /// `[batch, len_q, d_model]`, the same bits as without asking for weights.
    pub context: Tensor<3>,
    /// `[batch, heads, len_q, len_kv]`: how much each query looks at each key, before dropout.
    pub weights: Tensor<4>,
}

/// The heads of an attention module: everything but its projections.
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
    /// `[n_heads]`: a score that joins every softmax and has no value.
    pub sinks: Option<Param<Tensor<1>>>,
    /// How they know where a key lies.
    pub position: Position,
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

    /// Queries at these positions as they enter the dot products.
    pub(super) fn prepare_query(&self, query: Tensor<4>, positions: &Positions) -> Tensor<4> {
        if query.shape().num_elements() == 0 {
            return query;
        }
        let query = match &self.qk_norm {
            Some(norm) => norm.query(query),
            None => query,
        };
        self.position.rotate(query, positions)
    }

    /// As [`prepare_query`](Self::prepare_query), for keys.
    pub(super) fn prepare_key(&self, key: Tensor<4>, positions: &Positions) -> Tensor<4> {
        if key.shape().num_elements() == 0 {
            return key;
        }
        let key = match &self.qk_norm {
            Some(norm) => norm.key(key),
            None => key,
        };
        self.position.rotate(key, positions)
    }

    /// Queries and keys of one sequence, from its start.
    fn prepare(&self, [query, key, value]: Projected) -> Projected {
        let start = Positions::default();
        [
            self.prepare_query(query, &start),
            self.prepare_key(key, &start),
            value,
        ]
    }

    /// Attention of the queries of all heads over their keys and values, heads merged again; all of them as they come from
    /// the projections.
    pub(super) fn attend(
        &self,
        projected: Projected,
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> Tensor<3> {
        self.attend_prepared(self.prepare(projected), mask, self.with_position(bias))
    }

    /// A bias, and that of the positions, whose last query stands on the last key.
    pub(super) fn with_position(&self, bias: Option<AttentionBias>) -> Option<AttentionBias> {
        match (bias, self.position.bias()) {
            (Some(bias), Some(of_position)) => Some(bias.and(of_position)),
            (one, None) | (None, one) => one,
        }
    }

    /// [`attend`](Self::attend) of queries and keys that are prepared.
    pub(super) fn attend_prepared(
        &self,
        [query, key, value]: Projected,
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> Tensor<3> {
        let mut options = self.options(mask, bias);
        if is_active(&self.dropout, &query.device()) {
            options = options.dropout(self.dropout.prob, next_dropout_seed());
        }
        Self::merge(attention(query, key, value, options))
    }

    /// [`attend`](Self::attend), and the weights it uses, before dropout.
    pub(super) fn attend_with_weights(
        &self,
        projected: Projected,
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> (Tensor<3>, Tensor<4>) {
        let bias = self.with_position(bias);
        self.attend_prepared_with_weights(self.prepare(projected), mask, bias)
    }

    /// [`attend_with_weights`](Self::attend_with_weights) of queries and keys that are prepared.
    pub(super) fn attend_prepared_with_weights(
        &self,
        [query, key, value]: Projected,
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> (Tensor<3>, Tensor<4>) {
        let options = self.options(mask.clone(), bias.clone());
        let weights = attention_weights(query.clone(), key.clone(), options);
        let context = self.attend_prepared([query, key, value], mask, bias);
        (context, weights)
    }

    /// An empty cache for these heads.
    pub(super) fn cache(
        &self,
        batch: usize,
        config: &KvCacheConfig,
        window: Option<usize>,
        (device, dtype): (Device, DType),
    ) -> KvCache {
        let shape = Shape {
            batch,
            n_kv_heads: self.n_kv_heads,
            d_head: self.d_head,
            d_value_head: self.d_value_head,
            dtype,
            device,
            window,
        };
        KvCache::new(shape, config)
    }

    /// Causal attention of the first `lengths[b]` tokens of each sequence `b` (default: all) over the cache and themselves,
    /// which join it.
    pub(super) fn attend_cached(
        &self,
        [query, key, value]: Projected,
        lengths: Option<Vec<usize>>,
        window: Option<usize>,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        let [batch, n_heads, len_q, _] = query.dims();
        let counts = lengths.unwrap_or_else(|| vec![len_q; batch]);
        cache.check(&key, &value, &counts, window);
        if batch == 0 || len_q == 0 {
            let width = n_heads * self.d_value_head;
            return Tensor::zeros([batch, len_q, width], (&query.device(), query.dtype()));
        }
        let positions = cache.positions();
        let query = self.prepare_query(query, &positions);
        let key = self.prepare_key(key, &positions);
        let Context { key, value, new_at } = cache.append(key, value, &counts);
        let [_, _, len_kv, _] = key.dims();
        if new_at.iter().all(|&at| at + len_q == len_kv) {
            return self.attend_from_last([query, key, value], window, cache);
        }
        // Sequences of unequal lengths have diagonals of their own, which no structural mask can say.
        if len_q == 1 && window.is_none() && self.position.relative.is_none() {
            // Without a diagonal: what ALiBi adds is then right but for a constant per sequence, which the softmax does not see.
            let mask = ending_at(&new_at, &counts, &query.device());
            let bias = cache.bias_of_last_query(&self.position, len_kv);
            return self.attend_prepared([query, key, value], mask, bias);
        }
        // One after the other, each with its own: no mask or bias of `len_kv` numbers has to be made.
        let width = self.n_heads * self.d_value_head;
        let options = (&query.device(), query.dtype());
        let mut context = Tensor::zeros([batch, len_q, width], options);
        for (b, (&at, &count)) in new_at.iter().zip(&counts).enumerate() {
            if count == 0 {
                continue;
            }
            let first = at.saturating_sub(window.unwrap_or(at));
            let rows =
                |x: &Tensor<4>, from, to| x.clone().slice([b..b + 1, 0..x.dims()[1], from..to]);
            let end = at + count;
            let sequence = [
                rows(&query, 0, count),
                rows(&key, first, end),
                rows(&value, first, end),
            ];
            let attended = self.attend_from_last(sequence, window, cache);
            context = context.slice_assign([b..b + 1, 0..count, 0..width], attended);
        }
        context
    }

    /// Causal attention of queries that end with the last key.
    fn attend_from_last(
        &self,
        [query, key, value]: Projected,
        window: Option<usize>,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        let ([_, _, len_q, _], [_, _, len_kv, _]) = (query.dims(), key.dims());
        let bias = match len_q {
            1 => cache.bias_of_last_query(&self.position, len_kv),
            _ => self.position.bias(),
        };
        self.attend_prepared([query, key, value], causal(window), bias)
    }

    /// What the caller says and these heads are made of.
    fn options(&self, mask: AttentionMask, bias: Option<AttentionBias>) -> AttentionOptions {
        AttentionOptions {
            mask,
            bias,
            scale: self.scale,
            softcap: self.softcap,
            sinks: self.sinks.as_ref().map(Param::val),
            dropout: None,
        }
    }
}

/// Hides the keys behind the last of the new tokens of each sequence.
fn ending_at(new_at: &[usize], counts: &[usize], device: &Device) -> AttentionMask {
    let lengths = new_at
        .iter()
        .zip(counts)
        .map(|(at, count)| (at + count) as i64);
    let lengths = TensorData::new(lengths.collect::<Vec<_>>(), [new_at.len()]);
    AttentionMask::key_lengths(Tensor::<1, Int>::from_data(lengths, device))
}

/// `mask`, and nobody sees what stands behind the `lengths` of `sequences`.
///
/// # Panics
///
/// In the name of `module`, when the lengths do not fit the sequences.
pub(super) fn hide_padding(
    module: &str,
    mask: AttentionMask,
    lengths: Option<&[usize]>,
    sequences: &Tensor<3>,
) -> AttentionMask {
    let Some(lengths) = lengths else { return mask };
    let [batch, len, _] = sequences.dims();
    assert!(
        lengths.len() == batch && lengths.iter().all(|&length| length <= len),
        "{module}: lengths {lengths:?} do not fit {batch} sequences of {len} tokens"
    );
    let lengths: Vec<i64> = lengths.iter().map(|&length| length as i64).collect();
    let lengths = TensorData::new(lengths, [batch]);
    let lengths = Tensor::<1, Int>::from_data(lengths, &sequences.device());
    mask.and(AttentionMask::key_lengths(lengths))
}

/// Panics, in the name of `module`, if the input has what cannot go with a cache.
pub(super) fn check_cacheable(module: &str, mask: &AttentionMask, bias: Option<&AttentionBias>) {
    assert!(
        mask.is_none() && bias.is_none(),
        "{module}: a mask or a bias cannot go with a cache; lengths can"
    );
}

/// A position sees itself and what came before, as far back as the window reaches.
pub(super) fn causal(window: Option<usize>) -> AttentionMask {
    match window {
        Some(window) => AttentionMask::causal().and(AttentionMask::window(window, 0)),
        None => AttentionMask::causal(),
    }
}
