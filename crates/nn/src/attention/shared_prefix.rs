//! Attention to first tokens that all sequences share, beside that to the tokens of each.

use burn::tensor::Tensor;
use burn_attn_ops::{AttentionOptions, attention_with_logsumexp};

use super::{
    cached::CachedKeys,
    heads::{Heads, Partial},
};
use crate::{cache::KvCache, positions::Position};

impl Heads {
    /// The attention of prepared queries to the shared prefix of the cache, if there is one, with the `options` of the call. The queries have
    /// added these keys.
    pub(super) fn prefix_attention(
        &self,
        query: &Tensor<4>,
        mut options: AttentionOptions,
        cache: &KvCache,
        (position, keys): (&Position, &CachedKeys),
    ) -> Option<Partial> {
        let [key, value] = cache.prefix()?;
        // The sinks are in the other part.
        options.sinks = None;
        let options = self.in_training(options, query);
        let ([batch, n_heads, len_q, width], [_, _, len, _]) = (query.dims(), key.dims());
        if options.is_plain() && position.bias_source().is_none() {
            // Every query sees every key: those of all sequences are rows of one.
            let rows = query.clone().swap_dims(0, 1);
            let rows = rows.reshape([1, n_heads, batch * len_q, width]);
            let (output, logsumexp) = attention_with_logsumexp(rows, key, value, options);
            let [_, _, _, width] = output.dims();
            let output: Tensor<4> = output.reshape([n_heads, batch, len_q, width]);
            let logsumexp: Tensor<3> = logsumexp.reshape([n_heads, batch, len_q]);
            return Some((output.swap_dims(0, 1), logsumexp.swap_dims(0, 1)));
        }
        let options = options.of_kept_keys(&vec![0; batch], len, [len_q, keys.longest]);
        let offsets: Vec<i64> = keys.offsets.iter().map(|&at| at as i64).collect();
        let options = options.bias(position.bias());
        let options = options.placed(query, len, &offsets);
        let [key, value] = [key, value].map(|x| {
            let [_, heads, len, width] = x.dims();
            x.expand([batch, heads, len, width])
        });
        Some(attention_with_logsumexp(query.clone(), key, value, options))
    }
}
