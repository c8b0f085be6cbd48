//! Keeping some of the newest tokens.

use super::KvCache;
use crate::positions::indices;

impl KvCache {
    /// Keeps the first `lengths[b]` tokens of each sequence `b`, and of those that follow only `then[b]`, in this order: the accepted
    /// path of a tree of drafts. Token `j` counts from the beginning of its sequence. It copies the keys and values of `then`, whose rotary positions
    /// stay those that they were read at, while distances count from their new places: give the drafts of a tree
    /// [positions](crate::AttentionContext::positions), which both keep, except in a cache with sink tokens.
    ///
    /// # Panics
    ///
    /// When there is not one entry per sequence, the tokens of `then[b]` do not grow from `lengths[b]` on, within the sequence, or there
    /// are any and a window or a full cache with sink tokens has dropped tokens from `lengths[b]` on; and as [`truncate`](Self::truncate).
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
    ///
    /// let device = Device::default();
    /// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
    /// let mut cache = attention.cache(1, &KvCacheConfig::new(100));
    /// attention.forward_cached(SelfAttentionInput::new(Tensor::ones([1, 7, 32], &device)), &mut cache);
    /// // Tokens 0 to 2, 4 and 6.
    /// cache.keep(&[3], &[&[4, 6]]);
    /// assert_eq!(cache.lengths(), [5]);
    /// ```
    pub fn keep(&mut self, lengths: &[usize], then: &[&[usize]]) {
        if let Some(reason) = self.refuses_keeping(lengths, then) {
            panic!("{reason}");
        }
        self.free_prefix(lengths);
        let counts = lengths.iter().zip(then);
        let kept: Vec<usize> = counts.map(|(length, then)| length + then.len()).collect();
        for (b, (&length, tokens)) in lengths.iter().zip(then).enumerate() {
            let dropped = self.tokens[b].dropped;
            let in_place = tokens.iter().copied().eq(length..kept[b]);
            if in_place || tokens.is_empty() {
                continue;
            }
            let rows: Vec<usize> = tokens.iter().map(|token| token - dropped).collect();
            let device = self.keys.layout.device.clone();
            for buffer in [&mut self.keys, &mut self.values] {
                let copied = indices(rows.iter().copied(), &device);
                buffer.copy(b..b + 1, copied, length - dropped);
            }
            if let Some(positions) = &mut self.positions {
                let moved: Vec<usize> = rows.iter().map(|&row| positions[b][row]).collect();
                positions[b][length - dropped..][..moved.len()].copy_from_slice(&moved);
            }
        }
        self.truncate(&kept);
    }

    /// Why [`keep`](Self::keep) would panic, if it would.
    pub(crate) fn refuses_keeping(&self, lengths: &[usize], then: &[&[usize]]) -> Option<String> {
        let batch = self.batch();
        if lengths.len() != batch || then.len() != batch {
            return Some(format!(
                "KvCache: {} lengths and tokens of {} sequences for {batch} sequences",
                lengths.len(),
                then.len()
            ));
        }
        let mut sequences = self.tokens.iter().zip(lengths.iter().zip(then)).enumerate();
        let refused = sequences.find_map(|(b, (own, (&length, tokens)))| {
            let (count, dropped) = (own.count(), own.dropped);
            let ends = tokens.iter().copied().chain([count]);
            let grows = length <= count && tokens.iter().zip(ends.skip(1)).all(|(a, b)| *a < b);
            if !grows || tokens.first().is_some_and(|&first| first < length) {
                return Some(format!(
                    "KvCache: sequence {b} has {count} tokens and cannot keep the first {length} and {tokens:?}"
                ));
            }
            let reached = dropped + self.sink_tokens.unwrap_or(0);
            let is_gone = self.prefix.is_none() && dropped > 0 && length < reached;
            (is_gone && !tokens.is_empty()).then(|| {
                let gone = match self.sink_tokens {
                    Some(sinks) => format!("of the first {reached}, only {sinks} have been kept"),
                    None => format!("the first {dropped} have been dropped"),
                };
                format!(
                    "KvCache: sequence {b} cannot keep the first {length} tokens and {tokens:?}: {gone}"
                )
            })
        });
        refused.or_else(|| self.refuses_truncation(lengths))
    }
}
