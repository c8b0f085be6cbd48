//! Keeping some of the newest tokens.

use super::KvCache;
use crate::positions::indices;

impl KvCache {
    /// Keeps the first `lengths[b]` tokens of each sequence `b`, and of those that follow only `then[b]`, in this order: the accepted
    /// path of a tree of drafts. Token `j` counts from the beginning of its sequence. It copies the keys and values of `then`.
    ///
    /// # Panics
    ///
    /// When there is not one entry per sequence, or the tokens of `then[b]` do not grow from `lengths[b]` on, within the sequence; and as
    /// [`truncate`](Self::truncate).
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
        let batch = self.batch();
        assert!(
            lengths.len() == batch && then.len() == batch,
            "KvCache: {} lengths and tokens of {} sequences for {batch} sequences",
            lengths.len(),
            then.len()
        );
        for (b, (&length, tokens)) in lengths.iter().zip(then).enumerate() {
            let count = self.tokens[b].count();
            let ends = tokens.iter().copied().chain([count]);
            let grows = length <= count && tokens.iter().zip(ends.skip(1)).all(|(a, b)| *a < b);
            assert!(
                grows && tokens.first().is_none_or(|&first| first >= length),
                "KvCache: sequence {b} has {count} tokens and cannot keep the first {length} and {tokens:?}"
            );
        }
        let kept: Vec<usize> = lengths
            .iter()
            .zip(then)
            .map(|(length, then)| length + then.len())
            .collect();
        if let Some(reason) = self.refuses_truncation(lengths) {
            panic!("{reason}");
        }
        for (b, (&length, tokens)) in lengths.iter().zip(then).enumerate() {
            let dropped = self.tokens[b].dropped;
            let in_place = tokens.iter().copied().eq(length..kept[b]);
            if in_place || tokens.is_empty() {
                continue;
            }
            let rows: Vec<usize> = tokens.iter().map(|token| token - dropped).collect();
            let device = self.keys.layout.device.clone();
            for buffer in [&mut self.keys, &mut self.values] {
                buffer.copy(b, indices(rows.iter().copied(), &device), length - dropped);
            }
            if let Some(positions) = &mut self.positions {
                let moved: Vec<usize> = rows.iter().map(|&row| positions[b][row]).collect();
                positions[b][length - dropped..][..moved.len()].copy_from_slice(&moved);
            }
        }
        self.truncate(&kept);
    }
}
