//! Where the numbers of our parameters are in their tensors, for reading and for writing.

mod columns;

use std::ops::Range;

use columns::{divided, groups, pairs, runs};

/// How many numbers are moved at once: few enough for the cache, and little compared with a tensor.
const BLOCK: usize = 1 << 18;

/// How parameters that are side by side correspond to tensors that are side by side.
///
/// Ours is `[batches, rows, columns]`. Theirs is the same, or `[batches, columns, rows]` if it is transposed. "Side by side" means along
/// the columns. Along the batches, ours may consist of `files` tensors of theirs. A stacked tensor of theirs holds several of ours, one after
/// the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) files: usize,
    /// How many of ours are in each of theirs, one after the other, if theirs have an axis for them.
    stacked: Option<usize>,
    /// The batches of one file.
    batches: usize,
    rows: usize,
    transposed: bool,
    /// The shape of theirs without the columns, which are at `column_axis`.
    shape: Vec<usize>,
    column_axis: usize,
    /// How many columns each parameter has, and each tensor.
    ours: Vec<usize>,
    theirs: Vec<usize>,
    runs: Vec<Run>,
}

/// Columns that are contiguous both in one of ours and in one of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    ours: usize,
    our_column: usize,
    theirs: usize,
    their_column: usize,
    len: usize,
}

/// How the columns of theirs are arranged.
pub(super) struct Arrangement<'a> {
    /// How many of ours are in each of theirs, one after the other, if theirs have an axis for them.
    pub(super) stacked: Option<usize>,
    pub(super) transposed: bool,
    /// Whether each index of our first axis is in a file of its own.
    pub(super) files: bool,
    pub(super) tensors: usize,
    pub(super) shares: &'a [usize],
    pub(super) interleaved: &'a [usize],
    /// The width of a head for each tensor whose rotary pairs are beside each other; 0 for the others, empty if there is none.
    pub(super) rotary_pairs: &'a [usize],
}

/// Contiguous numbers of one of their tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// In numbers.
    pub(super) range: Range<usize>,
    batch: usize,
    /// Rows, or columns if theirs is transposed.
    lines: Range<usize>,
}

impl Layout {
    /// The layout of parameters of these shapes.
    ///
    /// # Errors
    ///
    /// When they do not fit the arrangement.
    pub(super) fn new(ours: &[&[usize]], arrangement: &Arrangement) -> Result<Self, String> {
        let Some(&first) = ours.first() else {
            return Err("a row needs a parameter".into());
        };
        let side_by_side = ours.len() / arrangement.stacked.unwrap_or(1);
        if ours
            .chunks(side_by_side)
            .any(|one| one != &ours[..side_by_side])
        {
            return Err(format!("parameters of shapes {ours:?} are not a stack"));
        }
        let ours = &ours[..side_by_side];
        let Some((_, before)) = first.split_last() else {
            return Err("a parameter has no axis".into());
        };
        let fits = |shape: &&[usize]| shape.split_last().is_some_and(|(_, other)| other == before);
        if !ours.iter().all(fits) {
            return Err(format!(
                "parameters of shapes {ours:?} do not lie side by side"
            ));
        }
        let (files, inner) = match (arrangement.files, before.split_first()) {
            (false, _) => (1, before),
            (true, Some((&files, inner))) => (files, inner),
            (true, None) => {
                return Err(format!(
                    "a parameter of shape {first:?} has no axis for several tensors"
                ));
            }
        };
        let (rows, outer) = match inner.split_last() {
            Some((&rows, outer)) => (rows, outer),
            None if arrangement.transposed => {
                return Err(format!(
                    "a parameter of shape {first:?} cannot be transposed"
                ));
            }
            None => (1, inner),
        };
        let ours: Vec<usize> = ours
            .iter()
            .filter_map(|shape| shape.last().copied())
            .collect();
        let columns = ours.iter().sum();
        let theirs = divided(columns, arrangement)?;
        let groups = match arrangement.rotary_pairs {
            [] => groups(columns, arrangement.interleaved)?,
            d_heads => pairs(&theirs, d_heads)?,
        };
        let column_axis = outer.len() + usize::from(!arrangement.transposed && !inner.is_empty());
        Ok(Self {
            files,
            stacked: arrangement.stacked,
            batches: outer.iter().product(),
            rows,
            transposed: arrangement.transposed,
            shape: inner.to_vec(),
            column_axis,
            runs: runs(&ours, &theirs, &groups),
            ours,
            theirs,
        })
    }

    /// The shape of tensor `theirs`.
    pub(super) fn shape(&self, theirs: usize) -> Vec<usize> {
        let mut shape = self.shape.clone();
        shape.insert(self.column_axis, self.theirs[theirs]);
        shape.splice(0..0, self.stacked);
        shape
    }

    /// How many numbers parameter `ours` has.
    pub(super) fn len(&self, ours: usize) -> usize {
        self.files * self.batches * self.rows * self.ours[self.column_of(ours)]
    }

    /// The place of parameter `ours` among those side by side, of which each part of a stack has all.
    fn column_of(&self, ours: usize) -> usize {
        ours % self.ours.len()
    }

    /// Whether some numbers of parameter `ours` are in tensor `theirs`.
    pub(super) fn shares(&self, ours: usize, theirs: usize) -> bool {
        let ours = self.column_of(ours);
        let mut runs = self.runs.iter();
        runs.any(|run| run.ours == ours && run.theirs == theirs)
    }

    /// Tensor `theirs` of `file`, block by block; of a stack, only the part that is parameter `ours`.
    pub(super) fn blocks(
        &self,
        [ours, theirs]: [usize; 2],
        file: usize,
    ) -> impl Iterator<Item = Block> + use<> {
        let columns = self.theirs[theirs];
        let (lines, width) = match self.transposed {
            true => (columns, self.rows),
            false => (self.rows, columns),
        };
        let step = (BLOCK / width.max(1)).max(1);
        let batches = self.batches;
        let before = ours / self.ours.len() * batches * lines * width;
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

    /// Calls `each` for runs of numbers with: the place of the first in parameter `ours`, where they are contiguous; its place in the block of
    /// tensor `theirs`; the step from one to the next there; and their number.
    fn each(
        &self,
        [ours, theirs]: [usize; 2],
        block: &Block,
        mut each: impl FnMut(usize, usize, usize, usize),
    ) {
        let ours = self.column_of(ours);
        let [our_columns, their_columns] = [self.ours[ours], self.theirs[theirs]];
        let runs = self.runs.iter();
        for run in runs.filter(|run| run.ours == ours && run.theirs == theirs) {
            if !self.transposed {
                for (line, row) in block.lines.clone().enumerate() {
                    let our_row = block.batch * self.rows + row;
                    let ours = our_row * our_columns + run.our_column;
                    each(ours, line * their_columns + run.their_column, 1, run.len);
                }
                continue;
            }
            let first = run.their_column.max(block.lines.start);
            let last = (run.their_column + run.len).min(block.lines.end);
            if first >= last {
                continue;
            }
            for row in 0..self.rows {
                let our_row = block.batch * self.rows + row;
                let ours = our_row * our_columns + run.our_column + (first - run.their_column);
                let theirs = (first - block.lines.start) * self.rows + row;
                each(ours, theirs, self.rows, last - first);
            }
        }
    }

    /// Copies the numbers of a block, `width` bytes each, into those of a parameter.
    pub(super) fn import(
        &self,
        pair: [usize; 2],
        block: &Block,
        theirs: &[u8],
        ours: &mut [u8],
        width: usize,
    ) {
        self.each(pair, block, |our, their, step, len| {
            copy(
                &theirs[their * width..],
                step,
                &mut ours[our * width..],
                1,
                [len, width],
            );
        });
    }

    /// Copies the numbers of a parameter, `width` bytes each, into those of a block.
    pub(super) fn export(
        &self,
        pair: [usize; 2],
        block: &Block,
        ours: &[u8],
        theirs: &mut [u8],
        width: usize,
    ) {
        self.each(pair, block, |our, their, step, len| {
            copy(
                &ours[our * width..],
                1,
                &mut theirs[their * width..],
                step,
                [len, width],
            );
        });
    }
}

/// Copies `len` numbers of `width` bytes, every `from_step`-th number of one slice to every `to_step`-th of the other.
fn copy(from: &[u8], from_step: usize, to: &mut [u8], to_step: usize, [len, width]: [usize; 2]) {
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
