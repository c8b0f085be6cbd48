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
    AttentionMask, MaskFunction,
    blocks::check_size,
    check,
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
    /// The function with a table of the blocks that it shows whole, in part, or not at all, for scores `[batch or 1, heads_q or 1, len_q, len_kv]`: made once here, and read by every
    /// call of a mask that has this function or a clone of it, in all layers and steps.
    ///
    /// A batch of 1 fits calls of any batch, the smaller last one of an epoch too, and heads of 1 any number of heads: the function is asked about batch item 0, or head 0, alone,
    /// and what it says is read for all. It has to say the same of all of them, which nothing checks: where the table hides or shows a block whole, a call does not ask the
    /// function again. With tensors that have an entry for each batch item or head, give the batch or the heads of the call.
    ///
    /// The last query stands at the last key. A call with query offsets or another causal alignment asks the function itself, and so does
    /// a cache that has dropped keys. Captured tensors come before the table.
    ///
    /// # Panics
    ///
    /// When a size of a block is 0, and, as a call does, when the function does not fit the scores. The call of attention panics when its scores have other
    /// lengths, another batch than a table whose batch is not 1, or other heads than one whose heads are not 1.
    ///
    /// # Cost
    ///
    /// The function runs on `size.queries` queries and all keys at a time, and what it says is read from the device. The table takes two bytes of the host and
    /// a bool of the device for each block, times batch or heads where the function says different things of them. A call on another device copies the bools.
    ///
    /// # Source
    ///
    /// PyTorch equivalent: `create_block_mask` of `torch.nn.attention.flex_attention`, where 1 is `None`.
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn_ops::{AttentionMask, AttentionOptions, MaskFunction, attention};
    ///
    /// let device = Device::default();
    /// let near = MaskFunction::new("near", |pairs| pairs.distances().abs().lower_equal_elem(3));
    /// let near = AttentionMask::function(near.in_blocks([1, 1, 64, 64], 16, &device));
    /// for batch in [3, 2] {
    ///     let x = Tensor::<4>::random([batch, 4, 64, 8], Distribution::Default, &device);
    ///     let options = AttentionOptions::default().mask(near.clone());
    ///     assert_eq!(attention(x.clone(), x.clone(), x, options).dims(), [batch, 4, 64, 8]);
    /// }
    /// ```
    pub fn in_blocks(
        mut self,
        scores: [usize; 4],
        size: impl Into<BlockSize>,
        device: &Device,
    ) -> Self {
        let size = size.into();
        check_size(size);
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
