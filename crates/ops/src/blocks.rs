//! Tables of blocks: the structure of block-sparse attention.

use core::ops::Range;

use burn::{
    backend::{Backend, Dispatch, TensorMetadata, tensor::BoolTensor},
    tensor::{Bool, Device, Shape, Tensor},
};
use burn_attn_kernels_cpu::BlockSize;

use crate::composed::{of_device, part::narrow_bool, position::both};

/// Panics unless a block of a mask has queries and keys.
pub(crate) fn check_size(BlockSize { queries, keys }: BlockSize) {
    assert!(
        queries > 0 && keys > 0,
        "a block of a mask needs at least 1 query and 1 key, but has {queries} and {keys}"
    );
}

/// Which blocks of queries and keys are visible.
#[derive(Clone, Debug)]
pub(crate) struct VisibleBlocks {
    /// `[batch or 1, heads_q or 1, blocks of queries or 1, blocks of keys or 1]`
    pub(crate) table: Tensor<4, Bool>,
    pub(crate) size: BlockSize,
}

impl VisibleBlocks {
    /// A table that shows what every table shows; `None` without tables or scores.
    ///
    /// Its blocks are the largest that divide the blocks of every table.
    pub(crate) fn intersection(
        tables: Vec<Self>,
        [len_q, len_kv]: [usize; 2],
    ) -> Option<VisibleBlocks> {
        let of_nothing = tables.iter().any(|table| table.table.dims().contains(&0));
        if len_q == 0 || len_kv == 0 || of_nothing {
            // There is nothing to hide, and operations on empty tensors divide by zero on ndarray.
            return None;
        }
        tables.into_iter().reduce(|first, second| {
            let size = BlockSize {
                queries: greatest_common_divisor(first.size.queries, second.size.queries),
                keys: greatest_common_divisor(first.size.keys, second.size.keys),
            };
            let [first, second] =
                [first, second].map(|one| one.in_blocks_of(size, [len_q, len_kv]));
            let table = both::<Dispatch>(first.into_dispatch(), second.into_dispatch());
            Self {
                table: Tensor::from_dispatch(table),
                size,
            }
        })
    }

    /// The table in smaller blocks, whose sizes divide those of the table.
    pub(crate) fn in_blocks_of(
        self,
        size: BlockSize,
        [len_q, len_kv]: [usize; 2],
    ) -> Tensor<4, Bool> {
        let [rows, columns] = size.table(len_q, len_kv);
        let table = of_device::<Dispatch>(self.table.into_dispatch());
        let table = repeat::<Dispatch>(table, 2, self.size.queries / size.queries, 0..rows);
        let table = repeat::<Dispatch>(table, 3, self.size.keys / size.keys, 0..columns);
        Tensor::from_dispatch(table)
    }
}

/// Repeats every entry of a dimension `times` times, and keeps a range of the result that begins within the first entry's
/// repetitions. A single entry, which stands for all, is left alone.
pub(crate) fn repeat<B: Backend>(
    table: BoolTensor<B>,
    dim: usize,
    times: usize,
    range: Range<usize>,
) -> BoolTensor<B> {
    let mut dims = table.shape().dims::<4>();
    if times == 1 || dims[dim] == 1 {
        return table;
    }
    if times > range.len() {
        // The range lies within at most two entries: only the range is made, however long the entries are.
        let second = times.clamp(range.start, range.end);
        let entries = [range.start..second, second..range.end];
        let entries = entries.into_iter().enumerate();
        let entries = entries.filter(|(_, kept)| !kept.is_empty());
        let entries = entries.map(|(entry, kept)| {
            dims[dim] = kept.len();
            let entry = narrow_bool::<B>(table.clone(), dim, &(entry..entry + 1));
            B::bool_expand(entry, Shape::new(dims))
        });
        return B::bool_cat(entries.collect(), dim);
    }
    // Not a selection: Burn 0.22.1's flex forgets that the result is a bool tensor.
    let mut apart = [dims[0], dims[1], dims[2], dims[3], 1];
    apart[dim + 1..].rotate_right(1);
    let table = B::bool_reshape(table, Shape::new(apart));
    apart[dim + 1] = times;
    let table = B::bool_expand(table, Shape::new(apart));
    dims[dim] *= times;
    let table = B::bool_reshape(table, Shape::new(dims));
    narrow_bool::<B>(table, dim, &range)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// A mask for no scores: Burn 0.22.1 cannot expand to an empty shape.
pub(crate) fn of_nothing(dims: [usize; 4], device: &Device) -> Tensor<4, Bool> {
    Tensor::full(dims, false, device)
}
