//! What a mask function shows of blocks of queries and keys, made once for many calls.

use core::ops::Range;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use burn_attn_kernels_cpu::{BlockSize, tiled::Shown};

/// What a function shows of every block of scores of some sizes, on the host.
#[derive(Clone, Debug)]
pub struct BlockTable {
    /// `[batch, heads_q, len_q, len_kv]`
    pub(crate) scores: [usize; 4],
    pub(crate) size: BlockSize,
    /// True for a block of which something is shown, `[batch or 1, heads_q or 1, rows, columns]`.
    pub(crate) visible: Tensor<4, Bool>,
    /// True for a block of which all is shown.
    pub(crate) whole: Vec<bool>,
    /// Those of `visible`.
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
        let mut dims = [1, 1, rows, columns];
        let mut strips = Vec::new();
        for row in 0..rows {
            let first = row * size.queries;
            let visible = visible(first..len_q.min(first + size.queries));
            let [batch, heads, _, _] = visible.dims();
            dims = [dims[0].max(batch), dims[1].max(heads), rows, columns];
            strips.push(Strip::new(visible));
        }
        let [batch, heads, _, _] = dims;
        let rows = (0..batch * heads).flat_map(|row| strips.iter().map(move |strip| (row, strip)));
        let blocks = rows.flat_map(|(row, strip)| {
            let at = [row / heads, row % heads];
            (0..columns).map(move |column| {
                let first = column * size.keys;
                strip.shown(at, first..len_kv.min(first + size.keys))
            })
        });
        let blocks: Vec<Shown> = blocks.collect();
        let any = blocks.iter().map(|&shown| shown != Shown::Nothing);
        Self {
            scores,
            size,
            visible: Tensor::from_data(TensorData::new(any.collect(), dims), device),
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

    /// Of these keys, those from the first to the last that one of the queries may see.
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
        let (of_rows, of_columns) = (
            entries(queries, self.size.queries),
            entries(keys, self.size.keys),
        );
        (0..batch * heads).flat_map(move |head| {
            let of_columns = of_columns.clone();
            of_rows.clone().flat_map(move |row| {
                let first = (head * rows + row) * columns;
                of_columns
                    .clone()
                    .map(move |column| self.blocks[first + column])
            })
        })
    }
}

/// What a row of blocks sees.
struct Strip {
    dims: [usize; 4],
    visible: Vec<bool>,
}

impl Strip {
    fn new(visible: Tensor<4, Bool>) -> Self {
        Self {
            dims: visible.dims(),
            visible: visible.into_data().iter::<bool>().collect(),
        }
    }

    fn shown(&self, [batch_item, head]: [usize; 2], keys: Range<usize>) -> Shown {
        let [batch, heads, queries, len_kv] = self.dims;
        let row = batch_item.min(batch - 1) * heads + head.min(heads - 1);
        let keys = match len_kv {
            1 => 0..1,
            _ => keys,
        };
        let rows = (0..queries).map(|query| {
            let first = (row * queries + query) * len_kv;
            &self.visible[first + keys.start..first + keys.end]
        });
        let (mut some, mut all) = (false, true);
        for visible in rows.flatten() {
            some |= visible;
            all &= visible;
        }
        match (some, all) {
            (_, true) => Shown::All,
            (true, _) => Shown::Some,
            _ => Shown::Nothing,
        }
    }
}
