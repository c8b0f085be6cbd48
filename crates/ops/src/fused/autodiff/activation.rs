//! The activation of a feed-forward network, which keeps its operands alone, not intermediate results.

use core::marker::PhantomData;

use burn::{
    backend::{AutodiffBackend, TensorMetadata, tensor::FloatTensor},
    tensor::Shape,
};
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
    let call = Call::<B> {
        x: x.node().id(),
        bias: bias.as_ref().map(|bias| bias.node().id()),
        activation,
        gated,
        backend: PhantomData,
    };
    let prep = ActivationRule
        .prepare::<C>(nodes)
        .memory_bound()
        .retro_forward(call.clone())
        .parents([&x].into_iter().chain(bias.as_ref()));
    let compute = |x: FloatTensor<Autodiff<B, C>>, bias: OptionalFloat<Autodiff<B, C>>| {
        let bias = bias.map(|bias| bias.into_primitive());
        B::activate(x.into_primitive(), bias, activation, gated)
    };
    match prep.stateful() {
        OpsKind::Tracked(prep) if is_sum => prep.finish(None, compute(x, bias)),
        OpsKind::Tracked(mut prep) => {
            for operand in [&x].into_iter().chain(bias.as_ref()) {
                prep.checkpoint(operand);
            }
            prep.finish(Some(call), compute(x, bias))
        }
        OpsKind::UnTracked(prep) => prep.finish(compute(x, bias)),
    }
}

/// A call, by the nodes of its operands.
#[derive(Clone, Debug)]
struct Call<B> {
    x: NodeId,
    bias: Option<NodeId>,
    activation: Activation,
    gated: bool,
    backend: PhantomData<B>,
}

/// Computes the result again, for a strategy that does not keep it.
impl<B: AttentionOps> RetroForward for Call<B> {
    fn forward(&self, states: &mut BackwardStates, out_node: NodeId) {
        let x = states.get_state::<FloatTensor<B>>(&self.x);
        let bias = self
            .bias
            .map(|bias| states.get_state::<FloatTensor<B>>(&bias));
        let y = B::activate(x, bias.into(), self.activation, self.gated);
        states.save(out_node, y);
    }
}

#[derive(Debug)]
struct ActivationRule;

impl<B: AttentionOps> Backward<B, 2> for ActivationRule {
    /// `None` for a sum, whose gradient needs no operand.
    type State = Option<Call<B>>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let gradient = gradients.consume::<B>(&ops.node);
        let computed = match ops.state {
            None => gradient,
            Some(call) => {
                let mut operand = |node| checkpointer.retrieve_node_output::<FloatTensor<B>>(node);
                let (x, bias) = (operand(call.x), call.bias.map(operand));
                B::activate_backward(x, bias.into(), gradient, call.activation, call.gated)
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
