//! Where the numbers of the target parameters are in the source tensors, for reading and for writing.

mod columns;

use std::ops::Range;

use super::{Source, ensure};
use columns::{Run, divided, gated, interleaved, rotary_pairs, runs};

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
    /// Whether the source has no axis.
    scalar: bool,
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
    /// The range in the source tensor (numbers).
    pub(super) range: Range<usize>,
    batch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
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
        let &first = target.first().ok_or("a row needs a parameter")?;
        let (side_by_side, _) = target.split_at(target.len() / stacked.unwrap_or(1));
        let mut stack = target.chunks(side_by_side.len());
        let is_stack = stack.all(|one| one == side_by_side);
        ensure!(is_stack, "parameters of shapes {target:?} are not a stack");
        let (_, before) = first.split_last().ok_or("a parameter has no axis")?;
        let widths = side_by_side.iter().map(|shape| match shape.split_last() {
            Some((&columns, other)) if other == before => Some(columns),
            _ => None,
        });
        let target: Option<Vec<usize>> = widths.collect();
        let apart = || format!("parameters of shapes {side_by_side:?} do not lie side by side");
        let target = target.ok_or_else(apart)?;
        ensure!(
            !has_files || !before.is_empty(),
            "a parameter of shape {first:?} has no axis for several tensors"
        );
        let (files, inner) = before.split_at(usize::from(has_files));
        let (outer, rows) = inner.split_at(inner.len().saturating_sub(1));
        ensure!(
            !rows.is_empty() || !arrangement.transposed,
            "a parameter of shape {first:?} cannot be transposed"
        );
        let columns: usize = target.iter().sum();
        ensure!(
            !arrangement.scalar || (first == [1] && columns == 1 && stacked.is_none()),
            "parameters of shapes {side_by_side:?} are not one number"
        );
        let source = divided(columns, arrangement)?;
        let Source {
            interleaved: widths,
            rotary_pairs: d_heads,
            gated: of_gates,
            ..
        } = arrangement;
        let orders = [!widths.is_empty(), !d_heads.is_empty(), of_gates.is_some()];
        ensure!(
            orders.into_iter().filter(|order| *order).count() <= 1,
            "of interleaved {widths:?}, rotary_pairs {d_heads:?} and gated {of_gates:?}, a source takes one"
        );
        let groups = match (d_heads.as_slice(), of_gates) {
            ([], Some(d_head)) => gated(&source, *d_head)?,
            ([], None) => interleaved(columns, widths)?,
            (d_heads, _) => rotary_pairs(&source, d_heads)?,
        };
        Ok(Self {
            // The product of no sizes is 1.
            files: files.iter().product(),
            batches: outer.iter().product(),
            rows: rows.iter().product(),
            transposed: arrangement.transposed,
            scalar: arrangement.scalar,
            shape: stacked.iter().chain(inner).copied().collect(),
            runs: runs(&target, &source, &groups),
            target,
            source,
        })
    }

    pub(super) fn shape(&self, source: usize) -> Vec<usize> {
        if self.scalar {
            return Vec::new();
        }
        let mut shape = self.shape.clone();
        let columns = shape.len() - usize::from(self.transposed);
        shape.insert(columns, self.source[source]);
        shape
    }

    pub(super) fn len(&self, target: usize) -> usize {
        self.files * self.batches * self.rows * self.target[self.column_of(target)]
    }

    /// The place of parameter `target` among those side by side; every part of a stack has all of these places.
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
        let (batches, transposed) = (self.batches, self.transposed);
        let before = target / self.target.len() * batches * lines * width;
        (0..batches).flat_map(move |batch| {
            (0..lines).step_by(step).map(move |first| {
                let last = (first + step).min(lines);
                let start = before + batch * lines * width;
                let (rows, columns) = match transposed {
                    true => (0..width, first..last),
                    false => (first..last, 0..width),
                };
                Block {
                    range: start + first * width..start + last * width,
                    batch: file * batches + batch,
                    rows,
                    columns,
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
            let first = run.source_column.max(block.columns.start);
            let last = (run.source_column + run.len).min(block.columns.end);
            if first >= last {
                continue;
            }
            let target_column = run.target_column + first - run.source_column;
            let column = first - block.columns.start;
            for (line, row) in block.rows.clone().enumerate() {
                let target_row = block.batch * self.rows + row;
                let target = target_row * target_columns + target_column;
                let (source, step) = match self.transposed {
                    true => (column * self.rows + line, self.rows),
                    false => (line * source_columns + column, 1),
                };
                each(target, source, step, last - first);
            }
        }
    }
}
