//! The activation of a feed-forward network: keeps its input alone, not the results of its parts.

use burn::backend::{AutodiffBackend, TensorMetadata, tensor::FloatTensor};
use burn::tensor::Shape;
use burn_autodiff::{
    Autodiff, NodeId,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use crate::{Activation, AttentionOps, OptionalFloat, activation};

/// The activation of the backend below, and its node.
pub(super) fn tracked<B: AttentionOps, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    bias: OptionalFloat<Autodiff<B, C>>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<Autodiff<B, C>> {
    if activation == Activation::Identity && !gated {
        // A sum, whose gradient needs neither operand.
        return activation::composed::<Autodiff<B, C>>(x, bias, activation, gated);
    }
    // A bias that is not there takes part as a constant: the rule always has two parents.
    let absent = <Autodiff<B, C> as AutodiffBackend>::from_inner(x.primitive().clone());
    let nodes = [x.node(), bias.as_ref().unwrap_or(&absent).node()];
    let inner = |bias: OptionalFloat<Autodiff<B, C>>| {
        OptionalFloat::from_option(bias.into_option().map(|bias| bias.into_primitive()))
    };
    match ActivationRule
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(mut prep) => {
            let state = Saved {
                x: prep.checkpoint(&x),
                bias: bias.as_ref().map(|bias| prep.checkpoint(bias)),
                activation,
                gated,
            };
            let y = B::activate(x.into_primitive(), inner(bias), activation, gated);
            prep.finish(state, y)
        }
        OpsKind::UnTracked(prep) => prep.finish(B::activate(
            x.into_primitive(),
            inner(bias),
            activation,
            gated,
        )),
    }
}

#[derive(Debug)]
struct ActivationRule;

/// What is kept between the passes.
#[derive(Clone, Debug)]
struct Saved {
    x: NodeId,
    bias: Option<NodeId>,
    activation: Activation,
    gated: bool,
}

impl<B: AttentionOps> Backward<B, 2> for ActivationRule {
    type State = Saved;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let gradient = gradients.consume::<B>(&ops.node);
        let Saved {
            x,
            bias,
            activation,
            gated,
        } = ops.state;
        let x: FloatTensor<B> = checkpointer.retrieve_node_output(x);
        let bias = bias.map(|bias| checkpointer.retrieve_node_output(bias));
        let bias = OptionalFloat::from_option(bias);
        let [of_x, of_bias] = ops.parents;
        let computed = B::activate_backward(x, bias, gradient, activation, gated);
        if let Some(parent) = of_bias {
            let [_, width] = computed.shape().dims::<2>();
            let sum = B::float_sum_dim(computed.clone(), 0);
            gradients.register::<B>(parent.id, B::float_reshape(sum, Shape::new([width])));
        }
        if let Some(parent) = of_x {
            gradients.register::<B>(parent.id, computed);
        }
    }
}
