//! The gradient rules.
//!
//! A node of Burn has one result. In an operation with several results, one node does the work; the other nodes, its children,
//! only hand over their gradients and make sure that the working node runs. In attention, the working node is the node of the
//! logsumexp, whose parents are all tensors with a gradient; in split heads, it is a node without a result.

mod activation;
mod split_heads;

use std::sync::{Arc, Mutex};

use burn::backend::{AutodiffBackend, TensorMetadata, tensor::FloatTensor};
use burn::tensor::{FloatDType, Shape};
use burn_autodiff::{
    Autodiff, NodeId,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use crate::{
    Activation,
    backend::{
        AttentionOps, AttentionScalars, Differentiable, MaskInputs, OptionalBool, OptionalFloat,
        OptionalInt, Results, Rotation, SavedAndGrads, ScoreInputs,
    },
    composed,
};

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
        match RotationRule
            .prepare::<C>([x.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let state = (cos.clone(), sin.clone(), rotation.clone());
                prep.finish(state, B::rotate(x.into_primitive(), cos, sin, rotation))
            }
            OpsKind::UnTracked(prep) => {
                prep.finish(B::rotate(x.into_primitive(), cos, sin, rotation))
            }
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
        let (cos, sin, rotation) = ops.state;
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            let inverse = Rotation {
                inverse: !rotation.inverse,
                ..rotation
            };
            gradients.register::<B>(parent.id, B::rotate(gradient, cos, sin, inverse));
        }
    }
}

/// Attention of the backend below, and its node.
fn tracked<B: AttentionOps, C: CheckpointStrategy>(
    inputs: ScoreInputs<Autodiff<B, C>>,
    value: FloatTensor<Autodiff<B, C>>,
) -> Results<Autodiff<B, C>> {
    let ScoreInputs {
        query,
        key,
        bias,
        distance_bias,
        sinks,
        ..
    } = &inputs;
    // Absent operands take part as constants: the rule always has six parents.
    let absent = <Autodiff<B, C> as AutodiffBackend>::from_inner(query.primitive().clone());
    let node = |tensor: &OptionalFloat<Autodiff<B, C>>| tensor.as_ref().unwrap_or(&absent).node();
    let nodes = [
        query.node(),
        key.node(),
        value.node(),
        node(bias),
        node(distance_bias),
        node(sinks),
    ];

    match LogsumexpRule.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let mut saved = |tensor| prep.checkpoint(tensor);
            let operands = Differentiable {
                query: Some(saved(query)),
                key: Some(saved(key)),
                value: Some(saved(&value)),
                bias: bias.as_ref().map(&mut saved),
                distance_bias: distance_bias.as_ref().map(&mut saved),
                sinks: sinks.as_ref().map(&mut saved),
            };
            let inputs = inner(inputs);
            let (mask, scalars) = (inputs.mask.clone(), inputs.scalars);
            let (output, logsumexp) =
                <B as AttentionOps>::fused_attention(inputs, value.into_primitive());
            let slot = GradientSlot::default();
            let state = Saved {
                operands,
                mask,
                scalars,
                output: output.clone(),
                logsumexp: logsumexp.clone(),
                output_gradient: slot.clone(),
            };
            let logsumexp = prep.finish(state, logsumexp);
            let output = match OutputRule
                .prepare::<C>([logsumexp.node()])
                .compute_bound()
                .stateful()
            {
                OpsKind::Tracked(prep) => prep.finish(slot, output),
                OpsKind::UnTracked(prep) => prep.finish(output),
            };
            (output, logsumexp)
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
    let optional = |tensor: OptionalFloat<Autodiff<B, C>>| {
        OptionalFloat::from_option(tensor.into_option().map(|tensor| tensor.into_primitive()))
    };
    ScoreInputs {
        query: inputs.query.into_primitive(),
        key: inputs.key.into_primitive(),
        bias: optional(inputs.bias),
        distance_bias: optional(inputs.distance_bias),
        sinks: optional(inputs.sinks),
        mask: inputs.mask.of_inner(),
        scalars: inputs.scalars,
    }
}

impl<B: AttentionOps, C: CheckpointStrategy> MaskInputs<Autodiff<B, C>> {
    /// Bool and int tensors have no graph: they are tensors of the backend below.
    fn of_inner(self) -> MaskInputs<B> {
        let Self {
            visible_blocks,
            masked,
            key_lengths,
            query_offsets,
            query_segments,
            key_segments,
        } = self;
        MaskInputs {
            visible_blocks: OptionalBool::from_option(visible_blocks.into_option()),
            masked: OptionalBool::from_option(masked.into_option()),
            key_lengths: OptionalInt::from_option(key_lengths.into_option()),
            query_offsets: OptionalInt::from_option(query_offsets.into_option()),
            query_segments: OptionalInt::from_option(query_segments.into_option()),
            key_segments: OptionalInt::from_option(key_segments.into_option()),
        }
    }
}

/// Where one node leaves a gradient for another; empty until the first has run.
#[derive(Debug)]
struct GradientSlot<P>(Arc<Mutex<Option<P>>>);

impl<P> Clone for GradientSlot<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> Default for GradientSlot<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P> GradientSlot<P> {
    fn put(&self, gradient: P) {
        *self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(gradient);
    }

    fn take(&self) -> Option<P> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take()
    }
}

/// Hands the gradient of the output to the node of the logsumexp.
#[derive(Debug)]
struct OutputRule;

impl<B: AttentionOps> Backward<B, 1> for OutputRule {
    type State = GradientSlot<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            // A node whose output has no gradient would not run; zeros change nothing.
            let [batch, heads, len_q, _] = gradient.shape().dims::<4>();
            let dtype = composed::statistics_dtype(gradient.dtype().into());
            let zeros =
                B::float_zeros(Shape::new([batch, heads, len_q]), &gradient.device(), dtype);
            gradients.register::<B>(parent.id, zeros);
        }
        ops.state.put(gradient);
    }
}

/// Computes all gradients from those of the output and the logsumexp.
#[derive(Debug)]
struct LogsumexpRule;

/// Everything that is kept between the passes.
#[derive(Clone, Debug)]
struct Saved<B: AttentionOps> {
    operands: Differentiable<Option<NodeId>>,
    mask: MaskInputs<B>,
    scalars: AttentionScalars,
    output: FloatTensor<B>,
    logsumexp: FloatTensor<B>,
    output_gradient: GradientSlot<FloatTensor<B>>,
}

impl<B: AttentionOps> Backward<B, 6> for LogsumexpRule {
    type State = Saved<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 6>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let logsumexp_gradient = gradients.consume::<B>(&ops.node);
        let saved = ops.state;
        let mut retrieve =
            |node: Option<NodeId>| node.map(|node| checkpointer.retrieve_node_output(node));
        let required = "query, key and value are always saved";
        let inputs = ScoreInputs::<B> {
            query: retrieve(saved.operands.query).expect(required),
            key: retrieve(saved.operands.key).expect(required),
            bias: OptionalFloat::from_option(retrieve(saved.operands.bias)),
            distance_bias: OptionalFloat::from_option(retrieve(saved.operands.distance_bias)),
            sinks: OptionalFloat::from_option(retrieve(saved.operands.sinks)),
            mask: saved.mask,
            scalars: saved.scalars,
        };
        let value_operand = retrieve(saved.operands.value).expect(required);
        let output_gradient = saved.output_gradient.take();
        let output_was_used = output_gradient.is_some();
        let output_gradient = output_gradient.unwrap_or_else(|| {
            let dtype = FloatDType::from(saved.output.dtype());
            B::float_zeros(saved.output.shape(), &saved.output.device(), dtype)
        });
        let saved = SavedAndGrads {
            output: saved.output,
            logsumexp: saved.logsumexp,
            output_gradient,
            logsumexp_gradient,
        };
        let [query, key, value, bias, distance_bias, sinks] = ops.parents;
        // The logsumexp does not depend on the value, but distributed training waits for a gradient of every tracked tensor.
        let unused = value.as_ref().filter(|_| !output_was_used).map(|_| {
            let dtype = FloatDType::from(value_operand.dtype());
            B::float_zeros(value_operand.shape(), &value_operand.device(), dtype)
        });
        let required = Differentiable {
            query: query.is_some(),
            key: key.is_some(),
            value: value.is_some() && output_was_used,
            bias: bias.is_some(),
            distance_bias: distance_bias.is_some(),
            sinks: sinks.is_some(),
        };
        let computed = B::fused_attention_backward(inputs, value_operand, saved, required);
        let of_value = computed.value.into_option().or(unused);
        for (parent, gradient) in [
            (query, computed.query.into_option()),
            (key, computed.key.into_option()),
            (value, of_value),
            (bias, computed.bias.into_option()),
            (distance_bias, computed.distance_bias.into_option()),
            (sinks, computed.sinks.into_option()),
        ] {
            if let Some(parent) = parent {
                let gradient = gradient.expect("every required gradient was computed");
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}
