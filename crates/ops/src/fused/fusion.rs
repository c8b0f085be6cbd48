//! The kernels of `kernels-cube` below Burn's fusion, which records operations and runs them later.
//!
//! A call that the kernels support is one custom operation, forward and backward. Shapes and dtypes decide, before the call is
//! recorded. Any other call is recorded as the plain operations of the blockwise body.
//!
//! Burn caches the order of recorded operations by their names and tensors. The options of a call stay in the closure that runs it.

use core::fmt;

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape},
};
use burn_attn_kernels_cube::Refusal;
use burn_cubecl::{
    CubeBackend,
    fusion::{CubeFusionHandle, FusionCubeRuntime},
    tensor::CubeTensor,
};
use burn_fusion::{
    ExecutionError, Fusion, FusionTensor,
    custom::{
        CustomOpIr, HandleContainer, Operation, OperationIr, OperationOutput, StreamId, TensorIr,
    },
};

use super::cube::{self, supports};
use crate::{
    backend::{
        AttentionOps, AttentionScalars, MaskInputs, RequiredGrads, Results, SavedAndGrads,
        ScoreInputs,
    },
    blockwise,
};

type Tensor = FusionTensor<FusionCubeRuntime>;
type Handles = HandleContainer<CubeFusionHandle>;

impl AttentionOps for Fusion<CubeBackend> {
    fn fused_attention(inputs: ScoreInputs<Self>, value: FloatTensor<Self>) -> Results<Self> {
        if !supports(&inputs, &value) {
            return blockwise::forward(inputs, value);
        }
        let p = inputs.problem(&value);
        let outputs = [
            (
                Shape::new([p.batch, p.heads_q, p.len_q, p.dim_v]),
                inputs.query.dtype,
            ),
            (Shape::new([p.batch, p.heads_q, p.len_q]), DType::F32),
        ];
        let run: Box<Run> = Box::new(|inputs, value, _| {
            let (output, logsumexp) = cube::forward(&inputs, &value)?;
            Ok(vec![output, logsumexp])
        });
        let name = "burn_attn::attention";
        let [output, logsumexp] = record(name, inputs, value, vec![], outputs, run).outputs();
        (output, logsumexp)
    }

    fn fused_attention_backward(
        inputs: ScoreInputs<Self>,
        value: FloatTensor<Self>,
        saved: SavedAndGrads<Self>,
        required: RequiredGrads,
    ) -> Vec<FloatTensor<Self>> {
        if !supports(&inputs, &value) {
            return blockwise::backward(inputs, value, saved, required);
        }
        let outputs: Vec<_> = inputs
            .differentiable(&value, required)
            .into_iter()
            .flatten()
            .map(|tensor| (tensor.shape(), tensor.dtype))
            .collect();
        let saved = vec![
            saved.output,
            saved.logsumexp,
            saved.output_gradient,
            saved.logsumexp_gradient,
        ];
        let run: Box<Run> = Box::new(move |inputs, value, saved| {
            let [output, logsumexp, output_gradient, logsumexp_gradient] =
                saved.try_into().expect("four tensors were recorded");
            let saved = SavedAndGrads {
                output,
                logsumexp,
                output_gradient,
                logsumexp_gradient,
            };
            cube::backward(&inputs, &value, saved, required)
        });
        let name = "burn_attn::attention_backward";
        record(name, inputs, value, saved, outputs, run)
    }
}

/// Computes the results of an operation, one for each of its outputs, from its operands, its value, and the other tensors that it reads.
type Run = dyn Fn(ScoreInputs<CubeBackend>, CubeTensor, Vec<CubeTensor>) -> Result<Vec<CubeTensor>, Refusal>
    + Send
    + Sync;

/// Records a call, whose outputs have these shapes and dtypes.
fn record(
    name: &'static str,
    inputs: ScoreInputs<Fusion<CubeBackend>>,
    value: Tensor,
    others: Vec<Tensor>,
    outputs: impl IntoIterator<Item = (Shape, DType)>,
    run: Box<Run>,
) -> Vec<Tensor> {
    let client = inputs.query.client.clone();
    let (mask, scalars) = (inputs.mask, inputs.scalars);
    let optional = [
        inputs.bias.into_option(),
        inputs.distance_bias.into_option(),
        inputs.sinks.into_option(),
        mask.visible_blocks.into_option(),
        mask.masked.into_option(),
        mask.key_lengths.into_option(),
        mask.query_offsets.into_option(),
        mask.query_segments.into_option(),
        mask.key_segments.into_option(),
    ];
    let present = optional.each_ref().map(Option::is_some);
    // A tensor may be several operands: the last use in this order frees it.
    let tensors: Vec<_> = [inputs.query, inputs.key, value]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .chain(others)
        .map(Tensor::into_ir)
        .collect();
    let outputs: Vec<_> = outputs
        .into_iter()
        .map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype))
        .collect();
    let call = CustomOpIr::new(name, &tensors, &outputs);
    let operation = Recorded {
        call: call.clone(),
        present,
        scalars,
        run,
    };
    client.register(StreamId::current(), OperationIr::Custom(call), operation)
}

/// A recorded call.
struct Recorded {
    call: CustomOpIr,
    /// Which optional operands there are, in the order of [`record`].
    present: [bool; 9],
    scalars: AttentionScalars,
    run: Box<Run>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl Operation<FusionCubeRuntime> for Recorded {
    fn execute(&self, handles: &mut Handles) -> Result<(), ExecutionError> {
        // On this backend, tensors of ints and bools have the type of a float tensor.
        let tensors = self.call.inputs.iter();
        let mut tensors = tensors.map(|tensor| handles.get_float_tensor::<CubeBackend>(tensor));
        let mut next = || tensors.next().expect("every operand was recorded");
        let [query, key, value] = [next(), next(), next()];
        let [
            bias,
            distance_bias,
            sinks,
            visible_blocks,
            masked,
            key_lengths,
            query_offsets,
            query_segments,
            key_segments,
        ] = self.present.map(|present| present.then(&mut next));
        let inputs = ScoreInputs {
            query,
            key,
            bias: bias.into(),
            distance_bias: distance_bias.into(),
            sinks: sinks.into(),
            mask: MaskInputs {
                visible_blocks: visible_blocks.into(),
                masked: masked.into(),
                key_lengths: key_lengths.into(),
                query_offsets: query_offsets.into(),
                query_segments: query_segments.into(),
                key_segments: key_segments.into(),
            },
            scalars: self.scalars,
        };
        let results = (self.run)(inputs, value, tensors.collect());
        // Whoever reads an output of this call gets the sentence; a panic would end the operations that Burn runs with the call.
        let results = results.map_err(|refusal| ExecutionError::generic(refusal.to_string()))?;
        debug_assert_eq!(results.len(), self.call.outputs.len());
        for (output, result) in self.call.outputs.iter().zip(results) {
            debug_assert_eq!(
                (result.shape(), result.dtype),
                (output.shape.clone(), output.dtype)
            );
            handles.register_float_tensor::<CubeBackend>(&output.id, result);
        }
        Ok(())
    }
}
