//! The lines of scores that a function runs along.

/// Numbers of a line that are computed at once: enough to fill a vector on any machine, in a loop of known length.
pub(crate) const CHUNK: usize = 32;

/// The most tensors that a form reads.
pub(crate) const MOST_CAPTURED: usize = 6;

/// The loops around a form that reads `N` captured numbers of a pair, at most 6.
#[derive(Debug)]
pub struct Looped<F, const N: usize>(pub F);

/// A query and a key, by their indices in the call, which a function counts in 32 bits: it is right for fewer than 2³¹ of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Item of the batch.
    pub batch_item: i32,
    /// Query head.
    pub head: i32,
    /// Index of the query.
    pub query: i32,
    /// Index of the key.
    pub key: i32,
    /// The key at which the query stands: see the causal alignment and the query offsets of [the contract](crate#the-contract-of-attention).
    pub position: i32,
}

impl Pair {
    /// By how many tokens the query stands after the key; negative for a later key.
    #[must_use]
    #[inline(always)]
    pub fn distance(self) -> i32 {
        self.position - self.key
    }
}

/// Scores of one head: lines along its queries, one for each key, or along its keys, one for each query.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    pub(crate) first: Pair,
    pub(crate) along_keys: bool,
    pub(crate) count: usize,
    /// Numbers of a line.
    pub(crate) len: usize,
    /// Distance from one line to the next, in numbers.
    pub(crate) stride: usize,
}

impl Lines {
    #[inline(always)]
    fn pair(self, line: usize, index: usize) -> Pair {
        let (line, index) = (line as i32, index as i32);
        let (query, key) = match self.along_keys {
            true => (line, index),
            false => (index, line),
        };
        Pair {
            query: self.first.query + query,
            position: self.first.position + query,
            key: self.first.key + key,
            ..self.first
        }
    }

    /// The pair in a lane of a chunk. Lanes after the `count` repeat the last pair, so that a function is called only for pairs of the call.
    #[inline(always)]
    pub(super) fn pair_of_chunk(
        self,
        (line, first, count): (usize, usize, usize),
        lane: usize,
    ) -> Pair {
        self.pair(line, first + lane.min(count - 1))
    }

    /// Every line in chunks: the index of the line, the index of the chunk's first number, and the count of the chunk.
    #[inline(always)]
    pub(super) fn chunks(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.count).flat_map(move |line| {
            let firsts = (0..self.len).step_by(CHUNK);
            firsts.map(move |first| (line, first, (self.len - first).min(CHUNK)))
        })
    }
}

/// Where the numbers of some lines are in a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub(crate) start: usize,
    pub(crate) of_line: isize,
    pub(crate) of_index: isize,
}

impl Place {
    #[inline(always)]
    pub(super) fn at(self, line: usize, index: usize) -> usize {
        let offset = line as isize * self.of_line + index as isize * self.of_index;
        self.start.wrapping_add_signed(offset)
    }

    /// A chunk of a line, padded with its last number.
    #[inline(always)]
    pub(super) fn read<T: Copy>(
        self,
        data: &[T],
        (line, first, count): (usize, usize, usize),
    ) -> [T; CHUNK] {
        let start = self.at(line, first);
        match self.of_index {
            0 => [data[start]; CHUNK],
            1 => padded(&data[start..start + count]),
            _ => core::array::from_fn(|lane| data[self.at(line, first + lane.min(count - 1))]),
        }
    }
}

/// The numbers, at least one and at most a chunk, padded with the last.
#[inline(always)]
pub(super) fn padded<T: Copy>(numbers: &[T]) -> [T; CHUNK] {
    let count = numbers.len();
    let mut chunk = [numbers[count - 1]; CHUNK];
    chunk[..count].copy_from_slice(numbers);
    chunk
}
