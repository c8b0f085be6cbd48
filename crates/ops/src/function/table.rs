//! What a mask function shows of blocks of queries and keys, made once for many calls.

use core::ops::Range;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use burn_attn_kernels_cpu::{BlockSize, tiled::Shown};

/// What a function shows of every block of scores of some sizes, on the host.
#[derive(Clone, Debug)]
pub struct BlockTable {
    /// `[batch or 1, heads_q or 1, len_q, len_kv]`
    pub(crate) scores: [usize; 4],
    pub(crate) size: BlockSize,
    /// True for a block of which something is shown, `[batch or 1, heads_q or 1, rows, columns]`.
    pub(crate) visible: Tensor<4, Bool>,
    /// True for a block of which all is shown.
    pub(crate) whole: Vec<bool>,
    /// The dimensions of `visible`.
    pub(crate) dims: [usize; 4],
    blocks: Vec<Shown>,
}

impl BlockTable {
    /// `visible` gets ranges of queries, and says what they see: `[batch or 1, heads_q or 1, queries or 1, len_kv or 1]`. It is read back.
    pub(super) fn new(
        scores: [usize; 4],
        size: BlockSize,
        device: &Device,
        visible: impl Fn(Range<usize>) -> Tensor<4, Bool>,
    ) -> Self {
        let [_, _, len_q, len_kv] = scores;
        let [rows, columns] = size.table(len_q, len_kv);
        let strips = (0..rows).map(|row| {
            let first = row * size.queries;
            let queries = first..len_q.min(first + size.queries);
            Strip::new(visible(queries), size, len_kv)
        });
        let strips: Vec<Strip> = strips.collect();
        let most = |count: fn(&Strip) -> usize| strips.iter().map(count).max().unwrap_or(1);
        let [batch, heads] = [most(|strip| strip.batch), most(|strip| strip.heads)];
        let dims = [batch, heads, rows, columns];
        let rows = (0..batch * heads).flat_map(|row| strips.iter().map(move |strip| (row, strip)));
        let blocks = rows.flat_map(|(row, strip)| strip.row([row / heads, row % heads], columns));
        let blocks: Vec<Shown> = blocks.copied().collect();
        let any = blocks.iter().map(|&shown| shown != Shown::Nothing);
        Self {
            scores,
            size,
            visible: Tensor::from_data(
                TensorData::new(any.collect(), dims),
                &device.clone().without_autodiff(),
            ),
            whole: blocks.iter().map(|&shown| shown == Shown::All).collect(),
            dims,
            blocks,
        }
    }

    /// Whether every block is shown or hidden as a whole.
    pub(crate) fn is_exact(&self) -> bool {
        !self.blocks.contains(&Shown::Some)
    }

    /// Whether some of the queries see some of the keys, in any head of any item.
    pub(crate) fn shows_any(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        self.of(queries, keys).any(|shown| shown != Shown::Nothing)
    }

    /// Whether all of the queries see all of the keys, in every head of every item.
    pub(crate) fn shows_all(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        self.of(queries, keys).all(|shown| shown == Shown::All)
    }

    /// The part of `keys` from the first to the last that one of the queries may see.
    pub(crate) fn keys_of(&self, queries: &Range<usize>, keys: Range<usize>) -> Range<usize> {
        let size = self.size.keys;
        let blocks = keys.start / size..keys.end.div_ceil(size);
        let mut seen =
            blocks.filter(|block| self.shows_any(queries, &(block * size..block * size + 1)));
        let Some(first) = seen.next() else {
            return keys.start..keys.start;
        };
        let last = seen.next_back().unwrap_or(first);
        keys.start.max(first * size)..keys.end.min((last + 1) * size)
    }

    fn of(
        &self,
        queries: &Range<usize>,
        keys: &Range<usize>,
    ) -> impl Iterator<Item = Shown> + use<'_> {
        let [batch, heads, rows, columns] = self.dims;
        let entries =
            |tokens: &Range<usize>, size: usize| tokens.start / size..tokens.end.div_ceil(size);
        let of_columns = entries(keys, self.size.keys);
        let of_rows = entries(queries, self.size.queries);
        let of_rows = (0..batch * heads).flat_map(move |head| {
            let row = move |row| (head * rows + row) * columns;
            of_rows.clone().map(row)
        });
        of_rows.flat_map(move |first| {
            let blocks = &self.blocks[first..first + columns];
            blocks[of_columns.clone()].iter().copied()
        })
    }
}

/// What a row of blocks sees: for each of its batch items and heads, all its columns.
struct Strip {
    batch: usize,
    heads: usize,
    blocks: Vec<Shown>,
}

impl Strip {
    /// From the pairs of one row, `[batch or 1, heads_q or 1, queries or 1, len_kv or 1]`, which are not kept.
    fn new(visible: Tensor<4, Bool>, size: BlockSize, len_kv: usize) -> Self {
        let [batch, heads, queries, of_keys] = visible.dims();
        let visible: Vec<bool> = visible.into_data().iter::<bool>().collect();
        let blocks = visible.chunks(queries * of_keys).flat_map(|visible| {
            (0..len_kv).step_by(size.keys).map(move |first| {
                let keys = match of_keys {
                    1 => 0..1,
                    _ => first..len_kv.min(first + size.keys),
                };
                let rows = visible.chunks(of_keys);
                shown(rows.flat_map(|row| &row[keys.clone()]))
            })
        });
        Self {
            batch,
            heads,
            blocks: blocks.collect(),
        }
    }

    fn row(&self, [batch_item, head]: [usize; 2], columns: usize) -> &[Shown] {
        let item = batch_item.min(self.batch - 1);
        let row = item * self.heads + head.min(self.heads - 1);
        &self.blocks[row * columns..][..columns]
    }
}

fn shown<'a>(visible: impl Iterator<Item = &'a bool>) -> Shown {
    let (mut some, mut all) = (false, true);
    for &visible in visible {
        some |= visible;
        all &= visible;
    }
    match (some, all) {
        (_, true) => Shown::All,
        (true, _) => Shown::Some,
        _ => Shown::Nothing,
    }
}
