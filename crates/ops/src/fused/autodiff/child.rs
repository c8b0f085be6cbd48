//! The nodes of further results of an operation, which leave the work to one node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::{
    backend::{Backend, TensorMetadata, tensor::FloatTensor},
    tensor::{FloatDType, Shape},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

/// Where a child leaves its gradient for the working node; empty until the child has run.
pub(super) type GradientSlot<P> = Arc<Mutex<Option<P>>>;

pub(super) fn held<P>(slot: &GradientSlot<P>) -> MutexGuard<'_, Option<P>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result as a child of the working node, which finds the gradient in `slot`.
pub(super) fn child<B: Backend, C: CheckpointStrategy>(
    result: FloatTensor<B>,
    working: &FloatTensor<Autodiff<B, C>>,
    slot: GradientSlot<FloatTensor<B>>,
) -> FloatTensor<Autodiff<B, C>> {
    let state = (slot, working.shape(), FloatDType::from(working.dtype()));
    let prep = ChildRule.prepare::<C>([working.node()]).compute_bound();
    match prep.stateful() {
        OpsKind::Tracked(prep) => prep.finish(state, result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

/// Hands a gradient over to the working node.
#[derive(Debug)]
struct ChildRule;

impl<B: Backend> Backward<B, 1> for ChildRule {
    /// The slot, and the shape and dtype of the working node's result.
    type State = (GradientSlot<FloatTensor<B>>, Shape, FloatDType);

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let (slot, shape, dtype) = ops.state;
        if let [Some(working)] = ops.parents {
            // A node whose result has no gradient would not run; zeros change nothing.
            let zeros = B::float_zeros(shape, &gradient.device(), dtype);
            gradients.register::<B>(working.id, zeros);
        }
        *held(&slot) = Some(gradient);
    }
}
