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

use super::child::{GradientSlot, child, held};
use crate::composed;

/// The heads, with a node for each operand and one that joins their gradients.
pub(super) fn tracked<B: Backend, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    heads: Vec<usize>,
) -> Vec<FloatTensor<Autodiff<B, C>>> {
    let (shape, device, dtype) = (x.shape(), x.device(), FloatDType::from(x.dtype()));
    let prep = JoinRule.prepare::<C>([x.node()]).compute_bound();
    let parts = composed::heads::split::<B>(x.into_primitive(), &heads);
    match prep.stateful() {
        OpsKind::Tracked(prep) => {
            let slots = parts
                .iter()
                .map(|part| (part.shape(), GradientSlot::default()));
            let slots: Vec<_> = slots.collect();
            let nothing = B::float_zeros(Shape::new([1]), &device, dtype);
            let packed = Packed::<B> {
                parts: slots.clone(),
                shape,
                device,
                dtype,
            };
            let joined = prep.finish(packed, nothing);
            let children = parts.into_iter().zip(slots);
            let children = children.map(|(part, (_, slot))| child::<B, C>(part, &joined, slot));
            children.collect()
        }
        OpsKind::UnTracked(_) => parts
            .into_iter()
            .map(<Autodiff<B, C> as AutodiffBackend>::from_inner)
            .collect(),
    }
}

/// What the gradient of a projection is joined from.
#[derive(Clone, Debug)]
struct Packed<B: Backend> {
    /// The shape of each part, and where its child leaves the gradient.
    parts: Vec<(Shape, GradientSlot<FloatTensor<B>>)>,
    shape: Shape,
    device: Device<B>,
    dtype: FloatDType,
}

/// Joins the gradients of all operands: the reverse of [`composed::heads::split`].
#[derive(Debug)]
struct JoinRule;

impl<B: Backend> Backward<B, 1> for JoinRule {
    type State = Packed<B>;

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let _nothing = gradients.consume::<B>(&ops.node);
        let packed = ops.state;
        if let [Some(parent)] = ops.parents {
            let parts = packed.parts.into_iter().map(|(shape, slot)| {
                let part = held(&slot).take();
                // An unused part has no gradient.
                let part =
                    part.unwrap_or_else(|| B::float_zeros(shape, &packed.device, packed.dtype));
                B::float_swap_dims(part, 1, 2)
            });
            let joined = B::float_cat(parts.collect(), 2);
            gradients.register::<B>(parent.id, B::float_reshape(joined, packed.shape));
        }
    }
}
