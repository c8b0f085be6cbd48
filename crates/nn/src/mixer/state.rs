//! What a mixer keeps of the tokens so far.

use core::fmt::Debug;

use crate::KvCache;

/// What a [`TokenMixer`](super::TokenMixer) keeps of the tokens of a batch of sequences: [`KvCache`], or anything from which the next tokens
/// can be computed.
///
/// [`TransformerCache`](crate::TransformerCache) does with all layers of a stack what these methods do with one.
pub trait MixerState: Clone + Debug {
    /// Number of tokens of each sequence so far: `[batch]`.
    fn lengths(&self) -> Vec<usize>;

    /// Memory held (bytes).
    fn bytes(&self) -> usize;

    /// Sequence `b` becomes what sequence `rows[b]` was. Rows may be repeated or left out. Panics when a row is not below the number of
    /// sequences.
    fn reorder(&mut self, rows: &[usize]);

    /// Appends the sequences of `other`. Panics with the sentence of [`refuses_join`](Self::refuses_join).
    fn join(&mut self, other: Self);

    /// Removes all tokens, and keeps the sequences.
    fn reset(&mut self);

    /// Each of `rows` sequences becomes what the only sequence was. Panics when there is not one.
    fn fork(&mut self, rows: usize) {
        let batch = self.lengths().len();
        assert!(
            batch == 1,
            "MixerState: one sequence can be forked, but there are {batch}"
        );
        self.reorder(&vec![0; rows]);
    }

    /// Makes room for `new` more tokens of every sequence. Default: nothing, for states that do not grow.
    fn reserve(&mut self, _new: usize) {}

    /// Keeps the first `lengths[b]` tokens of each sequence `b`. Panics with the sentence of
    /// [`refuses_truncation`](Self::refuses_truncation). Default: removes all tokens or none.
    fn truncate(&mut self, lengths: &[usize]) {
        if let Some(reason) = self.refuses_truncation(lengths) {
            panic!("{reason}");
        }
        if self.lengths() != lengths {
            self.reset();
        }
    }

    /// Why [`truncate`](Self::truncate) to these lengths would panic, if it would. Default: it would unless all tokens stay or none, because
    /// tokens cannot be taken out of a memory of fixed size.
    fn refuses_truncation(&self, lengths: &[usize]) -> Option<String> {
        let own = self.lengths();
        let is_possible =
            own == lengths || own.len() == lengths.len() && lengths.iter().all(|&len| len == 0);
        (!is_possible).then(|| {
            format!("MixerState: {own:?} tokens cannot be truncated to {lengths:?}: only all or none can be removed")
        })
    }

    /// Why [`join`](Self::join) would panic, if it would. Default: it never does.
    fn refuses_join(&self, _other: &Self) -> Option<String> {
        None
    }

    /// Why there is no room for `counts[b]` more tokens of each sequence `b`, if there is none: a stack asks all of its layers before the first
    /// one reads the tokens. Default: there always is, as in states that do not grow.
    fn refuses_tokens(&self, _counts: &[usize]) -> Option<String> {
        None
    }
}

impl MixerState for KvCache {
    fn lengths(&self) -> Vec<usize> {
        self.lengths()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn reorder(&mut self, rows: &[usize]) {
        self.reorder(rows);
    }

    fn join(&mut self, other: Self) {
        self.join(other);
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn fork(&mut self, rows: usize) {
        self.fork(rows);
    }

    fn reserve(&mut self, new: usize) {
        self.reserve(new);
    }

    fn truncate(&mut self, lengths: &[usize]) {
        self.truncate(lengths);
    }

    fn refuses_truncation(&self, lengths: &[usize]) -> Option<String> {
        self.refuses_truncation(lengths)
    }

    fn refuses_join(&self, other: &Self) -> Option<String> {
        self.refuses_join(other)
    }

    fn refuses_tokens(&self, counts: &[usize]) -> Option<String> {
        self.refuses_tokens(counts)
    }
}
