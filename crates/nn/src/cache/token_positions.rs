//! The positions of cached tokens, where they are not simply their places in the sequence.

use super::KvCache;
use crate::positions::Positions;

impl KvCache {
    /// The positions of `len` new tokens of each sequence, of which all after the first `counts[b]` are padding: those that were `given`, or
    /// their places if tokens in the cache have other positions than theirs. `None` if all tokens are at their places.
    pub(crate) fn new_positions(
        &self,
        given: Option<&Positions>,
        counts: &[usize],
        len: usize,
    ) -> Option<Vec<Vec<usize>>> {
        let lengths = self.lengths();
        let list = |positions: &Positions| {
            let positions = positions.listed("KvCache", [lengths.len(), len]);
            // One list stands for all.
            match positions.as_slice() {
                [all] => vec![all.clone(); lengths.len()],
                _ => positions,
            }
        };
        let places = || list(&Positions::Offsets(lengths.clone()));
        match (given.map(list), &self.positions) {
            (Some(given), None) => {
                let places = places();
                let mut both = given.iter().zip(&places).zip(counts);
                let are_places =
                    both.all(|((given, places), &count)| given[..count] == places[..count]);
                (!are_places).then_some(given)
            }
            (Some(given), Some(_)) => Some(given),
            (None, Some(_)) => Some(places()),
            (None, None) => None,
        }
    }

    /// The positions of the tokens in the rows `first .. first + len` of the buffers; those of free rows mean nothing.
    pub(crate) fn kept_positions(&self, first: usize, len: usize) -> Vec<Vec<usize>> {
        let of_sequence = |b: usize| {
            let stored = self.stored_positions(b).skip(first);
            // A distance to them has to be one that occurs.
            let last = self.stored_positions(b).last().unwrap_or(0);
            stored.chain(core::iter::repeat(last)).take(len).collect()
        };
        (0..self.batch()).map(of_sequence).collect()
    }

    /// The positions of the tokens of sequence `b` in the buffers.
    fn stored_positions(&self, b: usize) -> impl DoubleEndedIterator<Item = usize> {
        let tokens = self.tokens[b];
        let given = self.positions.as_ref().map(|positions| &positions[b]);
        let place = tokens.dropped;
        (0..tokens.stored).map(move |row| given.map_or(place + row, |positions| positions[row]))
    }

    /// The positions of the tokens of every sequence in the buffers.
    pub(super) fn all_positions(&self) -> Vec<Vec<usize>> {
        let of_sequence = |b| self.stored_positions(b).collect();
        (0..self.batch()).map(of_sequence).collect()
    }

    /// Adds the positions of the first `counts[b]` new tokens of each sequence `b`, before their keys and values.
    pub(super) fn add_positions(&mut self, new: &[Vec<usize>], counts: &[usize]) {
        let positions = self.positions.take();
        let mut positions = positions.unwrap_or_else(|| self.all_positions());
        for ((positions, new), &count) in positions.iter_mut().zip(new).zip(counts) {
            positions.extend(&new[..count]);
        }
        self.positions = Some(positions);
    }

    /// Forgets the positions once all tokens are at their places, which costs less.
    pub(super) fn forget_places(&mut self) {
        let mut of_tokens = self.tokens.iter().zip(self.positions.iter().flatten());
        let are_places = of_tokens.all(|(tokens, positions)| {
            let places = tokens.dropped..tokens.count();
            tokens.passed <= tokens.dropped && positions.iter().copied().eq(places)
        });
        if are_places {
            self.positions = None;
        }
    }

    /// How many rows of sequence `b` a window has passed, for new tokens at these positions; without them, for one after the last.
    pub(super) fn passed(&self, b: usize, window: usize, new: Option<&[Vec<usize>]>) -> usize {
        let in_order = self.tokens[b].stored.saturating_sub(window);
        if self.positions.is_none() && new.is_none() {
            return in_order;
        }
        let mut stored = self.stored_positions(b);
        let next = || self.stored_positions(b).last().map_or(0, |last| last + 1);
        let least = new.and_then(|new| new[b].iter().min().copied());
        let least = least.unwrap_or_else(next);
        let reached = stored.position(|position| position.saturating_add(window) >= least);
        reached.map_or(in_order, |first| first.min(in_order))
    }

    /// Drops the first `rows` rows of sequence `b` from what is known of its tokens.
    pub(super) fn drop_rows(&mut self, b: usize, rows: usize) {
        let positions = self.stored_positions(b).take(rows);
        let passed = positions.map(|position| position + 1).max().unwrap_or(0);
        let tokens = &mut self.tokens[b];
        tokens.passed = tokens.passed.max(passed);
        tokens.stored -= rows;
        tokens.dropped += rows;
        if let Some(positions) = &mut self.positions {
            positions[b].drain(..rows);
        }
    }

    /// Panics when the window of a new token reaches a token that has been dropped.
    pub(super) fn check_reach(&self, new: &[Vec<usize>], counts: &[usize]) {
        let Some(window) = self.window else { return };
        for (b, (new, &count)) in new.iter().zip(counts).enumerate() {
            let passed = self.tokens[b].passed;
            let is_lost = |position: &&usize| **position < passed.saturating_add(window);
            if let (Some(position), true) = (new[..count].iter().find(is_lost), passed > 0) {
                panic!(
                    "KvCache: sequence {b} has a new token at position {position}, whose window of {window} reaches tokens before position \
                     {passed}, which have been dropped"
                );
            }
        }
    }
}
