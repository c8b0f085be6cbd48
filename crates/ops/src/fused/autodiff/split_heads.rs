//! Split heads: the gradients of several operands become the gradient of their projection.

use burn::backend::{
    AutodiffBackend, Backend, TensorMetadata,
    tensor::{Device, FloatTensor},
};
use burn::tensor::{FloatDType, Shape};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::GradientSlot;
use crate::composed;

/// The heads, with a node for each operand and one that joins their gradients.
pub(super) fn tracked<B: Backend, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    heads: Vec<usize>,
) -> Vec<FloatTensor<Autodiff<B, C>>> {
    let packed = Packed::<B> {
        shape: x.shape().dims::<3>(),
        device: x.device(),
        dtype: FloatDType::from(x.dtype()),
        heads,
    };
    match JoinRule.prepare::<C>([x.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let parts = composed::heads::split::<B>(x.into_primitive(), &packed.heads);
            let slots: Vec<_> = parts.iter().map(|_| GradientSlot::default()).collect();
            let device = packed.device.clone();
            let (nothing, dtype) = (Shape::new([1]), packed.dtype);
            let state = (packed, slots.clone());
            let joined = prep.finish(state, B::float_zeros(nothing, &device, dtype));
            let parts = parts.into_iter().zip(slots).map(|(part, slot)| {
                match PartRule
                    .prepare::<C>([joined.node()])
                    .compute_bound()
                    .stateful()
                {
                    OpsKind::Tracked(prep) => prep.finish(slot, part),
                    OpsKind::UnTracked(prep) => prep.finish(part),
                }
            });
            parts.collect()
        }
        OpsKind::UnTracked(_) => composed::heads::split::<B>(x.into_primitive(), &packed.heads)
            .into_iter()
            .map(<Autodiff<B, C> as AutodiffBackend>::from_inner)
            .collect(),
    }
}

/// Hands the gradient of one operand to the node that joins them.
#[derive(Debug)]
struct PartRule;

impl<B: Backend> Backward<B, 1> for PartRule {
    type State = GradientSlot<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            // The parent would not run without a gradient, whose value does not matter.
            let dtype = FloatDType::from(gradient.dtype());
            let nothing = B::float_zeros(Shape::new([1]), &gradient.device(), dtype);
            gradients.register::<B>(parent.id, nothing);
        }
        ops.state.put(gradient);
    }
}

/// Joins the gradients of all operands.
#[derive(Debug)]
struct JoinRule;

impl<B: Backend> Backward<B, 1> for JoinRule {
    type State = (Packed<B>, Vec<GradientSlot<FloatTensor<B>>>);

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let _nothing = gradients.consume::<B>(&ops.node);
        let (packed, slots) = ops.state;
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            let parts = slots.iter().map(GradientSlot::take).collect();
            gradients.register::<B>(parent.id, packed.join(parts));
        }
    }
}

/// The parts of a projection's gradient.
#[derive(Clone, Debug)]
struct Packed<B: Backend> {
    heads: Vec<usize>,
    /// `[batch, len, width]`
    shape: [usize; 3],
    device: Device<B>,
    dtype: FloatDType,
}

impl<B: Backend> Packed<B> {
    /// The reverse of [`composed::heads::split`]; missing parts are zeros.
    fn join(self, parts: Vec<Option<FloatTensor<B>>>) -> FloatTensor<B> {
        let [batch, len, width] = self.shape;
        let all: usize = self.heads.iter().sum();
        let parts = parts
            .into_iter()
            .zip(self.heads)
            .map(|(part, heads)| match part {
                Some(part) => B::float_swap_dims(part, 1, 2),
                None => {
                    let shape = Shape::new([batch, len, heads, width / all]);
                    B::float_zeros(shape, &self.device, self.dtype)
                }
            });
        let joined = B::float_cat(parts.collect(), 2);
        B::float_reshape(joined, Shape::new([batch, len, width]))
    }
}
