//! Causal attention over a cache and the new tokens that are added to it.

use burn::tensor::{DType, Device, Tensor};
use burn_attn_ops::{AttentionOptions, CausalAlignment};

use super::{
    context::{AttentionContext, KEYS_ARE_QUERIES, refuse},
    heads::{Heads, KeyValue, Partial, Projected},
    masks::{by_position, first_keys, first_queries},
};
use crate::{
    cache::{Appended, KvCache, KvCacheConfig},
    positions::{Position, Positions, indices},
    trace::Recorder,
};

pub(super) const NO_KEYS: &str = "SelfAttention: a layer that shares keys and values was called without those of another layer, which a stack gives it";

/// The keys and values that a layer leaves to those that have none.
#[derive(Debug, Default)]
pub(crate) struct SharedKeyValue {
    /// Whether a later layer needs them.
    pub(crate) is_wanted: bool,
    /// Prepared, of a whole sequence.
    pub(super) whole: Option<KeyValue>,
    pub(super) cached: Option<CachedKeys>,
}

impl AttentionContext {
    /// Panics, in the name of `module`, unless it is causal, and on an offset or a mask aligned top-left by name, which a cache does not
    /// allow.
    pub(super) fn check_cacheable(&self, module: &str, causal: bool) {
        check_causal(module, causal);
        assert!(
            self.mask.named_alignment() != Some(CausalAlignment::TopLeft),
            "{module}: a mask aligned top-left cannot be combined with a cache, whose queries are the newest tokens"
        );
        assert!(
            self.offset.is_none(),
            "{module}: an offset cannot be combined with a cache, which knows the positions"
        );
        assert!(self.key_positions.is_none(), "{module}: {KEYS_ARE_QUERIES}");
    }
}

fn check_causal(module: &str, causal: bool) {
    assert!(
        causal,
        "{module}: a cache needs a causal module; with_causal(true) makes one"
    );
}

/// The keys of a cache that a call has added its tokens to, and where these are.
#[derive(Clone, Debug)]
pub(crate) struct CachedKeys {
    /// With prepared keys. Absent in a call without sequences or tokens.
    appended: Option<Appended>,
    /// Tokens of each sequence; what follows is padding.
    counts: Vec<usize>,
    positions: Positions,
    /// The positions as lists, if they are not the places of the tokens.
    listed: Option<Vec<Vec<usize>>>,
    /// The place of each sequence's first token.
    pub(super) offsets: Vec<usize>,
    /// Keys of the mask and the bias: all tokens so far.
    pub(super) longest: usize,
}

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
        if let (Some(window), true) = (window, config.sink_tokens.is_some()) {
            panic!(
                "{module}: sink_tokens were given to a cache for a window of {window}, which drops tokens itself"
            );
        }
        self.position.check_max_len(module, config.max_len);
        let [_, keys, values] = self.sizes.parts();
        KvCache::new(batch, [keys, values], place, window, config)
    }

    /// The merged heads of causal attention of the first `lengths[b]` tokens of each sequence `b` (default: all) over the cache. The keys and
    /// values of these tokens are added to the cache, and left in `shared` if they are wanted. Without them, those in `shared` are read,
    /// which another module has added. `values_in_keys` says whether values are the last numbers of keys.
    pub(super) fn attend_cached(
        &self,
        (query, key_value): (Tensor<4>, Option<KeyValue>),
        context: AttentionContext,
        (window, values_in_keys): (Option<usize>, bool),
        cache: &mut KvCache,
        shared: &mut SharedKeyValue,
    ) -> Tensor<3> {
        let position = context.position.as_ref().unwrap_or(&self.position);
        let options = self.options(context.mask, context.bias, context.score_function);
        if let Some(key_value) = key_value {
            let tokens = (context.positions, context.lengths);
            let kind = (window, values_in_keys);
            shared.cached = Some(self.append(key_value, tokens, &options, (position, kind), cache));
        }
        let keys = shared.cached.as_ref().expect(NO_KEYS);
        let (operands, options, prefix) =
            self.over_cache(query, options, (position, window), cache, keys);
        if !shared.is_wanted {
            shared.cached = None;
        }
        self.attend(operands, options, prefix, &mut Recorder::default())
    }

    /// Adds the first `lengths[b]` tokens of each sequence `b` (default: all) to the cache, at these positions (default: after its tokens).
    fn append(
        &self,
        [key, value]: KeyValue,
        (positions, lengths): (Option<Positions>, Option<Vec<usize>>),
        options: &AttentionOptions,
        (position, kind @ (window, _)): (&Position, (Option<usize>, bool)),
        cache: &mut KvCache,
    ) -> CachedKeys {
        let [batch, _, len_q, _] = key.dims();
        let counts = lengths.unwrap_or_else(|| vec![len_q; batch]);
        cache.check(&key, &value, &counts, kind);
        let longest = cache.lengths().into_iter().max().unwrap_or(0) + len_q;
        let drops_oldest = cache.drops_oldest();
        if drops_oldest {
            let of_tokens = [
                ("a mask was", !options.mask.is_none()),
                ("a bias was", !options.bias.is_none()),
                ("a score function was", options.score_function.is_some()),
                ("positions were", positions.is_some()),
            ];
            refuse(of_tokens, |what| {
                format!(
                    "KvCache: {what} given beside a cache with sink tokens, in which tokens move"
                )
            });
        }
        let has_bias = position.bias_source().is_some();
        let has_distances = window.is_some() || has_bias || options.counts_distances();
        // Positions on several axes have no distances, and these tokens have their places.
        let given = positions.as_ref();
        let given = given.filter(|given| has_distances || !matches!(given, Positions::PerAxis(_)));
        let listed = cache.new_positions(given, &counts, len_q);
        if let Some(positions) = &positions {
            positions.check("KvCache", [batch, len_q]);
        }
        let with_position = options.clone().bias(position.bias());
        with_position.check_scores([batch, self.sizes.n_heads, len_q, longest]);
        if drops_oldest {
            position.check_max_len("KvCache", cache.max_len());
            if let Some(rotary) = &position.rotary {
                rotary.check_width(&key);
            }
        }
        let is_empty = batch == 0 || len_q == 0;
        let in_order = |cache: &KvCache| Positions::padded(cache.next_positions(), counts.clone());
        // Beside sink tokens no positions are given: tokens have moved first.
        let positions = (!drops_oldest).then(|| positions.unwrap_or_else(|| in_order(cache)));
        // Not after the cache has changed: tokens that are refused decide nothing.
        let key = match &positions {
            Some(positions) if !is_empty => self.prepare_key(key, position, positions),
            _ => key,
        };
        cache.fix_dtype(key.dtype());
        let is_elsewhere = listed.is_some() && (options.is_causal() || has_bias);
        // Far behind its keys, a function has no scalar form.
        if is_elsewhere || options.counts_distances() || options.has_functions() {
            cache.copy_prefix();
        }
        if !is_empty {
            cache.drop_oldest(&counts);
        }
        let positions = positions.unwrap_or_else(|| in_order(cache));
        let offsets = cache.lengths();
        let appended = (!is_empty).then(|| {
            let mut appended = cache.append(key, value, &counts, listed.clone());
            if drops_oldest {
                let ends = appended.new_at.iter().zip(&counts);
                let ends = ends.map(|(at, count)| at + count);
                let tokens = Positions::padded(vec![0; batch], ends.collect());
                appended.key = self.prepare_key(appended.key, position, &tokens);
            }
            appended
        });
        CachedKeys {
            appended,
            counts,
            positions,
            listed,
            offsets,
            longest,
        }
    }

    /// The operands and options of attention of projected queries to the keys of a cache, among which theirs are, and the attention to its
    /// shared prefix.
    fn over_cache(
        &self,
        query: Tensor<4>,
        options: AttentionOptions,
        (position, window): (&Position, Option<usize>),
        cache: &mut KvCache,
        keys: &CachedKeys,
    ) -> (Projected, AttentionOptions, Option<Partial>) {
        let [batch, _, len_q, _] = query.dims();
        let device = query.device();
        let (listed, counts) = (keys.listed.as_ref(), &keys.counts);
        let Some(appended) = &keys.appended else {
            let nothing = self.sizes.parts().map(|(heads, width)| {
                Tensor::zeros([batch, heads, len_q, width], (&device, query.dtype()))
            });
            return (nothing, AttentionOptions::default(), None);
        };
        let (first, new_at) = (appended.first, &appended.new_at);
        let (key, value) = (appended.key.clone(), appended.value.clone());
        let is_plain = options.is_plain();
        let query = self.prepare_query(query, |query| position.rotate(query, &keys.positions));
        let prefix = self.prefix_attention(&query, options.clone(), cache, (position, keys));
        let [_, _, len_kv, _] = key.dims();
        let lengths = [len_q, keys.longest];
        let options = options.of_kept_keys(&appended.first_tokens, len_kv, lengths);
        let options = options.mask(by_position(true, window));
        let place = |options: AttentionOptions, cache: &KvCache| match listed {
            Some(of_query) if options.counts_distances() => {
                let of_key = cache.kept_positions(first, len_kv);
                options.at_positions(of_query, &of_key, &query, len_kv)
            }
            _ => options,
        };
        let all_are_tokens = counts.iter().all(|&count| count == len_q);
        if all_are_tokens && new_at.iter().all(|&at| at + len_q == len_kv) {
            // The queries end with the last key.
            let bias = match len_q {
                1 if listed.is_none() => cache.bias_of_last_query(position, len_kv),
                _ => position.bias(),
            };
            let options = place(options.bias(bias), cache);
            return ([query, key, value], options, prefix);
        }
        // The causal offset differs from row to row.
        let is_biased = position.bias_source().is_some();
        let is_in_place = is_plain && listed.is_none() && !cache.drops_oldest();
        let one_of_each = len_q == 1 && is_biased && is_in_place;
        let (offset, keys_and_values, options) = match one_of_each {
            // Over the whole capacity, the bias stays the same tensor for many tokens.
            true => {
                let bias = cache.bias_of_distances(position);
                (first, cache.whole(), options.bias(bias))
            }
            false => (0, [key, value], place(options.bias(position.bias()), cache)),
        };
        let [key, value] = keys_and_values;
        let starts: Vec<usize> = new_at.iter().map(|at| offset + at).collect();
        let ends = starts.iter().zip(counts).map(|(at, count)| at + count);
        let options = options.mask(first_keys(ends, &device));
        let options = match all_are_tokens {
            true => options,
            false => options.mask(first_queries(counts, len_q, &device)),
        };
        let options = options.query_offsets(indices(starts, &device));
        ([query, key, value], options, prefix)
    }
}
