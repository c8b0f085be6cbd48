//! A mask function as a part of a mask, and what it shows of blocks.

use core::slice;
use std::sync::Arc;

use burn::{
    backend::Dispatch,
    tensor::{Device, Tensor},
};
use burn_attn_kernels_cpu::{BlockSize, PositionMask};

use super::table::BlockTable;
use crate::{
    AttentionMask, MaskFunction, check,
    composed::{
        function::{self, block},
        part::Part,
    },
};

impl AttentionMask {
    /// A query sees a key where the function says so.
    pub fn function(function: MaskFunction) -> Self {
        Self {
            functions: vec![function],
            ..Self::default()
        }
    }
}

impl MaskFunction {
    /// The function with a table of the blocks that it shows whole, in part, or not at all, for scores `[batch, heads_q, len_q, len_kv]`: made once here, and read by every
    /// call of a mask that has this function or a clone of it, in all layers and steps.
    ///
    /// The last query stands at the last key. A call with query offsets or another causal alignment asks the function itself, and so does
    /// a cache that has dropped keys. Captured tensors come before the table.
    ///
    /// # Panics
    ///
    /// When a size of a block is 0, and, as a call does, when the function does not fit the scores. The call of attention panics when its scores have other
    /// sizes.
    ///
    /// # Cost
    ///
    /// The function runs on `size.queries` queries and all keys at a time, and what it says is read from the device. The table takes two bytes of the host and
    /// a bool of the device for each block, times batch or heads where the function says different things of them.
    ///
    /// # Source
    ///
    /// PyTorch equivalent: `create_block_mask` of `torch.nn.attention.flex_attention`.
    pub fn in_blocks(
        mut self,
        scores: [usize; 4],
        size: impl Into<BlockSize>,
        device: &Device,
    ) -> Self {
        let size @ BlockSize { queries, keys } = size.into();
        assert!(
            queries > 0 && keys > 0,
            "a block of a mask needs at least 1 query and 1 key, but has {queries} and {keys}"
        );
        self.table = None;
        let [batch, heads, len_q, len_kv] = scores;
        check::captured(&self.captures, scores, true);
        if scores.contains(&0) {
            return self;
        }
        let table = BlockTable::new(scores, size, device, |queries| {
            let part = Part {
                queries,
                ..Part::whole(len_q, len_kv)
            };
            let hidden = function::hidden::<Dispatch>(slice::from_ref(&self), &part, |frame| {
                let sizes = [batch, heads];
                block::<Dispatch>(frame, sizes, &part, None, PositionMask::default(), device)
            });
            Tensor::from_dispatch(hidden.expect("there is a function")).bool_not()
        });
        self.table = Some(Arc::new(table));
        self
    }
}
