//! Score functions.

use core::fmt::{Debug, Formatter, Result};
use std::sync::Arc;

use burn::tensor::{DType, Tensor};
use burn_attn_kernels_cpu::tiled::{Looped, ScoreForm, ScoreForms};

use super::{
    captured::{Captured, Captures, Entries, Numbers},
    pairs::Pairs,
};

type Function = Arc<dyn Fn(Tensor<4>, &Pairs) -> Tensor<4> + Send + Sync>;

/// A function that a user writes, from the scaled scores of a block to its scores, before softcap, mask and bias, with gradients.
///
/// The function runs on the scores of one block at a time, `[batch, heads_q, queries, keys]`, and returns as many. They are f64 where the operands are, otherwise
/// f32; `cast` brings indices to their precision, where `float` has the device's, f32. What it says of a pair must depend on that pair alone. It runs again in the
/// backward pass, where Burn's autodiff differentiates it block by block, so memory stays linear in the lengths. Tensors with a gradient must
/// therefore be [captured](Self::capture) rather than moved into the closure. To hide keys, use a [`MaskFunction`](crate::MaskFunction).
///
/// # Hidden pairs
///
/// Where the mask hides a pair, the function sees a score of 1, and in the backward pass captured floats of 1; a [form for single numbers](Self::scalar) sees what is there. What it makes of the pair, NaN and infinite derivatives
/// included, reaches no result and no gradient: it is selected, not multiplied by 0. A penalty by the logarithm of the distance needs no care for later keys. The one exception is the gradient of a tensor
/// captured [whole](crate::Captured::whole), which a function may read at any index: it is NaN if the derivative by it is not finite for a hidden pair.
///
/// # Panics
///
/// In the call of attention, with a sentence that names the function: when it returns another shape or precision than it got, or a tensor on another device, when it uses a tensor
/// with autodiff that it has not captured, when a captured tensor does not fit the scores, and, on flex and ndarray, when it returns NaN for a visible pair whose numbers
/// are not. On every other backend a check for NaN would wait for the device. +∞ is not refused: without a softcap it makes the row NaN.
///
/// # Cost
///
/// Calls with a function are computed by the backend's operations, block by block, on every backend, GPUs included; with a [form for single numbers](Self::scalar), by
/// the kernels of flex and ndarray.
///
/// # Source
///
/// Dong et al., "Flex Attention" (arXiv:2412.05496), section 3. PyTorch equivalent: `score_mod` of `flex_attention`.
///
/// Gemma's softcap after a learned bias, where [`AttentionBias`](crate::AttentionBias) comes after it:
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_ops::{AttentionOptions, Captured, ScoreFunction, attention};
///
/// let device = Device::default();
/// let bias = Tensor::<4>::random([1, 2, 5, 5], Distribution::Default, &device);
/// let biased = ScoreFunction::new("bias", |scores, pairs| {
///     let [bias] = pairs.floats();
///     scores + bias
/// })
/// .capture(Captured::per_pair(bias));
/// let options = AttentionOptions::default().score_function(biased).softcap(30.0);
/// let x = Tensor::<4>::random([1, 2, 5, 8], Distribution::Default, &device);
/// assert_eq!(attention(x.clone(), x.clone(), x, options).dims(), [1, 2, 5, 8]);
/// ```
#[derive(Clone)]
pub struct ScoreFunction {
    /// In a call without the floats, which are an operand.
    pub(crate) captures: Captures,
    /// In a call, where that operand has the floats.
    pub(crate) slots: Vec<Slot>,
    pub(crate) function: Function,
    pub(crate) form: Option<Arc<dyn ScoreForms>>,
}

impl ScoreFunction {
    /// A function that captures nothing. The name is for messages.
    pub fn new(
        name: impl Into<String>,
        function: impl Fn(Tensor<4>, &Pairs) -> Tensor<4> + Send + Sync + 'static,
    ) -> Self {
        Self {
            captures: Captures::none(name.into()),
            slots: Vec::new(),
            function: Arc::new(function),
            form: None,
        }
    }

    /// Hands `captured` to the function: floats in [`Pairs::floats`], with their gradient if they are tracked, and integers in [`Pairs::ints`].
    pub fn capture(mut self, captured: Captured) -> Self {
        self.captures.tensors.push(captured);
        self
    }

    /// Adds the same function number by number, which reads the captured floats in their order: the kernels of flex and ndarray run it, and its derivatives, instead
    /// of the tensor operations. A form reads at most 6 tensors. Nothing checks that both forms are the same function, and only
    /// a NaN of the tensor form is refused.
    ///
    /// Calls for which kernels have no such form take the tensor operations: on other backends, beside captured integers, with captured tensors that are
    /// [whole](Captured::whole) or have both queries and keys, beside a mask function without a form or two mask functions, with a cache that has dropped keys, and for
    /// queries that a module places beyond the keys or far before them.
    ///
    /// # Panics
    ///
    /// In the call of attention, when `form` reads another number of floats than are captured.
    pub fn scalar<const N: usize>(mut self, form: impl ScoreForm<N>) -> Self {
        self.form = Some(Arc::new(Looped::<_, N>(form)));
        self
    }

    /// The function in one call, and its floats side by side, in `dtype`: one operand, whose gradient Burn takes apart again. `numbers_by_distance` brings
    /// those by distance into the order of the call.
    pub(crate) fn into_call(
        mut self,
        dtype: DType,
        numbers_by_distance: impl Fn(Tensor<2>) -> Tensor<2>,
    ) -> (Self, Option<Tensor<1>>) {
        let (mut floats, mut start) = (Vec::new(), 0);
        for (tensor, entries) in self.captures.floats() {
            let tensor = match entries {
                Entries::Distances => {
                    let [_, heads, _, distances] = tensor.dims();
                    let numbers = tensor.clone().reshape([heads, distances]);
                    let numbers = numbers_by_distance(numbers);
                    let [heads, distances] = numbers.dims();
                    numbers.reshape([1, heads, 1, distances])
                }
                _ => tensor.clone(),
            };
            let (shape, len) = (tensor.dims(), tensor.shape().num_elements());
            self.slots.push(Slot {
                start,
                shape,
                entries,
            });
            floats.push(tensor.cast(dtype).reshape([len]));
            start += len;
        }
        let captured = &mut self.captures.tensors;
        captured.retain(|captured| matches!(captured.tensor, Numbers::Int(_)));
        let floats = match floats.len() {
            0 => None,
            1 => floats.pop(),
            _ => Some(Tensor::cat(floats, 0)),
        };
        (self, floats)
    }

    /// Whether kernels that compute number by number have all that they need.
    pub(crate) fn is_scalar(&self) -> bool {
        let is_readable = |slot: &Slot| match slot.entries {
            Entries::Pairs => slot.shape[2] == 1 || slot.shape[3] == 1,
            Entries::Distances => true,
            Entries::Whole => false,
        };
        self.form.is_some()
            && self.captures.ints().next().is_none()
            && self.slots.iter().all(is_readable)
            && self.captures.frame.is_of_call()
    }
}

impl Debug for ScoreFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ScoreFunction")
            .field("captures", &self.captures)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

/// Where a captured tensor is in the operand that has all floats.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub(crate) start: usize,
    pub(crate) shape: [usize; 4],
    pub(crate) entries: Entries,
}

impl Slot {
    /// The tensor, out of the operand that has all floats.
    pub(crate) fn tensor(&self, floats: &Tensor<1>) -> Tensor<4> {
        let len = self.shape.iter().product();
        let numbers = floats.clone().narrow(0, self.start, len);
        numbers.reshape(self.shape)
    }
}
