//! Mask functions.

use core::fmt::{Debug, Formatter, Result};
use std::sync::Arc;

use burn::tensor::{Bool, Tensor};
use burn_attn_kernels_cpu::tiled::{Looped, VisibleForm, VisibleForms};

use super::{
    captured::{Captured, Captures, Entries, Numbers},
    pairs::Pairs,
    table::BlockTable,
};

type Function = Arc<dyn Fn(&Pairs) -> Tensor<4, Bool> + Send + Sync>;

/// A function that a user writes, which says which pairs of a block are visible, as a part of a mask: [`AttentionMask::function`](crate::AttentionMask::function).
///
/// The function gets the indices of a block and returns bools that broadcast to `[batch, heads_q, queries, keys]`; `true` shows a key to a query.
/// Nothing has a gradient.
///
/// # Panics
///
/// In the call of attention, with a sentence that names the function: when the shape that it returns does not broadcast to the block, when it returns a tensor on another device, and when a captured tensor
/// does not fit the scores.
///
/// # Cost
///
/// Calls with a function are computed by the backend's operations, block by block, on every backend, GPUs included; with a [form for single pairs](Self::scalar), by the
/// kernels of flex and ndarray. With a [table](Self::in_blocks), blocks of the call of which the function hides all are left out, where it shows all it does not run, and
/// a function that shows or hides only whole blocks is that table, which the kernels of GPUs read too.
///
/// # Source
///
/// Dong et al., "Flex Attention" (arXiv:2412.05496), section 3. PyTorch equivalent: `mask_mod` of `flex_attention`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Int, Tensor};
/// use burn_attn_ops::{AttentionMask, AttentionOptions, Captured, MaskFunction, attention};
///
/// // Tokens see those of their own document, and no later ones.
/// let device = Device::default();
/// let documents = Tensor::<2, Int>::from_data([[0, 0, 0, 1, 1]], &device);
/// let mask = MaskFunction::new("causal documents", |pairs| {
///     let [of_query, of_key] = pairs.ints();
///     let [batch, _, queries, keys] = pairs.sizes();
///     let [of_query, of_key] = [of_query, of_key].map(|x| x.expand([batch, 1, queries, keys]));
///     of_query.equal(of_key).bool_and(pairs.distances().greater_equal_elem(0))
/// })
/// .capture(Captured::per_query(documents.clone()))
/// .capture(Captured::per_key(documents));
/// let options = AttentionOptions::default().mask(AttentionMask::function(mask));
/// let x = Tensor::<4>::random([1, 2, 5, 8], Distribution::Default, &device);
/// assert_eq!(attention(x.clone(), x.clone(), x, options).dims(), [1, 2, 5, 8]);
/// ```
#[derive(Clone)]
pub struct MaskFunction {
    pub(crate) captures: Captures,
    /// In a call only if it holds there.
    pub(crate) table: Option<Arc<BlockTable>>,
    pub(crate) function: Function,
    pub(crate) form: Option<Arc<dyn VisibleForms>>,
}

impl MaskFunction {
    /// A function that captures nothing. The name is for messages.
    pub fn new(
        name: impl Into<String>,
        function: impl Fn(&Pairs) -> Tensor<4, Bool> + Send + Sync + 'static,
    ) -> Self {
        Self {
            captures: Captures::none(name.into()),
            table: None,
            function: Arc::new(function),
            form: None,
        }
    }

    /// Hands `captured` to the function: floats in [`Pairs::floats`], and integers in [`Pairs::ints`].
    ///
    /// # Panics
    ///
    /// When they are numbers [by distance](Captured::by_distance), which only score functions read.
    pub fn capture(mut self, mut captured: Captured) -> Self {
        assert!(
            captured.entries != Entries::Distances,
            "attention: the mask function '{}' cannot capture numbers by distance",
            self.captures.frame.name
        );
        if let Numbers::Float(tensor) = captured.tensor {
            captured.tensor = Numbers::Float(tensor.without_autodiff());
        }
        self.captures.tensors.push(captured);
        // It was another function's.
        self.table = None;
        self
    }

    /// Adds the same function pair by pair, which reads the captured integers in their order: the kernels of flex and ndarray run it instead of the tensor operations, and
    /// ask it about whole blocks, unless there is a single query (a step of decoding), for which only a [table](Self::in_blocks) leaves keys out. A form reads at
    /// most 6 tensors. Nothing checks that both forms are the same function.
    ///
    /// Calls for which kernels have no such form take the tensor operations: on other backends, beside captured floats, with integers that are
    /// [whole](Captured::whole) or have both queries and keys, beside another mask function or a score function without a form, with a cache that has dropped keys, and for
    /// queries that a module places beyond the keys or far before them.
    ///
    /// # Panics
    ///
    /// In the call of attention, when `form` reads another number of integers than are captured.
    pub fn scalar<const N: usize>(mut self, form: impl VisibleForm<N>) -> Self {
        self.form = Some(Arc::new(Looped::<_, N>(form)));
        self
    }

    /// Whether kernels that compute pair by pair have all that they need.
    pub(crate) fn is_scalar(&self) -> bool {
        let mut ints = self.captures.ints();
        let are_readable = ints.all(|(ints, entries)| {
            let [_, _, queries, keys] = ints.dims();
            entries == Entries::Pairs && (queries == 1 || keys == 1)
        });
        self.form.is_some()
            && self.captures.floats().next().is_none()
            && are_readable
            && self.captures.frame.is_of_call()
    }
}

impl Debug for MaskFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("MaskFunction")
            .field("captures", &self.captures)
            .finish_non_exhaustive()
    }
}
