//! The linear layers of attention and feed-forward networks: initialising and applying them.

use burn::{
    module::{Module, Param, ParamId},
    nn::{Initializer, Linear, LinearConfig},
    tensor::{DType, Device, Tensor, activation::sigmoid, assert_shape},
};

use crate::trace::Recorder;

/// How Burn's `Linear` is initialised: uniformly up to `1 / √d_input`.
pub(crate) fn kaiming_uniform() -> Initializer {
    Initializer::KaimingUniform {
        gain: 1.0 / 3.0f64.sqrt(),
        fan_out_only: false,
    }
}

/// Layers of these widths over the same input, side by side in one layer; each is initialised as if it were alone.
pub(crate) fn side_by_side(
    d_input: usize,
    widths: &[usize],
    bias: bool,
    initializer: &Initializer,
    device: &Device,
) -> Linear {
    let parts = widths.iter().map(|&width| {
        LinearConfig::new(d_input, width)
            .with_bias(bias)
            .with_initializer(initializer.clone())
            .init(device)
    });
    let mut parts: Vec<Linear> = parts.collect();
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let biases = parts.iter_mut().map(|part| part.bias.take());
    let biases: Option<Vec<_>> = biases.collect();
    let weights = parts.into_iter().map(|part| part.weight).collect();
    Linear {
        weight: joined(weights, 1),
        bias: biases.map(|biases| joined(biases, 0)),
    }
}

/// Several uninitialised parameters as one, which is uninitialised as well.
fn joined<const D: usize>(parts: Vec<Param<Tensor<D>>>, dim: usize) -> Param<Tensor<D>> {
    let mut shape = parts[0].lazy_shape();
    shape[dim] = parts.iter().map(|part| part.lazy_shape()[dim]).sum();
    let device = parts[0].lazy_device();
    let draw = move |device: &Device, require_grad: bool| {
        let parts = parts.into_iter().map(|part| part.to_device(device).val());
        let parts: Vec<Tensor<D>> = parts.collect();
        device.memory_persistent_allocations(parts, |parts| {
            // A parameter is a leaf: its graph must not lead to its parts.
            let whole = Tensor::cat(parts, dim).detach();
            match require_grad {
                true => whole.require_grad(),
                false => whole,
            }
        })
    };
    Param::uninitialized(ParamId::new(), draw, device, true, shape)
}

/// `linear` of `x`, `[batch, len, d_output]` of `[batch, len, d_input]`; `batch` and `len` may be 0. Panics when the width of `x` differs.
///
/// In Burn 0.22.1 a product with an empty batch reads out of bounds on flex, and one with an empty length divides by zero on
/// ndarray.
pub fn apply(linear: &Linear, x: Tensor<3>) -> Tensor<3> {
    let bias = linear.bias.as_ref().map(Param::val);
    product(x, linear.weight.val(), bias)
}

/// As [`apply`], with the weight and the bias of a layer.
fn product(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<3> {
    let [batch, len, width] = x.dims();
    let [d_input, d_output] = weight.dims();
    if batch == 0 || len == 0 {
        assert_shape!(x, [_, _, d_input]);
        return Tensor::zeros([batch, len, d_output], (&x.device(), x.dtype()));
    }
    // As one matrix, the gradient of the weight is one product instead of one per batch item and their sum.
    let rows = x.reshape([batch * len, width]);
    burn_attn_ops::linear(rows, weight, bias).reshape([batch, len, d_output])
}

/// The output projection of the `merged` heads, multiplied by the sigmoid of the gate's projection of its input, if there is a gate.
pub(crate) fn output(
    projection: &Linear,
    merged: Tensor<3>,
    gate: Option<(&Linear, Tensor<3>)>,
    recorder: &mut Recorder,
) -> Tensor<3> {
    let merged = match gate {
        Some((gate, x)) => merged * sigmoid(apply(gate, x)),
        None => merged,
    };
    recorder.step("merged", &merged);
    let output = apply(projection, merged);
    recorder.step("output", &output);
    output
}

/// The product of `x` and the first `columns` columns of the weight of `linear`, without the bias: the change of these columns of its output
/// when `x` is added to its input.
pub(crate) fn apply_without_bias(linear: &Linear, x: Tensor<3>, columns: usize) -> Tensor<3> {
    let weight = linear.weight.val();
    match weight.dtype().is_float() {
        true => product(x, weight.narrow(1, 0, columns), None),
        // Packed numbers share scales, which not every backend narrows with them.
        false => product(x, weight, None).narrow(2, 0, columns),
    }
}

/// `embedding`, which is to be added to sequences `[batch, len, width]`.
///
/// Panics unless `embedding` has that shape, or that of one sequence for all.
pub(crate) fn fitted(embedding: Tensor<3>, [batch, len, width]: [usize; 3]) -> Tensor<3> {
    let [sequences, _, _] = embedding.dims();
    let sequences = if sequences == 1 { 1 } else { batch };
    assert_shape!(embedding, [sequences, len, width]);
    embedding
}

/// `linear` of rows, fast for the single rows of decoding too.
pub(crate) fn apply_to_rows(linear: &Linear, rows: Tensor<2>) -> Tensor<2> {
    let bias = linear.bias.as_ref().map(Param::val);
    burn_attn_ops::linear(rows, linear.weight.val(), bias)
}

/// The device on which `linear` computes, and the dtype of its weight: none if the weight is quantised, because `linear` then
/// computes in the dtype of the input.
///
/// With an adapter, returns the dtype of its factors, without merging them.
pub(crate) fn place(linear: &Linear) -> (Device, Option<DType>) {
    let weight = &linear.weight;
    let dtype = match weight.adapter() {
        Some(adapter) => adapter.a.dtype(),
        None => weight.dtype(),
    };
    (weight.lazy_device(), dtype.is_float().then_some(dtype))
}
