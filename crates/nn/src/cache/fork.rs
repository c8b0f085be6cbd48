//! One sequence that becomes many, whose common beginning is held once.

use burn::tensor::Tensor;

use super::{
    KvCache, Tokens,
    buffer::{Buffer, read},
    prefix::Prefix,
};

impl KvCache {
    /// Each of `rows` sequences becomes what the only sequence was: several answers to one prompt, requests that begin alike. The
    /// tokens so far are held once. Without masks, biases and functions, the queries of all sequences attend to them in one product. Panics when
    /// there is not one sequence.
    ///
    /// It costs a copy of the tokens. In a cache with a window, sink tokens or tokens at given positions, they are copied for every sequence,
    /// as [`reorder`](Self::reorder) does. So they are later: by [`join`](Self::join), where [`truncate`](Self::truncate) or
    /// [`keep`](Self::keep) takes back some of them, and in a call whose own mask or bias counts distances, that has a function, or whose positions are given
    /// beside a causal mask, ALiBi or a relative bias.
    ///
    /// # Source
    ///
    /// Juravsky et al., "Hydragen: high-throughput LLM inference with shared prefixes" (arXiv:2402.05099).
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
    ///
    /// let device = Device::default();
    /// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
    /// let input = |shape: [usize; 3]| SelfAttentionInput::new(Tensor::random(shape, Distribution::Default, &device));
    /// let mut cache = attention.cache(1, &KvCacheConfig::new(100));
    /// attention.forward_cached(input([1, 20, 32]), &mut cache);
    /// cache.fork(3);
    /// attention.forward_cached(input([3, 1, 32]), &mut cache);
    /// assert_eq!(cache.lengths(), [21, 21, 21]);
    /// ```
    pub fn fork(&mut self, rows: usize) {
        let batch = self.batch();
        assert!(
            batch == 1,
            "KvCache: one sequence can be forked, but there are {batch}"
        );
        self.copy_prefix();
        let len = self.tokens[0].stored;
        let moves = self.window.is_some() || self.sink_tokens.is_some();
        if len == 0 || rows < 2 || moves || self.positions.is_some() {
            return self.reorder(&vec![0; rows]);
        }
        let capacity = self.initial_capacity.min(self.max_len - len).max(1);
        let own = |buffer: &mut Buffer| {
            let empty = buffer.emptied(rows, capacity);
            let mut prefix = core::mem::replace(buffer, empty);
            prefix.move_to(&[0], len, len);
            prefix
        };
        self.prefix = Some(Prefix {
            keys: own(&mut self.keys),
            values: own(&mut self.values),
            len,
        });
        let shared = Tokens {
            dropped: len,
            ..Tokens::default()
        };
        self.tokens = vec![shared; rows];
    }

    /// The keys and values of the shared prefix, if there is one: `[1, n_kv_heads, len, d]`.
    pub(crate) fn prefix(&self) -> Option<[Tensor<4>; 2]> {
        let prefix = self.prefix.as_ref()?;
        Some(read(&prefix.keys, &prefix.values, (0, prefix.len)))
    }

    /// Copies the shared prefix to every sequence.
    pub(crate) fn copy_prefix(&mut self) {
        let Some(prefix) = self.prefix.take() else {
            return;
        };
        let stored = self.most_stored();
        for (buffer, shared) in [
            (&mut self.keys, &prefix.keys),
            (&mut self.values, &prefix.values),
        ] {
            buffer.prepend(shared, stored);
        }
        // The shared tokens are at their places.
        for positions in self.positions.iter_mut().flatten() {
            positions.splice(0..0, 0..prefix.len);
        }
        for tokens in &mut self.tokens {
            tokens.stored += tokens.dropped;
            tokens.dropped = 0;
        }
    }

    /// Copies the shared prefix if a sequence is to keep less of it.
    pub(super) fn free_prefix(&mut self, lengths: &[usize]) {
        let len = self.prefix.as_ref().map_or(0, |prefix| prefix.len);
        if lengths.iter().any(|&length| length < len) {
            self.copy_prefix();
        }
    }
}
