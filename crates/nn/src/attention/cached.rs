//! Causal attention over a cache and the new tokens that are added to it.

use burn::tensor::{DType, Device, Tensor};

use super::{
    context::{AttentionContext, check_causal},
    heads::{Heads, Projected},
    masks::{causal, first_keys, first_queries},
};
use crate::{
    cache::{Appended, KvCache, KvCacheConfig},
    positions::{Positions, indices},
};

impl Heads {
    pub(super) fn cache(
        &self,
        module: &str,
        batch: usize,
        config: &KvCacheConfig,
        (causal, window): (bool, Option<usize>),
        place: (Device, Option<DType>),
    ) -> KvCache {
        check_causal(module, causal);
        self.position.check_max_len(module, config.max_len);
        let [_, keys, values] = self.sizes.parts();
        KvCache::new(batch, [keys, values], place, window, config)
    }

    /// Causal attention of the first `lengths[b]` tokens of each sequence `b` (default: all) over the cache and themselves.
    /// The tokens are added to the cache.
    pub(super) fn attend_cached(
        &self,
        [query, key, value]: Projected,
        context: AttentionContext,
        window: Option<usize>,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        let [batch, _, len_q, _] = query.dims();
        let (device, dtype) = (query.device(), query.dtype());
        let position = context.position.as_ref().unwrap_or(&self.position);
        let counts = context.lengths.unwrap_or_else(|| vec![len_q; batch]);
        cache.fix_dtype(key.dtype());
        cache.check(&key, &value, &counts, window);
        if batch == 0 || len_q == 0 {
            return Tensor::zeros([batch, len_q, self.sizes.merged()], (&device, dtype));
        }
        let positions = Positions::padded(cache.lengths(), counts.clone());
        let [query, key, value] = self.prepare([query, key, value], position, &positions);
        let Appended {
            key,
            value,
            new_at,
            first,
        } = cache.append(key, value, &counts);
        let [_, _, len_kv, _] = key.dims();
        let all_are_tokens = counts.iter().all(|&count| count == len_q);
        if all_are_tokens && new_at.iter().all(|&at| at + len_q == len_kv) {
            // The queries end with the last key.
            let bias = match len_q {
                1 => cache.bias_of_last_query(position, len_kv),
                _ => position.bias(),
            };
            let options = self.options(causal(window), bias);
            return self.attend([query, key, value], options, false).0;
        }
        // The causal offset differs from row to row.
        let (first, [key, value], bias) = match len_q == 1 && position.bias_source().is_some() {
            // Over the whole capacity, the bias stays the same tensor for many tokens.
            true => (first, cache.whole(), cache.bias_of_distances(position)),
            false => (0, [key, value], position.bias()),
        };
        let starts: Vec<usize> = new_at.iter().map(|at| first + at).collect();
        let ends = starts.iter().zip(&counts).map(|(at, count)| at + count);
        let mask = causal(window).and(first_keys(ends, &device));
        let mask = match all_are_tokens {
            true => mask,
            false => mask.and(first_queries(&counts, len_q, &device)),
        };
        let options = self.options(mask, bias);
        let options = options.query_offsets(indices(starts, &device));
        self.attend([query, key, value], options, false).0
    }
}
