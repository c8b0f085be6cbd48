//! Which keys a query may see.

use core::ops::Range;

use crate::{Broadcast, Problem, broadcast::broadcasts, extent::elements};

pub(crate) mod blocks;
mod error;
mod position;
#[cfg(test)]
mod tests;

pub use blocks::{BlockSize, Blocks};
pub use error::MaskError;
pub use position::{CausalAlignment, PositionMask, Window};

/// Several sequences packed into one row: a query sees the keys that have its id.
///
/// # Shapes
/// - queries `[batch, len_q]`
/// - keys `[batch, len_kv]`
///
/// A query whose id no key has sees nothing, and a key whose id no query has is hidden. Padding between packed sequences has such
/// ids (−1 for the queries, −2 for the keys).
///
/// # Source
/// Krell et al., *Efficient Sequence Packing without Cross-contamination* (2021).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments<'a> {
    /// The sequence each query belongs to.
    pub queries: &'a [i64],
    /// The sequence each key belongs to.
    pub keys: &'a [i64],
}

/// The first keys of each batch item, which [`PositionMask`] does not hide. They make a union of masks: a causal mask or the first keys
/// (prefix language models), or a window or the first keys (attention sinks).
///
/// # Source
/// Raffel et al., *Exploring the Limits of Transfer Learning* (2020), section 3.2.1; Xiao et al., *Efficient Streaming Language Models
/// with Attention Sinks* (2023), section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstKeys<'a> {
    /// `[batch]`: how many keys of each batch item (tokens).
    pub counts: &'a [usize],
    /// Whether each first key stays hidden from the queries before it.
    pub causal: bool,
}

/// Everything that may hide a key from a query; a key is visible if no part hides it.
///
/// The default hides nothing.
///
/// # Cost
/// The first five parts are computed from indices and take at most O(`batch` · (`len_q` + `len_kv`)) memory, and
/// [`blocks`](Self::blocks) has one bool per block. Only [`masked`](Self::masked) may be as large as the scores, unless it
/// broadcasts.
///
/// # Source
/// PyTorch: `torch.nn.attention.flex_attention.create_block_mask` combines such parts with `and_masks`.
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::{CausalAlignment, Mask, PositionMask, Problem};
///
/// let problem = Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 2, len_kv: 5, dim_qk: 3, dim_v: 3 };
/// let mask = Mask {
///     by_position: PositionMask::causal(CausalAlignment::BottomRight),
///     key_lengths: Some(&[4]),
///     ..Mask::default()
/// };
/// mask.validate(&problem).unwrap();
/// let row = |query| (0..5).map(|key| mask.visible(&problem, 0, 0, query, key)).collect::<Vec<_>>();
/// assert_eq!(row(0), [true, true, true, true, false]);
/// assert_eq!(row(1), [true, true, true, true, false]); // the last key is padding
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mask<'a> {
    /// Hides the keys outside a range around the position of the query.
    pub by_position: PositionMask,
    /// Keys that `by_position` does not hide.
    pub first_keys: Option<FirstKeys<'a>>,
    /// `[batch]`: hides the keys at and after this index, in tokens.
    pub key_lengths: Option<&'a [usize]>,
    /// `[batch]`: query `i` of batch item `b` stands at position `query_offsets[b] + i` among the keys, whatever the causal
    /// alignment. In tokens, from `-len_q` to `len_kv`.
    ///
    /// Offsets hide nothing by themselves: causality, the window and distances are counted from the position.
    pub query_offsets: Option<&'a [i64]>,
    /// Hides the keys of other sequences.
    pub segments: Option<Segments<'a>>,
    /// Hides the blocks that a table does not show.
    pub blocks: Option<Blocks<'a>>,
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: hides where `true`.
    pub masked: Option<Broadcast<'a, bool>>,
}

impl Mask<'_> {
    /// Checks every part against the sizes of the problem.
    ///
    /// # Errors
    /// A buffer has the wrong length or shape, a key length exceeds `len_kv`, or a query offset is outside `-len_q ..= len_kv`.
    pub fn validate(&self, problem: &Problem) -> Result<(), MaskError> {
        let check = |name, actual, expected| {
            if actual == expected {
                Ok(())
            } else {
                Err(MaskError::Length {
                    name,
                    expected,
                    actual,
                })
            }
        };
        let len_kv = problem.len_kv;
        let first_keys = self.first_keys.map(|first| first.counts);
        for (name, lengths) in [
            ("key_lengths", self.key_lengths),
            ("first_keys", first_keys),
        ] {
            let Some(lengths) = lengths else { continue };
            check(name, lengths.len(), problem.batch)?;
            if let Some(batch_item) = lengths.iter().position(|&length| length > len_kv) {
                let length = lengths[batch_item];
                return Err(MaskError::KeyLength {
                    name,
                    batch_item,
                    length,
                    len_kv,
                });
            }
        }
        if let Some(offsets) = self.query_offsets {
            check("query_offsets", offsets.len(), problem.batch)?;
            let len_q = problem.len_q;
            let range = -(len_q as i128)..=len_kv as i128;
            let is_outside = |&offset: &i64| !range.contains(&i128::from(offset));
            if let Some(batch_item) = offsets.iter().position(is_outside) {
                return Err(MaskError::QueryOffset {
                    batch_item,
                    offset: offsets[batch_item],
                    len_q,
                    len_kv,
                });
            }
        }
        if let Some(segments) = self.segments {
            check(
                "segments.queries",
                segments.queries.len(),
                elements([problem.batch, problem.len_q]),
            )?;
            check(
                "segments.keys",
                segments.keys.len(),
                elements([problem.batch, len_kv]),
            )?;
        }
        if let Some(blocks) = &self.blocks {
            blocks.validate(problem)?;
        }
        if let Some(masked) = &self.masked {
            masked.validate(problem)?;
        }
        Ok(())
    }

    /// Where query `query` stands among the keys: the diagonal of the causal mask and the centre of the window.
    ///
    /// May be negative, or beyond the last key.
    #[must_use]
    pub fn position(&self, problem: &Problem, batch_item: usize, query: usize) -> isize {
        let offset = self.query_offsets.map_or_else(
            || self.by_position.offset(problem.len_q, problem.len_kv),
            |offsets| offsets[batch_item] as isize,
        );
        query as isize + offset
    }

    /// The keys that causality, window, first keys and key length leave to a query: the number of first keys, and a range, which may
    /// overlap them. All other keys are hidden, in every head.
    ///
    /// Segments, blocks and the bool tensor may hide some of these keys: ask [`visible`](Self::visible). A kernel skips all others.
    /// The range may be empty. The number and the ends of the range never decrease from one query to the next.
    #[must_use]
    pub fn seen_keys(
        &self,
        problem: &Problem,
        batch_item: usize,
        query: usize,
    ) -> (usize, Range<usize>) {
        let position = self.position(problem, batch_item, query);
        let length = self
            .key_lengths
            .map_or(problem.len_kv, |lengths| lengths[batch_item]);
        let first = self.first_keys.map_or(0, |first| {
            let count = first.counts[batch_item].min(length);
            match first.causal {
                true => count.min(position.saturating_add(1).max(0) as usize),
                false => count,
            }
        });
        (first, self.by_position.key_range(position, length))
    }

    /// Whether a query may see a key: `true` unless a part of the mask hides it. `head` is the query head.
    ///
    /// # Panics
    /// An index is out of range, or the mask does not fit the problem (see [`validate`](Self::validate)).
    #[must_use]
    pub fn visible(
        &self,
        problem: &Problem,
        batch_item: usize,
        head: usize,
        query: usize,
        key: usize,
    ) -> bool {
        let same_segment = self.segments.is_none_or(|segments| {
            segments.queries[batch_item * problem.len_q + query]
                == segments.keys[batch_item * problem.len_kv + key]
        });
        let (first, range) = self.seen_keys(problem, batch_item, query);
        (key < first || range.contains(&key))
            && same_segment
            && self
                .blocks
                .is_none_or(|blocks| blocks.shows(batch_item, head, query, key))
            && !self
                .masked
                .is_some_and(|masked| masked.get(batch_item, head, query, key))
    }
}

impl Blocks<'_> {
    /// Checks the block size, and the shape of the table against the problem.
    ///
    /// # Errors
    /// A block is empty, or a size of the table is neither 1 nor that of the problem.
    pub fn validate(&self, problem: &Problem) -> Result<(), MaskError> {
        let (size, shape) = (self.size, self.visible.shape());
        if size.queries == 0 || size.keys == 0 {
            return Err(MaskError::BlockSize { size });
        }
        let [rows, columns] = size.table(problem.len_q, problem.len_kv);
        let table = [problem.batch, problem.heads_q, rows, columns];
        if broadcasts(shape, table) {
            Ok(())
        } else {
            Err(MaskError::Blocks { shape, table, size })
        }
    }
}
