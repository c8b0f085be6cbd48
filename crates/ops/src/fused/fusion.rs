//! The kernels of `kernels-cube` below Burn's fusion, which records operations and runs them later.
//!
//! A call that the kernels support is one custom operation, forward and backward. That is decided before it is recorded, from
//! shapes and dtypes. Any other call is recorded as the plain operations of the blockwise body.

mod encoding;

use core::{iter::Copied, slice::Iter};

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
        CustomOpIr, HandleContainer, Operation, OperationIr, OperationOutput, ScalarIr, StreamId,
        TensorIr,
    },
};

use super::cube::{self, supports};
use crate::{
    backend::{
        AttentionOps, AttentionScalars, Differentiable, Gradients, MaskInputs, OptionalBool,
        OptionalFloat, OptionalInt, RequiredGrads, Results, SavedAndGrads, ScoreInputs,
    },
    blockwise,
};
use encoding::Encode;

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
        let (tensors, scalars) = recorded(inputs, value);
        let call = Call {
            name: "burn_attn::attention",
            tensors,
            scalars,
            run: forward,
        };
        let [output, logsumexp] = call.record(&client, &outputs).outputs();
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
        let required = outputs.each_ref().map(Option::is_some);
        let client = inputs.query.client.clone();
        let (mut tensors, mut scalars) = recorded(inputs, value);
        let SavedAndGrads {
            output,
            logsumexp,
            output_gradient,
            logsumexp_gradient,
        } = saved;
        let saved = [output, logsumexp, output_gradient, logsumexp_gradient];
        tensors.extend(saved.map(Tensor::into_ir));
        required.encode(&mut scalars);
        let call = Call {
            name: "burn_attn::attention_backward",
            tensors,
            scalars,
            run: backward,
        };
        let outputs: Vec<_> = outputs.into_iter().flatten().collect();
        let mut computed = call.record(&client, &outputs).into_iter();
        let [query, key, value, bias, distance_bias, sinks] = required.map(|required| {
            let gradient = required.then(|| computed.next().expect("as many outputs as required"));
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

/// The tensors of a call, and its scalars: which optional tensors there are, and what else it says. [`Reader::inputs`] reads
/// both in the same order.
fn recorded(
    inputs: ScoreInputs<Fusion<CubeBackend>>,
    value: Tensor,
) -> (Vec<TensorIr>, Vec<ScalarIr>) {
    let ScoreInputs {
        query,
        key,
        bias,
        distance_bias,
        sinks,
        mask,
        scalars: options,
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
    let mut scalars = Vec::new();
    optional
        .each_ref()
        .map(Option::is_some)
        .encode(&mut scalars);
    options.encode(&mut scalars);
    // A tensor may be several operands: the last use in this order frees it.
    let tensors = [query, key, value]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .map(Tensor::into_ir)
        .collect();
    (tensors, scalars)
}

/// A call before it is recorded.
struct Call {
    name: &'static str,
    tensors: Vec<TensorIr>,
    scalars: Vec<ScalarIr>,
    run: Run,
}

/// Computes the results of an operation, one for each of its outputs.
type Run = fn(Reader<'_>) -> Result<Vec<CubeTensor>, Refusal>;

impl Call {
    /// Records the call; its outputs have these shapes and dtypes.
    fn record(self, client: &Client, outputs: &[(Shape, DType)]) -> Vec<Tensor> {
        let outputs: Vec<_> = outputs
            .iter()
            .map(|(shape, dtype)| {
                TensorIr::uninit(client.create_empty_handle(), shape.clone(), *dtype)
            })
            .collect();
        let call = CustomOpIr::with_scalars(self.name, &self.tensors, &outputs, self.scalars);
        let operation = Recorded {
            call: call.clone(),
            run: self.run,
        };
        client.register(StreamId::current(), OperationIr::Custom(call), operation)
    }
}

/// A recorded call.
#[derive(Debug)]
struct Recorded {
    call: CustomOpIr,
    run: Run,
}

impl Operation<FusionCubeRuntime> for Recorded {
    fn execute(&self, handles: &mut Handles) -> Result<(), ExecutionError> {
        let results = (self.run)(Reader {
            handles,
            tensors: self.call.inputs.iter(),
            scalars: self.call.scalars.iter().copied(),
        });
        // Whoever reads an output of this call gets the sentence; a panic would end the operations that Burn runs with it.
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

fn forward(mut reader: Reader<'_>) -> Result<Vec<CubeTensor>, Refusal> {
    let (inputs, value) = reader.inputs();
    let (output, logsumexp) = cube::forward(&inputs, &value)?;
    Ok(vec![output, logsumexp])
}

fn backward(mut reader: Reader<'_>) -> Result<Vec<CubeTensor>, Refusal> {
    let (inputs, value) = reader.inputs();
    let saved = SavedAndGrads {
        output: reader.float(),
        logsumexp: reader.float(),
        output_gradient: reader.float(),
        logsumexp_gradient: reader.float(),
    };
    let required: [bool; 6] = Encode::decode(&mut reader.scalars);
    let [query, key, of_value, bias, distance_bias, sinks] = required;
    let required = Differentiable {
        query,
        key,
        value: of_value,
        bias,
        distance_bias,
        sinks,
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
}

/// Reads the tensors and scalars of a recorded call, one after the other.
struct Reader<'a> {
    handles: &'a mut Handles,
    tensors: Iter<'a, TensorIr>,
    scalars: Copied<Iter<'a, ScalarIr>>,
}

impl Reader<'_> {
    /// What [`recorded`] has written: the operands, and the values.
    fn inputs(&mut self) -> (ScoreInputs<CubeBackend>, CubeTensor) {
        let present: [bool; 9] = Encode::decode(&mut self.scalars);
        let scalars = AttentionScalars::decode(&mut self.scalars);
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
        ] = present;
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
            scalars,
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

/// What `recorded` guarantees.
const TENSOR: &str = "every operand was recorded";
