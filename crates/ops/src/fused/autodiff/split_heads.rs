//! Split heads: the gradients of several operands become the gradient of their projection.

use burn::{
    backend::{
        AutodiffBackend, Backend, TensorMetadata,
        tensor::{Device, FloatTensor},
    },
    tensor::{FloatDType, Shape},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{GradientSlot, child, held};
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
    let prep = JoinRule.prepare::<C>([x.node()]).compute_bound();
    let parts = composed::heads::split::<B>(x.into_primitive(), &packed.heads).into_iter();
    match prep.stateful() {
        OpsKind::Tracked(prep) => {
            let slots: Vec<_> = packed
                .heads
                .iter()
                .map(|_| GradientSlot::default())
                .collect();
            let nothing = B::float_zeros(Shape::new([1]), &packed.device, packed.dtype);
            let joined = prep.finish((packed, slots.clone()), nothing);
            let children = parts
                .zip(slots)
                .map(|(part, slot)| child::<B, C>(part, &joined, slot));
            children.collect()
        }
        OpsKind::UnTracked(_) => parts
            .map(<Autodiff<B, C> as AutodiffBackend>::from_inner)
            .collect(),
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
        if let [Some(parent)] = ops.parents {
            let parts = slots.iter().map(|slot| held(slot).take());
            gradients.register::<B>(parent.id, packed.join(parts));
        }
    }
}

/// What the parts of a projection's gradient need to be joined.
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
    fn join(self, parts: impl Iterator<Item = Option<FloatTensor<B>>>) -> FloatTensor<B> {
        let [batch, len, width] = self.shape;
        let all: usize = self.heads.iter().sum();
        let parts = parts.zip(self.heads).map(|(part, heads)| match part {
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
