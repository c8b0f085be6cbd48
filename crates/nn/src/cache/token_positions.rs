//! The positions of cached tokens, where they are not simply their places in the sequence.

use super::KvCache;
use crate::positions::Positions;

impl KvCache {
    /// The positions of `len` new tokens of each sequence, padding included: those that were `given`, or the next ones if tokens in the
    /// cache have positions of their own. `None` if all tokens are at their places.
    pub(crate) fn new_positions(
        &self,
        given: Option<&Positions>,
        len: usize,
    ) -> Option<Vec<Vec<usize>>> {
        let lengths = self.lengths();
        let positions = match given {
            Some(given) => given.listed("KvCache", [lengths.len(), len]),
            None => {
                self.positions.as_ref()?;
                Positions::Offsets(lengths.clone()).listed("KvCache", [lengths.len(), len])
            }
        };
        // One list stands for all.
        Some(match positions.as_slice() {
            [all] => vec![all.clone(); lengths.len()],
            _ => positions,
        })
    }

    /// The positions of the tokens in the rows `first .. first + len` of the buffers; those of free rows mean nothing.
    pub(crate) fn kept_positions(&self, first: usize, len: usize) -> Vec<Vec<usize>> {
        let of_sequence = |b: usize| {
            let stored = self.stored_positions(b);
            let kept = stored.get(first..).unwrap_or_default().iter().copied();
            kept.chain(core::iter::repeat(0)).take(len).collect()
        };
        (0..self.batch()).map(of_sequence).collect()
    }

    /// The positions of the tokens of sequence `b` in the buffers.
    fn stored_positions(&self, b: usize) -> Vec<usize> {
        match &self.positions {
            Some(positions) => positions[b].clone(),
            None => (self.tokens[b].dropped..self.tokens[b].count()).collect(),
        }
    }

    /// Adds the positions of the first `counts[b]` new tokens of each sequence `b`, before their keys and values.
    pub(super) fn add_positions(&mut self, new: Vec<Vec<usize>>, counts: &[usize]) {
        let stored = (0..self.batch()).map(|b| {
            let mut positions = self.stored_positions(b);
            positions.extend(&new[b][..counts[b]]);
            positions
        });
        self.positions = Some(stored.collect());
    }

    /// How many rows of sequence `b` a window has passed, for new tokens at these positions; without them, for one after the last.
    pub(super) fn passed(&self, b: usize, window: usize, new: Option<&[usize]>) -> usize {
        let in_order = self.tokens[b].stored.saturating_sub(window);
        if self.positions.is_none() && new.is_none() {
            return in_order;
        }
        let positions = self.stored_positions(b);
        let next = || positions.last().map_or(0, |last| last + 1);
        let least = new.and_then(|new| new.iter().min().copied());
        let least = least.unwrap_or_else(next);
        let mut positions = positions.into_iter();
        let reached = positions.position(|position| position.saturating_add(window) >= least);
        reached.map_or(in_order, |first| first.min(in_order))
    }
}
