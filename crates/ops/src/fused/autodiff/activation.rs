//! The activation of a feed-forward network, which keeps its operands alone, not intermediate results.

use core::marker::PhantomData;

use burn::backend::{AutodiffBackend, TensorMetadata, tensor::FloatTensor};
use burn::tensor::Shape;
use burn_autodiff::{
    Autodiff, NodeId,
    checkpoint::{
        base::Checkpointer, retro_forward::RetroForward, state::BackwardStates,
        strategy::CheckpointStrategy,
    },
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use crate::{
    Activation,
    backend::{AttentionOps, OptionalFloat},
};

/// The activation of the backend below, and its node.
pub(super) fn tracked<B: AttentionOps, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    bias: OptionalFloat<Autodiff<B, C>>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<Autodiff<B, C>> {
    let is_sum = activation == Activation::Identity && !gated;
    if is_sum && bias.as_ref().is_none() {
        return x;
    }
    // An absent bias takes part as a constant: the rule always has two parents.
    let nodes = [
        x.node(),
        match bias.as_ref() {
            Some(bias) => bias.node(),
            None => <Autodiff<B, C> as AutodiffBackend>::from_inner(x.primitive().clone()).node(),
        },
    ];
    let again = Again::<B> {
        x: x.node().id(),
        bias: bias.as_ref().map(|bias| bias.node().id()),
        activation,
        gated,
        backend: PhantomData,
    };
    let inner = |bias: OptionalFloat<Autodiff<B, C>>| {
        OptionalFloat::from_option(bias.into_option().map(|bias| bias.into_primitive()))
    };
    match ActivationRule
        .prepare::<C>(nodes)
        .memory_bound()
        .retro_forward(again)
        .parents([&x].into_iter().chain(bias.as_ref()))
        .stateful()
    {
        OpsKind::Tracked(mut prep) => {
            let operands = (!is_sum).then(|| Operands {
                x: prep.checkpoint(&x),
                bias: bias.as_ref().map(|bias| prep.checkpoint(bias)),
            });
            let state = Saved {
                operands,
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

/// Computes the result again, for a strategy that does not keep it.
#[derive(Debug)]
struct Again<B> {
    x: NodeId,
    bias: Option<NodeId>,
    activation: Activation,
    gated: bool,
    backend: PhantomData<B>,
}

impl<B: AttentionOps> RetroForward for Again<B> {
    fn forward(&self, states: &mut BackwardStates, out_node: NodeId) {
        let x = states.get_state::<FloatTensor<B>>(&self.x);
        let bias = self.bias.map(|bias| states.get_state(&bias));
        let bias = OptionalFloat::from_option(bias);
        let y = B::activate(x, bias, self.activation, self.gated);
        states.save(out_node, y);
    }
}

#[derive(Debug)]
struct ActivationRule;

/// What is kept between the passes.
#[derive(Clone, Debug)]
struct Saved {
    /// `None` for a sum, whose gradient needs no operand.
    operands: Option<Operands>,
    activation: Activation,
    gated: bool,
}

#[derive(Clone, Debug)]
struct Operands {
    x: NodeId,
    bias: Option<NodeId>,
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
            operands,
            activation,
            gated,
        } = ops.state;
        let computed = match operands {
            None => gradient,
            Some(Operands { x, bias }) => {
                let x: FloatTensor<B> = checkpointer.retrieve_node_output(x);
                let bias = bias.map(|bias| checkpointer.retrieve_node_output(bias));
                let bias = OptionalFloat::from_option(bias);
                B::activate_backward(x, bias, gradient, activation, gated)
            }
        };
        let [of_x, of_bias] = ops.parents;
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
