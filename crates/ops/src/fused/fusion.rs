//! The kernels of `kernels-cube` below Burn's fusion, which records operations and runs them later.
//!
//! A call that the kernels support is one custom operation, forward and backward. Shapes and dtypes decide, before the call is
//! recorded. Any other call is recorded as the plain operations of the blockwise body.
//!
//! Burn caches the order of recorded operations by their names and tensors. The options of a call stay in the closure that runs it.

use core::{fmt, slice::Iter};

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape},
};
use burn_attn_kernels_cpu::Problem;
use burn_attn_kernels_cube::Refusal;
use burn_cubecl::{
    CubeBackend,
    fusion::{CubeFusionHandle, FusionCubeRuntime},
    tensor::CubeTensor,
};
use burn_fusion::{
    ExecutionError, Fusion, FusionTensor,
    client::GlobalFusionClient,
    custom::{
        CustomOpIr, HandleContainer, Operation, OperationIr, OperationOutput, StreamId, TensorIr,
    },
};

use super::cube::{self, supports};
use crate::{
    backend::{
        AttentionOps, AttentionScalars, Gradients, MaskInputs, OptionalBool, OptionalFloat,
        OptionalInt, RequiredGrads, Results, SavedAndGrads, ScoreInputs,
    },
    blockwise,
};

type Client = GlobalFusionClient<FusionCubeRuntime>;
type Tensor = FusionTensor<FusionCubeRuntime>;
type Handles = HandleContainer<CubeFusionHandle>;

impl AttentionOps for Fusion<CubeBackend> {
    fn fused_attention(inputs: ScoreInputs<Self>, value: FloatTensor<Self>) -> Results<Self> {
        if !supports(&inputs, &value) {
            return blockwise::forward(inputs, value);
        }
        let Problem {
            batch,
            heads_q,
            len_q,
            dim_v,
            ..
        } = inputs.problem(&value);
        let outputs = [
            (
                Shape::new([batch, heads_q, len_q, dim_v]),
                inputs.query.dtype,
            ),
            (Shape::new([batch, heads_q, len_q]), DType::F32),
        ];
        let client = inputs.query.client.clone();
        let (tensors, operands) = recorded(inputs, value);
        let run = move |mut reader: Reader<'_>| {
            let (inputs, value) = reader.inputs(operands);
            let (output, logsumexp) = cube::forward(&inputs, &value)?;
            Ok(vec![output, logsumexp])
        };
        let [output, logsumexp] =
            record("burn_attn::attention", tensors, &outputs, run, &client).outputs();
        (output, logsumexp)
    }

    fn fused_attention_backward(
        inputs: ScoreInputs<Self>,
        value: FloatTensor<Self>,
        saved: SavedAndGrads<Self>,
        required: RequiredGrads,
    ) -> Gradients<Self> {
        if !supports(&inputs, &value) {
            return blockwise::backward(inputs, value, saved, required);
        }
        let like = |required: bool, tensor: Option<&Tensor>| {
            let tensor = tensor.filter(|_| required)?;
            Some((tensor.shape(), tensor.dtype))
        };
        let outputs = [
            like(required.query, Some(&inputs.query)),
            like(required.key, Some(&inputs.key)),
            like(required.value, Some(&value)),
            like(required.bias, inputs.bias.as_ref()),
            like(required.distance_bias, inputs.distance_bias.as_ref()),
            like(required.sinks, inputs.sinks.as_ref()),
        ];
        let client = inputs.query.client.clone();
        let (mut tensors, operands) = recorded(inputs, value);
        let SavedAndGrads {
            output,
            logsumexp,
            output_gradient,
            logsumexp_gradient,
        } = saved;
        let saved = [output, logsumexp, output_gradient, logsumexp_gradient];
        tensors.extend(saved.map(Tensor::into_ir));
        let run = move |mut reader: Reader<'_>| {
            let (inputs, value) = reader.inputs(operands);
            let saved = SavedAndGrads {
                output: reader.float(),
                logsumexp: reader.float(),
                output_gradient: reader.float(),
                logsumexp_gradient: reader.float(),
            };
            let gradients = cube::backward(&inputs, &value, saved, required)?;
            let gradients = [
                gradients.query,
                gradients.key,
                gradients.value,
                gradients.bias,
                gradients.distance_bias,
                gradients.sinks,
            ]
            .into_iter();
            Ok(gradients.filter_map(OptionalFloat::into_option).collect())
        };
        let computed = outputs.each_ref().map(Option::is_some);
        let outputs: Vec<_> = outputs.into_iter().flatten().collect();
        let name = "burn_attn::attention_backward";
        let mut gradients = record(name, tensors, &outputs, run, &client).into_iter();
        let [query, key, value, bias, distance_bias, sinks] = computed.map(|computed| {
            let gradient =
                computed.then(|| gradients.next().expect("as many outputs as gradients"));
            OptionalFloat::from_option(gradient)
        });
        Gradients {
            query,
            key,
            value,
            bias,
            distance_bias,
            sinks,
        }
    }
}

/// Everything of a call that is not a tensor.
#[derive(Clone, Copy)]
struct Operands {
    /// Which optional tensors there are, in the order of [`recorded`].
    present: [bool; 9],
    scalars: AttentionScalars,
}

/// The tensors of a call, which [`Reader::inputs`] reads in the same order, and the rest.
fn recorded(inputs: ScoreInputs<Fusion<CubeBackend>>, value: Tensor) -> (Vec<TensorIr>, Operands) {
    let ScoreInputs {
        query,
        key,
        bias,
        distance_bias,
        sinks,
        mask,
        scalars,
    } = inputs;
    let MaskInputs {
        visible_blocks,
        masked,
        key_lengths,
        query_offsets,
        query_segments,
        key_segments,
    } = mask;
    let optional = [
        bias.into_option(),
        distance_bias.into_option(),
        sinks.into_option(),
        visible_blocks.into_option(),
        masked.into_option(),
        key_lengths.into_option(),
        query_offsets.into_option(),
        query_segments.into_option(),
        key_segments.into_option(),
    ];
    let present = optional.each_ref().map(Option::is_some);
    // A tensor may be several operands: the last use in this order frees it.
    let tensors = [query, key, value]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .map(Tensor::into_ir)
        .collect();
    (tensors, Operands { present, scalars })
}

/// Records a call; its outputs have these shapes and dtypes, and `run` computes one result for each of them.
fn record(
    name: &'static str,
    tensors: Vec<TensorIr>,
    outputs: &[(Shape, DType)],
    run: impl Fn(Reader<'_>) -> Result<Vec<CubeTensor>, Refusal> + Send + Sync + 'static,
    client: &Client,
) -> Vec<Tensor> {
    let outputs: Vec<_> = outputs
        .iter()
        .map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape.clone(), *dtype))
        .collect();
    let call = CustomOpIr::new(name, &tensors, &outputs);
    let operation = Recorded {
        call: call.clone(),
        run: Box::new(run),
    };
    client.register(StreamId::current(), OperationIr::Custom(call), operation)
}

/// Computes the results of an operation, one for each of its outputs.
type Run = dyn Fn(Reader<'_>) -> Result<Vec<CubeTensor>, Refusal> + Send + Sync;

/// A recorded call.
struct Recorded {
    call: CustomOpIr,
    run: Box<Run>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl Operation<FusionCubeRuntime> for Recorded {
    fn execute(&self, handles: &mut Handles) -> Result<(), ExecutionError> {
        let results = (self.run)(Reader {
            handles,
            tensors: self.call.inputs.iter(),
        });
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

/// Reads the tensors of a recorded call, one after the other.
struct Reader<'a> {
    handles: &'a mut Handles,
    tensors: Iter<'a, TensorIr>,
}

impl Reader<'_> {
    /// The operands and the value that [`recorded`] has listed.
    fn inputs(&mut self, operands: Operands) -> (ScoreInputs<CubeBackend>, CubeTensor) {
        let [query, key, value] = [self.float(), self.float(), self.float()];
        let [
            bias,
            distance_bias,
            sinks,
            blocks,
            masked,
            lengths,
            offsets,
            of_queries,
            of_keys,
        ] = operands.present;
        let inputs = ScoreInputs {
            query,
            key,
            bias: self.optional_float(bias),
            distance_bias: self.optional_float(distance_bias),
            sinks: self.optional_float(sinks),
            mask: MaskInputs {
                visible_blocks: self.optional_bool(blocks),
                masked: self.optional_bool(masked),
                key_lengths: self.optional_int(lengths),
                query_offsets: self.optional_int(offsets),
                query_segments: self.optional_int(of_queries),
                key_segments: self.optional_int(of_keys),
            },
            scalars: operands.scalars,
        };
        (inputs, value)
    }

    fn float(&mut self) -> CubeTensor {
        let tensor = self.tensors.next().expect(TENSOR);
        self.handles.get_float_tensor::<CubeBackend>(tensor)
    }

    fn optional_float(&mut self, present: bool) -> OptionalFloat<CubeBackend> {
        OptionalFloat::from_option(present.then(|| self.float()))
    }

    fn optional_bool(&mut self, present: bool) -> OptionalBool<CubeBackend> {
        OptionalBool::from_option(present.then(|| {
            let tensor = self.tensors.next().expect(TENSOR);
            self.handles.get_bool_tensor::<CubeBackend>(tensor)
        }))
    }

    fn optional_int(&mut self, present: bool) -> OptionalInt<CubeBackend> {
        OptionalInt::from_option(present.then(|| {
            let tensor = self.tensors.next().expect(TENSOR);
            self.handles.get_int_tensor::<CubeBackend>(tensor)
        }))
    }
}

/// A guarantee of [`recorded`].
const TENSOR: &str = "every operand was recorded";
