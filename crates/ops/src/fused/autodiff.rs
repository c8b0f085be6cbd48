//! The gradient rules.
//!
//! A node of Burn has one result. In an operation with several results, one node does the work; the other nodes, its children,
//! only hand over their gradients and make sure that the working node runs. In attention, the working node is the node of the
//! logsumexp, whose parents are all tensors with a gradient; in split heads, it is a node whose result is unused.

mod activation;
mod child;
mod split_heads;

use burn::backend::{AutodiffBackend, TensorMetadata, tensor::FloatTensor};
use burn_autodiff::{
    Autodiff, NodeId,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use crate::{
    Activation,
    backend::{
        AttentionOps, AttentionScalars, MaskInputs, OptionalFloat, Results, Rotation,
        SavedAndGrads, ScoreInputs,
    },
    function::ScoreFunction,
};
use child::{GradientSlot, child, held};

impl<B, C> AttentionOps for Autodiff<B, C>
where
    B: AttentionOps,
    C: CheckpointStrategy,
{
    fn fused_attention(inputs: ScoreInputs<Self>, value: FloatTensor<Self>) -> Results<Self> {
        tracked(inputs, value)
    }

    fn split_heads(x: FloatTensor<Self>, heads: Vec<usize>) -> Vec<FloatTensor<Self>> {
        split_heads::tracked::<B, C>(x, heads)
    }

    fn activate(
        x: FloatTensor<Self>,
        bias: OptionalFloat<Self>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<Self> {
        activation::tracked::<B, C>(x, bias, activation, gated)
    }

    fn rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        rotation: Rotation,
    ) -> FloatTensor<Self> {
        let [cos, sin] = [cos, sin].map(|table| table.into_primitive());
        let prep = RotationRule.prepare::<C>([x.node()]).compute_bound();
        let state = (cos.clone(), sin.clone(), rotation.clone());
        let rotated = B::rotate(x.into_primitive(), cos, sin, rotation);
        match prep.stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, rotated),
            OpsKind::UnTracked(prep) => prep.finish(rotated),
        }
    }
}

/// Rotates the gradient by the inverse angle.
#[derive(Debug)]
struct RotationRule;

impl<B: AttentionOps> Backward<B, 1> for RotationRule {
    type State = (FloatTensor<B>, FloatTensor<B>, Rotation);

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let (cos, sin, mut rotation) = ops.state;
        rotation.inverse = !rotation.inverse;
        if let [Some(parent)] = ops.parents {
            gradients.register::<B>(parent.id, B::rotate(gradient, cos, sin, rotation));
        }
    }
}

/// Attention of the backend below, and its node.
fn tracked<B: AttentionOps, C: CheckpointStrategy>(
    inputs: ScoreInputs<Autodiff<B, C>>,
    value: FloatTensor<Autodiff<B, C>>,
) -> Results<Autodiff<B, C>> {
    let operands = inputs.differentiable(&value, [true; 7]);
    // Absent operands take part as constants: the rule always has seven parents.
    let absent = <Autodiff<B, C> as AutodiffBackend>::from_inner(inputs.query.primitive().clone());
    let nodes = operands.map(|operand| operand.unwrap_or(&absent).node());
    match LogsumexpRule.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let operands = operands.map(|operand| operand.map(|operand| prep.checkpoint(operand)));
            let inputs = inner(inputs);
            let (mask, scalars) = (inputs.mask.clone(), inputs.scalars);
            let score_function = inputs.score_function.clone();
            let (output, logsumexp) =
                <B as AttentionOps>::fused_attention(inputs, value.into_primitive());
            let slot = GradientSlot::default();
            let state = Saved {
                operands,
                score_function,
                mask,
                scalars,
                output: output.clone(),
                logsumexp: logsumexp.clone(),
                output_gradient: slot.clone(),
            };
            let logsumexp = prep.finish(state, logsumexp);
            (child::<B, C>(output, &logsumexp, slot), logsumexp)
        }
        OpsKind::UnTracked(prep) => {
            let (output, logsumexp) =
                <B as AttentionOps>::fused_attention(inner(inputs), value.into_primitive());
            (
                <Autodiff<B, C> as AutodiffBackend>::from_inner(output),
                prep.finish(logsumexp),
            )
        }
    }
}

/// The operands without their graph.
fn inner<B: AttentionOps, C: CheckpointStrategy>(
    inputs: ScoreInputs<Autodiff<B, C>>,
) -> ScoreInputs<B> {
    let mask = inputs.mask;
    ScoreInputs {
        query: inputs.query.into_primitive(),
        key: inputs.key.into_primitive(),
        bias: inputs.bias.map(|bias| bias.into_primitive()),
        distance_bias: inputs.distance_bias.map(|bias| bias.into_primitive()),
        sinks: inputs.sinks.map(|sinks| sinks.into_primitive()),
        captured: inputs.captured.map(|captured| captured.into_primitive()),
        score_function: inputs.score_function,
        // Bool and int tensors have no graph: they are tensors of the backend below.
        mask: MaskInputs {
            visible_blocks: mask.visible_blocks.into_option().into(),
            masked: mask.masked.into_option().into(),
            key_lengths: mask.key_lengths.into_option().into(),
            first_keys: mask.first_keys.into_option().into(),
            query_offsets: mask.query_offsets.into_option().into(),
            query_segments: mask.query_segments.into_option().into(),
            key_segments: mask.key_segments.into_option().into(),
            functions: mask.functions,
            tables: mask.tables,
        },
        scalars: inputs.scalars,
    }
}

/// Computes all gradients from those of the output and the logsumexp.
#[derive(Debug)]
struct LogsumexpRule;

/// Everything that is kept between the passes.
#[derive(Clone, Debug)]
struct Saved<B: AttentionOps> {
    /// In the order of [`ScoreInputs::differentiable`].
    operands: [Option<NodeId>; 7],
    score_function: Option<ScoreFunction>,
    mask: MaskInputs<B>,
    scalars: AttentionScalars,
    output: FloatTensor<B>,
    logsumexp: FloatTensor<B>,
    output_gradient: GradientSlot<FloatTensor<B>>,
}

impl<B: AttentionOps> Backward<B, 7> for LogsumexpRule {
    type State = Saved<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 7>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let logsumexp_gradient = gradients.consume::<B>(&ops.node);
        let saved = ops.state;
        let [query, key, value, bias, distance_bias, sinks, captured] = saved
            .operands
            .map(|node| node.map(|node| checkpointer.retrieve_node_output(node)));
        let always = "query, key and value are always saved";
        let inputs = ScoreInputs::<B> {
            query: query.expect(always),
            key: key.expect(always),
            bias: bias.into(),
            distance_bias: distance_bias.into(),
            sinks: sinks.into(),
            captured: captured.into(),
            score_function: saved.score_function,
            mask: saved.mask,
            scalars: saved.scalars,
        };
        let value: FloatTensor<B> = value.expect(always);
        let zeros = |like: &FloatTensor<B>| {
            B::float_zeros(like.shape(), &like.device(), like.dtype().into())
        };
        let mut parents = ops.parents;
        let output_gradient = held(&saved.output_gradient).take();
        // Without one, the logsumexp does not depend on the value, but distributed training waits for a gradient of every tracked tensor.
        if output_gradient.is_none()
            && let Some(parent) = parents[2].take()
        {
            gradients.register::<B>(parent.id, zeros(&value));
        }
        let saved = SavedAndGrads {
            output_gradient: output_gradient.unwrap_or_else(|| zeros(&saved.output)),
            output: saved.output,
            logsumexp: saved.logsumexp,
            logsumexp_gradient,
        };
        let required = parents.each_ref().map(Option::is_some);
        let computed = B::fused_attention_backward(inputs, value, saved, required);
        for (parent, gradient) in parents.into_iter().flatten().zip(computed) {
            gradients.register::<B>(parent.id, gradient);
        }
    }
}
