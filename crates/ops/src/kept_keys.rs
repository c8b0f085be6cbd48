//! Masks, biases and functions that are given for all tokens of a sequence, where a cache has kept some of them.

use burn::tensor::{Int, Tensor, kind::Basic};
use burn_attn_kernels_cpu::BlockSize;

use crate::{
    AttentionMask, AttentionOptions,
    bias::DistancePart,
    blocks::VisibleBlocks,
    check,
    composed::counting,
    distance::all_distances,
    function::captured::{Captured, Captures, Entries, Numbers},
};

impl AttentionOptions {
    /// Panics, with the sentence of [`attention`](crate::attention), unless mask and bias fit scores `[batch, heads_q, len_q, len_kv]` of
    /// queries at any offset.
    pub fn check_scores(&self, scores: [usize; 4]) {
        check::mask(&self.mask, scores);
        check::biases(&self.bias, scores, true);
        if let Some(function) = &self.score_function {
            check::captured(&function.captures, scores, true);
            check::form_of_scores(function);
        }
    }

    /// Whether there is neither a mask nor a bias nor a score function.
    pub fn is_plain(&self) -> bool {
        self.mask.is_none() && self.bias.is_none() && self.score_function.is_none()
    }

    /// Mask, bias and function for scores of `len` keys: of the `len_kv` keys for which they are given, sequence `b` has those from
    /// `first[b]` on. Where fewer than `len` follow, what the mask says of the others means nothing.
    ///
    /// A table of blocks becomes a dense mask, unless every `first[b]` is the same and the beginning of a block.
    ///
    /// # Panics
    ///
    /// Where a mask, a bias or a tensor of a function differs between keys, `first` must name a sequence, `len` has to be
    /// from 1 to `len_kv`, and each `first[b]` below `len_kv`: with others this panics, or the result means nothing.
    /// [`check_scores`](Self::check_scores) says in a sentence whether they fit `len_q` and `len_kv`: call it before.
    pub fn of_kept_keys(
        mut self,
        first: &[usize],
        len: usize,
        [len_q, len_kv]: [usize; 2],
    ) -> Self {
        let kept = Kept { first, len };
        let lengths = [len_q, len_kv];
        self.mask = self.mask.map_all(&|mask| kept.mask(mask, lengths));
        if let Some(function) = &mut self.score_function {
            kept.captures(&mut function.captures, lengths);
        }
        for dense in &mut self.bias.dense {
            *dense = kept.columns(dense.clone());
        }
        for part in &mut self.bias.by_distance {
            if let DistancePart::Numbers(numbers) = part {
                let distances = all_distances(len_q, len);
                *numbers = numbers.clone().narrow(1, len_kv - len, distances);
            }
        }
        self
    }
}

/// `len` keys from `first[b]` on of each sequence `b`.
struct Kept<'a> {
    first: &'a [usize],
    len: usize,
}

impl Kept<'_> {
    /// What `mask`, for `lengths` queries and keys, says of the kept keys.
    fn mask(&self, mut mask: AttentionMask, lengths: [usize; 2]) -> AttentionMask {
        if let Some(segments) = &mut mask.segments {
            segments.key = self.columns(segments.key.clone());
        }
        mask.masked = mask.masked.map(|masked| self.columns(masked));
        mask.padding
            .iter_mut()
            .for_each(|shape| shape[1] = self.len);
        for [_, keys] in &mut mask.dense_segments {
            keys[1] = self.len;
        }
        mask.key_lengths = mask.key_lengths.map(|lengths| self.lengths(lengths));
        for function in &mut mask.functions {
            let is_whole = self.together() == Some(0) && self.len == lengths[1];
            function.table = function.table.take().filter(|_| is_whole);
            self.captures(&mut function.captures, lengths);
        }
        for blocks in core::mem::take(&mut mask.visible_blocks) {
            if let Some(blocks) = self.blocks(&blocks) {
                mask.visible_blocks.push(blocks);
                continue;
            }
            let visible = blocks.in_blocks_of(BlockSize::from(1), lengths);
            mask = mask.and(AttentionMask::visible(self.columns(visible)));
        }
        mask
    }

    /// Where all sequences begin, if it is one key.
    fn together(&self) -> Option<usize> {
        let (&first, rest) = self.first.split_first()?;
        rest.iter().all(|&other| other == first).then_some(first)
    }

    /// The columns of the kept keys of `x`, `[batch or 1, .., len_kv or 1]`. A column that is not there is one that is.
    fn columns<const D: usize, K: Basic>(&self, x: Tensor<D, K>) -> Tensor<D, K> {
        let (dims, axis) = (x.dims(), D - 1);
        let count = dims[axis];
        if count == 1 {
            return x;
        }
        if let Some(first) = self.together().filter(|first| first + self.len <= count) {
            return x.narrow(axis, first, self.len);
        }
        let rows = self.first.iter().enumerate().map(|(item, &first)| {
            let item = if dims[0] == 1 { 0 } else { item };
            let row = x.clone().narrow(0, item, 1);
            let there = self.len.min(count - first);
            let kept = row.clone().narrow(axis, first, there);
            if there == self.len {
                return kept;
            }
            let mut missing = row.dims();
            missing[axis] = self.len - there;
            let any = row.narrow(axis, first, 1).expand(missing);
            Tensor::cat(vec![kept, any], axis)
        });
        Tensor::cat(rows.collect(), 0)
    }

    fn lengths(&self, lengths: Tensor<1, Int>) -> Tensor<1, Int> {
        let device = lengths.device();
        let first: Vec<i64> = self.first.iter().map(|&first| first as i64).collect();
        let first = Tensor::<1, Int>::from_data(first.as_slice(), counting(&device));
        let lengths = match lengths.dtype() == first.dtype() {
            true => lengths,
            false => lengths.cast(first.dtype()),
        };
        (lengths - first).clamp(0, self.len as i64)
    }

    /// What a function reads of the kept keys, and where they begin.
    fn captures(&self, captures: &mut Captures, [len_q, len_kv]: [usize; 2]) {
        for Captured {
            tensor, entries, ..
        } in &mut captures.tensors
        {
            *tensor = match (tensor.clone(), *entries) {
                (Numbers::Float(tensor), Entries::Pairs) => Numbers::Float(self.columns(tensor)),
                (Numbers::Int(tensor), Entries::Pairs) => Numbers::Int(self.columns(tensor)),
                (Numbers::Float(tensor), Entries::Distances) => {
                    let distances = all_distances(len_q, self.len);
                    Numbers::Float(tensor.narrow(3, len_kv - self.len, distances))
                }
                (tensor, _) => tensor,
            };
        }
        let before = &mut captures.frame.first_keys;
        before.resize(self.first.len(), 0);
        for (before, &first) in before.iter_mut().zip(self.first) {
            *before += first as i64;
        }
        if before.iter().all(|&first| first == 0) {
            before.clear();
        }
    }

    fn blocks(&self, blocks: &VisibleBlocks) -> Option<VisibleBlocks> {
        let keys = blocks.size.keys;
        let first = self.together().filter(|first| first.is_multiple_of(keys))?;
        let table = Kept {
            first: &vec![first / keys; self.first.len()],
            len: self.len.div_ceil(keys),
        };
        Some(VisibleBlocks {
            table: table.columns(blocks.table.clone()),
            size: blocks.size,
        })
    }
}
