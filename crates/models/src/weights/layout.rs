//! Where the numbers of the target parameters are in the source tensors, for reading and for writing.

mod columns;

use std::ops::Range;

use super::Source;
use columns::{Run, divided, interleaved, rotary_pairs, runs};

/// How many numbers are moved at once: few enough for the cache, and little compared with a tensor.
const BLOCK: usize = 1 << 18;

/// How parameters that are side by side correspond to tensors that are side by side.
///
/// The target is `[batches, rows, columns]`. The source is the same, or `[batches, columns, rows]` if it is transposed. "Side by side" means along
/// the columns. Along the batches, the target may consist of `files` source tensors. A stacked source tensor holds several targets, one after
/// the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) files: usize,
    /// The batches of one file.
    batches: usize,
    rows: usize,
    transposed: bool,
    /// The shape of a source tensor, without the columns.
    shape: Vec<usize>,
    /// How many columns each parameter has, and each tensor.
    target: Vec<usize>,
    source: Vec<usize>,
    runs: Vec<Run>,
}

/// Contiguous numbers of a source tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// In numbers.
    pub(super) range: Range<usize>,
    batch: usize,
    /// Rows, or columns if the source is transposed.
    lines: Range<usize>,
}

impl Layout {
    /// The layout of parameters of these shapes. `stacked` is how many targets are in each source tensor, one after the other, if the source has an
    /// axis for them; `has_files` says whether each index of the target's first axis has a source tensor.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit the source.
    pub(super) fn new(
        target: &[&[usize]],
        arrangement: &Source,
        stacked: Option<usize>,
        has_files: bool,
    ) -> Result<Self, String> {
        let Some(&first) = target.first() else {
            return Err("a row needs a parameter".into());
        };
        let (side_by_side, _) = target.split_at(target.len() / stacked.unwrap_or(1));
        let mut stack = target.chunks(side_by_side.len());
        if stack.any(|one| one != side_by_side) {
            return Err(format!("parameters of shapes {target:?} are not a stack"));
        }
        let Some((_, before)) = first.split_last() else {
            return Err("a parameter has no axis".into());
        };
        let widths = side_by_side.iter().map(|shape| match shape.split_last() {
            Some((&columns, other)) if other == before => Some(columns),
            _ => None,
        });
        let Some(target) = widths.collect::<Option<Vec<usize>>>() else {
            return Err(format!(
                "parameters of shapes {side_by_side:?} do not lie side by side"
            ));
        };
        let (files, inner) = match before {
            _ if !has_files => (1, before),
            [files, inner @ ..] => (*files, inner),
            [] => {
                return Err(format!(
                    "a parameter of shape {first:?} has no axis for several tensors"
                ));
            }
        };
        let (rows, outer) = match inner {
            [outer @ .., rows] => (*rows, outer),
            [] if arrangement.transposed => {
                return Err(format!(
                    "a parameter of shape {first:?} cannot be transposed"
                ));
            }
            [] => (1, inner),
        };
        let columns = target.iter().sum();
        let source = divided(columns, arrangement)?;
        let groups = match arrangement.rotary_pairs.as_slice() {
            [] => interleaved(columns, &arrangement.interleaved)?,
            d_heads => rotary_pairs(&source, d_heads)?,
        };
        Ok(Self {
            files,
            batches: outer.iter().product(),
            rows,
            transposed: arrangement.transposed,
            shape: stacked.iter().chain(inner).copied().collect(),
            runs: runs(&target, &source, &groups),
            target,
            source,
        })
    }

    pub(super) fn shape(&self, source: usize) -> Vec<usize> {
        let mut shape = self.shape.clone();
        let columns = shape.len() - usize::from(self.transposed);
        shape.insert(columns, self.source[source]);
        shape
    }

    pub(super) fn len(&self, target: usize) -> usize {
        self.files * self.batches * self.rows * self.target[self.column_of(target)]
    }

    /// The place of parameter `target` among those side by side, of which each part of a stack has all.
    fn column_of(&self, target: usize) -> usize {
        target % self.target.len()
    }

    /// Whether some numbers of parameter `target` are in tensor `source`.
    pub(super) fn shares(&self, target: usize, source: usize) -> bool {
        let target = self.column_of(target);
        let mut runs = self.runs.iter();
        runs.any(|run| run.target == target && run.source == source)
    }

    /// Tensor `source` of `file`, block by block; of a stack, only the part that is parameter `target`.
    pub(super) fn blocks(
        &self,
        [target, source]: [usize; 2],
        file: usize,
    ) -> impl Iterator<Item = Block> + use<> {
        let columns = self.source[source];
        let (lines, width) = match self.transposed {
            true => (columns, self.rows),
            false => (self.rows, columns),
        };
        let step = (BLOCK / width.max(1)).max(1);
        let batches = self.batches;
        let before = target / self.target.len() * batches * lines * width;
        (0..batches).flat_map(move |batch| {
            (0..lines).step_by(step).map(move |first| {
                let last = (first + step).min(lines);
                let start = before + batch * lines * width;
                Block {
                    range: start + first * width..start + last * width,
                    batch: file * batches + batch,
                    lines: first..last,
                }
            })
        })
    }

    /// Calls `each` for runs of numbers with: the place of the first in parameter `target`, where they are contiguous; its place in the block of
    /// tensor `source`; the step from one to the next there; and their number.
    pub(super) fn each(
        &self,
        [target, source]: [usize; 2],
        block: &Block,
        mut each: impl FnMut(usize, usize, usize, usize),
    ) {
        let target = self.column_of(target);
        let [target_columns, source_columns] = [self.target[target], self.source[source]];
        let runs = self.runs.iter();
        for run in runs.filter(|run| run.target == target && run.source == source) {
            if !self.transposed {
                for (line, row) in block.lines.clone().enumerate() {
                    let target_row = block.batch * self.rows + row;
                    let target = target_row * target_columns + run.target_column;
                    let source = line * source_columns + run.source_column;
                    each(target, source, 1, run.len);
                }
                continue;
            }
            let first = run.source_column.max(block.lines.start);
            let last = (run.source_column + run.len).min(block.lines.end);
            if first >= last {
                continue;
            }
            let target_column = run.target_column + first - run.source_column;
            for row in 0..self.rows {
                let target_row = block.batch * self.rows + row;
                let target = target_row * target_columns + target_column;
                let source = (first - block.lines.start) * self.rows + row;
                each(target, source, self.rows, last - first);
            }
        }
    }
}

/// Copies `len` numbers of `width` bytes, every `from_step`-th number of one slice to every `to_step`-th of the other.
pub(super) fn copy(
    from: &[u8],
    from_step: usize,
    to: &mut [u8],
    to_step: usize,
    [len, width]: [usize; 2],
) {
    match width {
        _ if from_step == 1 && to_step == 1 => {
            to[..len * width].copy_from_slice(&from[..len * width]);
        }
        2 => copy_each::<2>(from, from_step, to, to_step, len),
        4 => copy_each::<4>(from, from_step, to, to_step, len),
        8 => copy_each::<8>(from, from_step, to, to_step, len),
        _ => unreachable!("floating-point numbers of {width} bytes"),
    }
}

/// [`copy`] for a width that the compiler knows, so that a number is moved by one instruction.
fn copy_each<const W: usize>(
    from: &[u8],
    from_step: usize,
    to: &mut [u8],
    to_step: usize,
    len: usize,
) {
    let from = from.as_chunks::<W>().0.iter().step_by(from_step);
    let to = to.as_chunks_mut::<W>().0.iter_mut().step_by(to_step);
    to.zip(from).take(len).for_each(|(to, from)| *to = *from);
}
