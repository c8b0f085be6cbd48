//! The kernels of `kernels-cube` over tensors in a GPU's memory.

#[cfg(all(test, feature = "wgpu", feature = "flex"))]
mod tests;

use burn::{
    backend::{
        Backend, TensorMetadata,
        cubecl::dtype_to_elem_type,
        ops::{FloatTensorOps, IntTensorOps},
        tensor::FloatTensor,
    },
    tensor::{BoolDType, DType, Shape},
};
use burn_attn_kernels_cube::{self as kernels, Operand, Refusal};
use burn_cubecl::{
    CubeBackend, CubeDevice,
    kernel::{cast, into_contiguous, untile},
    ops::numeric::empty_device_contiguous_dtype,
    tensor::CubeTensor,
};

use crate::{
    backend::{
        AttentionOps, Body, OptionalBool, OptionalFloat, OptionalInt, RequiredGrads, Results,
        SavedAndGrads, ScoreInputs,
    },
    blockwise,
};

/// Whether the kernels support the forward or the `backward` pass of this call, from shapes and dtypes alone: fusion asks before the tensors exist.
pub(super) fn supports<B: Backend<Device = CubeDevice>>(
    inputs: &ScoreInputs<B>,
    value: &FloatTensor<B>,
    backward: bool,
) -> bool {
    let query = &inputs.query;
    readable(inputs, value).is_some_and(|(optional, bools)| {
        kernels::supports(
            &query.device().client(),
            &inputs.problem(value),
            dtype_to_elem_type(query.dtype()),
            bools.map(dtype_to_elem_type),
            optional,
            backward && inputs.distance_bias.as_ref().is_some(),
        )
    })
}

/// If the interface of the kernels can express the call: how many optional tensors it has, counted as by `kernels::Inputs::optional`, and the type of its bools.
fn readable<B: Backend>(
    inputs: &ScoreInputs<B>,
    value: &FloatTensor<B>,
) -> Option<(usize, Option<DType>)> {
    use DType::{BF16, F16, F32, F64, I8, I16, I32, U8, U16};
    let (mask, scalars) = (&inputs.mask, &inputs.scalars);
    let (query, key) = (&inputs.query, &inputs.key);
    let p = inputs.problem(value);
    let output = Shape::new([p.batch, p.heads_q, p.len_q, p.dim_v]);
    let shapes = [query.shape(), key.shape(), value.shape(), output];
    let floats = [&inputs.sinks, &inputs.bias, &inputs.distance_bias];
    let floats = floats.map(OptionalFloat::as_ref);
    let ints = [
        &mask.key_segments,
        &mask.query_segments,
        &mask.key_lengths,
        &mask.first_keys,
        &mask.query_offsets,
    ];
    let ints = ints.map(OptionalInt::as_ref);
    let bools = [&mask.masked, &mask.visible_blocks].map(OptionalBool::as_ref);
    let dtype_of_bools = bools.iter().flatten().next().map(|x| x.dtype());
    // The sinks need no binding, and all segments are one tensor.
    let optional = floats[1..].iter().flatten().count()
        + ints[1..].iter().flatten().count()
        + bools.iter().flatten().count();
    let mut floats = floats.into_iter().flatten();
    let mut ints = ints.into_iter().flatten();
    // A device has one type of bools, stored as integers, but a tensor from elsewhere may have another.
    let mut readable_bools = bools.into_iter().flatten().map(|x| {
        let dtype = x.dtype();
        Some(dtype) == dtype_of_bools
            && dtype != DType::Bool(BoolDType::Native)
            && indexable(&x.shape())
    });
    let is_readable = scalars.body == Body::Fastest
        && !inputs.has_function()
        && kernels::supports_scalars(scalars.scale, scalars.softcap)
        && matches!(query.dtype(), F32 | F16 | BF16)
        && [key.dtype(), value.dtype()] == [query.dtype(); 2]
        && shapes.iter().all(indexable)
        && floats.all(|x| matches!(x.dtype(), F64 | F32 | F16 | BF16) && indexable(&x.shape()))
        // The kernels read i32: wider segment numbers could become equal, and wider lengths small.
        && ints.all(|x| matches!(x.dtype(), I32 | I16 | I8 | U16 | U8) && indexable(&x.shape()))
        && readable_bools.all(|readable| readable);
    is_readable.then_some((optional, dtype_of_bools))
}

/// Whether there are elements, and no more than indices of 31 bits reach.
fn indexable(shape: &Shape) -> bool {
    let elements = shape.iter().try_fold(1_i32, |elements, &size| {
        elements.checked_mul(i32::try_from(size).ok()?)
    });
    elements.is_some_and(|elements| elements > 0)
}

/// Without fusion. Burn's `Tensor` goes through fusion: see `fusion.rs`.
impl AttentionOps for CubeBackend {
    fn fused_attention(inputs: ScoreInputs<Self>, value: CubeTensor) -> Results<Self> {
        match supports(&inputs, &value, false) {
            true => forward(&inputs, &value).unwrap_or_else(|refusal| panic!("{refusal}")),
            false => blockwise::forward(inputs, value),
        }
    }

    fn fused_attention_backward(
        inputs: ScoreInputs<Self>,
        value: CubeTensor,
        saved: SavedAndGrads<Self>,
        required: RequiredGrads,
    ) -> Vec<FloatTensor<Self>> {
        match supports(&inputs, &value, true) {
            true => backward(&inputs, &value, saved, required)
                .unwrap_or_else(|refusal| panic!("{refusal}")),
            false => blockwise::backward(inputs, value, saved, required),
        }
    }
}

pub(super) fn forward(
    operands: &ScoreInputs<CubeBackend>,
    value: &CubeTensor,
) -> Result<Results<CubeBackend>, Refusal> {
    let inputs = inputs_of(operands, value);
    let p = operands.problem(value);
    let query = &operands.query;
    let shape = [p.batch, p.heads_q, p.len_q, p.dim_v];
    let output = empty_rows(query, &inputs.query, shape);
    let logsumexp = empty(query, [p.batch, p.heads_q, p.len_q], DType::F32);
    kernels::forward(
        &query.client,
        &inputs,
        &operand(output.clone()),
        &operand(logsumexp.clone()),
    )?;
    Ok((output, logsumexp))
}

pub(super) fn backward(
    operands: &ScoreInputs<CubeBackend>,
    value: &CubeTensor,
    saved: SavedAndGrads<CubeBackend>,
    required: RequiredGrads,
) -> Result<Vec<CubeTensor>, Refusal> {
    let inputs = inputs_of(operands, value);
    let upstream = kernels::Upstream {
        output: rows(saved.output),
        logsumexp: contiguous(saved.logsumexp, DType::F32),
        output_gradient: rows(saved.output_gradient),
        logsumexp_gradient: contiguous(saved.logsumexp_gradient, DType::F32),
    };
    let [query, key, value, bias, distance_bias, sinks, _] =
        operands.differentiable(value, required);
    let narrow = [
        (query, &inputs.query),
        (key, &inputs.key),
        (value, &inputs.value),
    ];
    let narrow = narrow.map(|(like, order)| {
        let like = like?;
        Some(empty_rows(like, order, like.shape().dims()))
    });
    let wide = [bias, distance_bias, sinks];
    let wide =
        wide.map(|like| like.map(|like| (empty(like, like.shape(), DType::F32), like.dtype)));
    let [query, key, value] = narrow.clone().map(|x| x.map(operand));
    let [bias, distance_bias, sinks] = wide.clone().map(|x| x.map(|(x, _)| operand(x)));
    let gradients = kernels::Gradients {
        query,
        key,
        value,
        bias,
        distance_bias,
        sinks,
    };
    kernels::backward(&operands.query.client, &inputs, &upstream, &gradients)?;
    let wide = wide.into_iter().flatten();
    let wide = wide.map(|(x, dtype)| cast(x, dtype));
    Ok(narrow.into_iter().flatten().chain(wide).collect())
}

/// The operands as the kernels read them, copied where that is necessary.
fn inputs_of(operands: &ScoreInputs<CubeBackend>, value: &CubeTensor) -> kernels::Inputs {
    let (mask, scalars) = (&operands.mask, operands.scalars);
    let float = |tensor: &CubeTensor| contiguous(tensor.clone(), DType::F32);
    let int = |tensor: &CubeTensor| contiguous(tensor.clone(), DType::I32);
    let strided_in = |tensor: &CubeTensor| strided(tensor.clone());
    let segments = mask.query_segments.as_ref().zip(mask.key_segments.as_ref());
    let segments = segments.map(|(queries, keys)| {
        let segments = [queries, keys].map(|tensor| cast(untile(tensor.clone()), DType::I32));
        int(&CubeBackend::int_cat(segments.into(), 1))
    });
    let bias = operands.bias.as_ref();
    let blocks = mask.visible_blocks.as_ref().map(strided_in);
    kernels::Inputs {
        query: rows(operands.query.clone()),
        key: rows(operands.key.clone()),
        value: rows(value.clone()),
        bias: bias.map(|bias| strided(cast(untile(bias.clone()), DType::F32))),
        distance_bias: operands.distance_bias.as_ref().map(float),
        sinks: operands.sinks.as_ref().map(float),
        masked: mask.masked.as_ref().map(strided_in),
        visible_blocks: blocks.zip(scalars.block_size),
        key_lengths: mask.key_lengths.as_ref().map(int),
        first_keys: mask.first_keys.as_ref().map(int),
        first_keys_are_causal: scalars.first_keys_are_causal,
        query_offsets: mask.query_offsets.as_ref().map(int),
        segments,
        by_position: scalars.by_position,
        scale: scalars.scale,
        softcap: scalars.softcap,
        dropout: scalars.dropout,
    }
}

/// The tensor as it lies in memory.
fn operand(tensor: CubeTensor) -> Operand {
    Operand {
        shape: tensor.meta.shape().to_vec(),
        strides: tensor.meta.strides().to_vec(),
        elem: dtype_to_elem_type(tensor.dtype),
        handle: tensor.handle,
    }
}

/// The tensor in place, if indices of 31 bits reach its last element: a view can be smaller than the memory that it spans.
fn strided(tensor: CubeTensor) -> Operand {
    let tensor = untile(tensor);
    let sizes = tensor.meta.shape().iter();
    let last = sizes
        .zip(tensor.meta.strides().iter())
        .map(|(&size, &stride)| (size - 1).saturating_mul(stride))
        .fold(0, usize::saturating_add);
    operand(match i32::try_from(last) {
        Ok(_) => tensor,
        Err(_) => into_contiguous(tensor),
    })
}

/// A `[batch, heads, len, dim]` tensor with contiguous rows, copied if necessary.
fn rows(tensor: CubeTensor) -> Operand {
    let tensor = untile(tensor);
    let has_rows = tensor.meta.strides()[3] == 1 || tensor.meta.shape()[3] == 1;
    strided(match has_rows {
        true => tensor,
        false => into_contiguous(tensor),
    })
}

fn contiguous(tensor: CubeTensor, dtype: DType) -> Operand {
    operand(into_contiguous(cast(untile(tensor), dtype)))
}

/// A new `[batch, heads, len, dim]` tensor in the dtype of a tensor and the memory order of its operand:
/// `[batch, len, heads, dim]` comes from a model that has split heads and will merge them, which then needs no copy.
fn empty_rows(like: &CubeTensor, order: &Operand, shape: [usize; 4]) -> CubeTensor {
    let [batch, heads, len, dim] = shape;
    match order.strides[1] < order.strides[2] {
        true => {
            CubeBackend::float_swap_dims(empty(like, [batch, len, heads, dim], like.dtype), 1, 2)
        }
        false => empty(like, shape, like.dtype),
    }
}

/// A new row-major tensor on the device of another, for kernels that write all of it.
fn empty(on_device_of: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    let (client, device) = (&on_device_of.client, &on_device_of.device);
    // A test must not take what an earlier call has left in the same memory for a result that a kernel forgot to write.
    if cfg!(debug_assertions) {
        let nan = CubeBackend::float_full(shape.into(), f64::NAN.into(), device, dtype.into());
        return into_contiguous(nan);
    }
    empty_device_contiguous_dtype(client.clone(), device.clone(), shape.into(), dtype)
}
