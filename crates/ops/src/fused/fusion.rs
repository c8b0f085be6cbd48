//! The kernels of `kernels-cube` below Burn's fusion, which records operations and runs them later.
//!
//! A pass that the kernels support is one custom operation. Shapes and dtypes decide, before it is recorded. Any other is recorded as the plain
//! operations of the blockwise body.
//!
//! Burn caches the order of recorded operations by their names and tensors. The options of a call stay in the closure that runs it.

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape},
};
use burn_attn_kernels_cube::Refusal;
use burn_cubecl::{CubeBackend, fusion::CubeFusionHandle, tensor::CubeTensor};
use burn_fusion::{
    ExecutionError, Fusion,
    custom::{
        CustomOpIr, FusionValueAdapter, HandleContainer, OperationFn, OperationIr, OperationOutput,
        StreamId, TensorIr,
    },
};

use super::cube::{self, supports};
use crate::{
    backend::{AttentionOps, RequiredGrads, Results, SavedAndGrads, ScoreInputs},
    blockwise,
};

type Tensor = FloatTensor<Fusion<CubeBackend>>;
type Handles = HandleContainer<CubeFusionHandle>;

impl AttentionOps for Fusion<CubeBackend> {
    fn fused_attention(inputs: ScoreInputs<Self>, value: Tensor) -> Results<Self> {
        if !supports(&inputs, &value, false) {
            return blockwise::forward(inputs, value);
        }
        let p = inputs.problem(&value);
        let output = Shape::new([p.batch, p.heads_q, p.len_q, p.dim_v]);
        let logsumexp = Shape::new([p.batch, p.heads_q, p.len_q]);
        let outputs = [(output, inputs.query.dtype), (logsumexp, DType::F32)];
        let name = "burn_attn::attention";
        let results = record(name, inputs, value, None, outputs, |inputs, value, _| {
            let (output, logsumexp) = cube::forward(&inputs, &value)?;
            Ok(vec![output, logsumexp])
        });
        let [output, logsumexp] = results.outputs();
        (output, logsumexp)
    }

    fn fused_attention_backward(
        inputs: ScoreInputs<Self>,
        value: Tensor,
        saved: SavedAndGrads<Self>,
        required: RequiredGrads,
    ) -> Vec<Tensor> {
        if !supports(&inputs, &value, true) {
            return blockwise::backward(inputs, value, saved, required);
        }
        let tensors = inputs.differentiable(&value, required);
        let outputs = tensors.map(|tensor| Some((tensor?.shape(), tensor?.dtype)));
        let outputs = outputs.into_iter().flatten();
        let name = "burn_attn::attention_backward";
        record(
            name,
            inputs,
            value,
            Some(saved),
            outputs,
            move |inputs, value, saved| {
                let saved = saved.expect("the results were recorded");
                cube::backward(&inputs, &value, saved, required)
            },
        )
    }
}

/// Records a call, whose outputs have these shapes and dtypes. `run` computes them from what was recorded.
fn record(
    name: &'static str,
    inputs: ScoreInputs<Fusion<CubeBackend>>,
    value: Tensor,
    saved: Option<SavedAndGrads<Fusion<CubeBackend>>>,
    outputs: impl IntoIterator<Item = (Shape, DType)>,
    run: impl Fn(
        ScoreInputs<CubeBackend>,
        CubeTensor,
        Option<SavedAndGrads<CubeBackend>>,
    ) -> Result<Vec<CubeTensor>, Refusal>
    + Send
    + Sync
    + 'static,
) -> Vec<Tensor> {
    let client = inputs.query.client.clone();
    // A tensor may be several operands: the last use in this order frees it.
    let mut operands = Vec::new();
    let inputs = ScoreInputs::<CubeBackend>::append_input_ir(inputs, &mut operands);
    let value = value.into_ir();
    operands.push(value.clone());
    let saved =
        saved.map(|saved| SavedAndGrads::<CubeBackend>::append_input_ir(saved, &mut operands));
    let outputs: Vec<_> = outputs
        .into_iter()
        .map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype))
        .collect();
    let call = CustomOpIr::new(name, &operands, &outputs);
    let execute = move |handles: &mut Handles| -> Result<(), ExecutionError> {
        let inputs = ScoreInputs::<CubeBackend>::resolve_inputs(&inputs, handles);
        let value = handles.get_float_tensor::<CubeBackend>(&value);
        let saved = saved.as_ref();
        let saved = saved.map(|saved| SavedAndGrads::<CubeBackend>::resolve_inputs(saved, handles));
        // A reader of an output gets the sentence; a panic would also end the operations that Burn runs with the call.
        let results = run(inputs, value, saved)
            .map_err(|refusal| ExecutionError::generic(refusal.to_string()))?;
        debug_assert_eq!(results.len(), outputs.len());
        for (output, result) in outputs.iter().zip(results) {
            debug_assert_eq!(
                (result.shape(), result.dtype),
                (output.shape.clone(), output.dtype)
            );
            handles.register_float_tensor::<CubeBackend>(&output.id, result);
        }
        Ok(())
    };
    let call = OperationIr::Custom(call);
    client.register(StreamId::current(), call, OperationFn(execute))
}
