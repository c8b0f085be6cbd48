//! Full caches that drop their oldest tokens, but the first ones.

use super::KvCache;
use crate::positions::indices;

impl KvCache {
    /// Whether tokens are dropped for new ones, so that keys are stored without their positions and norms.
    pub(crate) fn drops_oldest(&self) -> bool {
        self.sink_tokens.is_some()
    }

    pub(crate) fn max_len(&self) -> usize {
        self.max_len
    }

    /// The positions of the next tokens. Where tokens are dropped, those behind them move up.
    pub(crate) fn next_positions(&self) -> Vec<usize> {
        match self.drops_oldest() {
            true => self.tokens.iter().map(|tokens| tokens.stored).collect(),
            false => self.lengths(),
        }
    }

    /// Drops the oldest tokens but the sinks, so that `counts[b]` more have room.
    pub(crate) fn drop_oldest(&mut self, counts: &[usize]) {
        let Some(sinks) = self.sink_tokens else {
            return;
        };
        let sequences = self.tokens.iter().zip(counts);
        let excess: Vec<usize> = sequences
            .map(|(tokens, count)| (tokens.stored + count).saturating_sub(self.max_len))
            .collect();
        let device = self.keys.layout.device.clone();
        let first_kept = |b: usize| sinks + excess[b];
        // Nothing moves where all but the sinks are dropped.
        let moves = |b: usize| excess[b] > 0 && first_kept(b) < self.tokens[b].stored;
        let kept = |b: usize| indices(first_kept(b)..self.tokens[b].stored, &device);
        let is_together = self.is_even() && excess.iter().all(|&rows| rows == excess[0]);
        let batch = excess.len();
        let together = if is_together { batch } else { 1 };
        for buffer in [&mut self.keys, &mut self.values] {
            for b in (0..batch).step_by(together).filter(|&b| moves(b)) {
                buffer.copy(b..b + together, kept(b), sinks);
            }
        }
        for (tokens, rows) in self.tokens.iter_mut().zip(excess) {
            tokens.stored -= rows;
            tokens.dropped += rows;
        }
    }
}
