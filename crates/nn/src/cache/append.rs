//! Adding tokens to a cache: grow the buffers, write the tokens, return the keys and values to attend to.

use burn::tensor::Tensor;

use super::{KvCache, buffer::read, position_bias::PositionBias};

/// The keys and values to attend to after an append.
#[derive(Clone, Debug)]
pub(crate) struct Appended {
    /// `[batch, n_kv_heads, len_kv, d_head]`
    pub(crate) key: Tensor<4>,
    /// `[batch, n_kv_heads, len_kv, d_value_head]`
    pub(crate) value: Tensor<4>,
    /// Index in `key` and `value` at which each sequence's new tokens start.
    pub(crate) new_at: Vec<usize>,
    /// Where `key` and `value` begin in the buffers.
    pub(crate) first: usize,
    /// Which token of each sequence the first key is.
    pub(crate) first_tokens: Vec<usize>,
}

impl KvCache {
    /// Adds the first `counts[b]` tokens of each sequence `b`, which [`check`](Self::check) accepts.
    pub(crate) fn append(
        &mut self,
        key: Tensor<4>,
        value: Tensor<4>,
        counts: &[usize],
        positions: Option<Vec<Vec<usize>>>,
    ) -> Appended {
        let [_, _, new, _] = key.dims();
        if self.tokens.iter().all(|tokens| tokens.count() == 0) {
            // The parameters may have changed since the previous sequences.
            self.bias = PositionBias::default();
        }
        if let Some(positions) = &positions {
            self.check_reach(positions, counts);
        }
        self.make_room(new, counts, positions.as_deref());
        // Sequences of one length can skip what no new token sees.
        let passed = self.window.map_or(0, |window| {
            let passed = (0..self.batch()).map(|b| self.passed(b, window, positions.as_deref()));
            passed.min().unwrap_or(0)
        });
        if let Some(positions) = positions {
            self.add_positions(&positions, counts);
        }
        let even = self.is_even();
        let new_at: Vec<usize> = self.tokens.iter().map(|tokens| tokens.stored).collect();
        for (buffer, rows) in [(&mut self.keys, key), (&mut self.values, value)] {
            match even {
                // The padding of a shorter sequence goes to free room, which its next token overwrites.
                true => buffer.write(rows, new_at[0]),
                false => buffer.write_each(rows, &new_at, counts),
            }
        }
        for (tokens, count) in self.tokens.iter_mut().zip(counts) {
            tokens.stored += count;
        }
        let first = if even { passed } else { 0 };
        let end = match even {
            true => new_at[0] + new,
            false => self.most_stored(),
        };
        let dropped = self.tokens.iter().map(|tokens| tokens.dropped);
        let [key, value] = read(&self.keys, &self.values, (first, end - first));
        Appended {
            key,
            value,
            new_at: new_at.iter().map(|at| at - first).collect(),
            first,
            first_tokens: dropped.map(|dropped| dropped + first).collect(),
        }
    }

    /// Makes room for `new` more tokens of every sequence, padding included. The buffers neither grow nor move while these tokens come,
    /// in however many calls.
    ///
    /// With a window, moving the buffers drops what the window has passed. Reserving before you draft guarantees that
    /// [`truncate`](Self::truncate) can undo every drafted token. Without a window it always can, and beside sink tokens as long as the
    /// drafts drop no token. Drafts at given positions have to come after the last token: a move drops what the window of the next position
    /// has passed.
    ///
    /// `new` counts up to `max_len`. If there is no room yet, it costs memory for the tokens, and a copy of the cached tokens, or of those in
    /// the window.
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
    ///
    /// let device = Device::default();
    /// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).with_window(4).init(&device);
    /// let next = || SelfAttentionInput::new(Tensor::random([2, 1, 32], Distribution::Default, &device));
    /// let mut cache = attention.cache(2, &KvCacheConfig::new(100).with_initial_capacity(2));
    /// for _ in 0..9 {
    ///     attention.forward_cached(next(), &mut cache);
    /// }
    /// cache.reserve(5);
    /// for _ in 0..5 {
    ///     attention.forward_cached(next(), &mut cache); // five guesses, one by one
    /// }
    /// cache.truncate(&[9, 11]); // the first sequence keeps none of them, the second keeps two
    /// assert_eq!(cache.lengths(), [9, 11]);
    /// ```
    pub fn reserve(&mut self, new: usize) {
        let room = match self.drops_oldest() {
            true => self.max_len - self.most_stored(),
            false => self.max_len,
        };
        let new = new.min(room);
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
        if self.batch() > 0 {
            self.make_room(new, &vec![new; self.batch()], None);
        }
    }

    /// Makes room for `new` more tokens of every sequence, of which `counts[b]` are those of sequence `b`, at these positions.
    fn make_room(&mut self, new: usize, counts: &[usize], positions: Option<&[Vec<usize>]>) {
        let longest = self.most_stored();
        // Sequences of one length are written all at once, with the padding of those that get fewer tokens.
        let needed = match self.is_even() {
            true => longest + new,
            false => {
                let ends = self.tokens.iter().zip(counts);
                let ends = ends.map(|(tokens, count)| tokens.stored + count);
                ends.max().unwrap_or(0)
            }
        };
        let capacity = self.capacity();
        if needed <= capacity {
            return;
        }
        let mut from = vec![0; self.batch()];
        let mut kept = longest;
        let shared = self.prefix.as_ref().map_or(0, |prefix| prefix.len);
        let most = (self.max_len - shared).max(needed);
        let mut grown = (2 * capacity).max(needed).min(most);
        if let Some(window) = self.window {
            // What the window has passed is dropped. With room for twice the window, the move pays for itself.
            for (b, from) in from.iter_mut().enumerate() {
                *from = self.passed(b, window, positions);
                self.drop_rows(b, *from);
            }
            kept = self.most_stored();
            let enough = window
                .saturating_mul(2)
                .max(2 * kept)
                .max(self.initial_capacity);
            // The kept tokens may be of one length, and the new ones are then written all at once.
            grown = grown.min(enough).max(kept + new);
        }
        self.move_to(&from, kept, grown);
    }

    /// Moves the rows `from[b] .. from[b] + len` of each sequence `b` to the front of buffers with room for `capacity` tokens.
    pub(super) fn move_to(&mut self, from: &[usize], len: usize, capacity: usize) {
        self.keys.move_to(from, len, capacity);
        self.values.move_to(from, len, capacity);
    }
}
