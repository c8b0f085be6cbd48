//! Random draws whose results never change: ChaCha8 bits, and our own arithmetic on top of them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of random choices. Only the bits come from a crate, so no release of it can change a corpus.
#[derive(Debug)]
pub(super) struct Draw {
    rng: ChaCha8Rng,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            rng: ChaCha8Rng::from_seed(bytes),
        }
    }

    /// A whole number below `bound`, which is not 0. The bias is at most `bound / 2³²`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.rng.next_u32()) * bound as u64) >> 32) as usize
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One item of a slice that is not empty.
    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// One item of a slice that is not empty, by weight.
    pub(super) fn weighted<T: Copy>(&mut self, items: &[(u32, T)]) -> T {
        let total: u32 = items.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total as usize) as u32;
        for &(weight, item) in items {
            if left < weight {
                return item;
            }
            left -= weight;
        }
        unreachable!("what is drawn is below the sum of the weights")
    }

    /// The least used of `draws` items drawn from a slice that is not empty, so that no word becomes rare.
    pub(super) fn pick_little_used(
        &mut self,
        items: &[usize],
        draws: usize,
        uses: impl Fn(usize) -> u32,
    ) -> usize {
        let mut best = self.pick(items);
        for _ in 1..draws {
            let next = self.pick(items);
            if uses(next) < uses(best) {
                best = next;
            }
        }
        best
    }

    /// Fisher–Yates.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
