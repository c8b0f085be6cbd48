//! The operations of backends whose tensors are in host memory, by the kernels of `kernels-cpu`.

mod attention;
#[cfg(feature = "ndarray")]
mod ndarray;
mod rotation;
mod tensors;

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape, bf16, f16},
};
use burn_attn_kernels_cpu::{
    AttentionDropout,
    tiled::{Activated, Activation, Element, Execution, Linear, SKINNY_ROWS, SkinnyGemm},
};

use crate::{
    backend::{
        AttentionOps, Body, OptionalFloat, RequiredGrads, Results, Rotation, SavedAndGrads,
        ScoreInputs,
    },
    blockwise,
    composed::{self, activation},
};
use tensors::{Host, Plain, contiguous, elements, row_major};

/// Smaller matrices stay in L1, where the order of reads does not matter.
const FEWEST_NUMBERS: usize = 1 << 12;
/// Larger matrices are packed through main memory, which pays off for many rows only.
const MOST_NUMBERS: usize = 1 << 20;
/// The least number of rows for which packing pays off.
const PACKED_ROWS: usize = 128;

impl<B: Host> AttentionOps for B {
    fn fused_attention(inputs: ScoreInputs<B>, value: FloatTensor<B>) -> Results<B> {
        let ours = is_ours(&inputs);
        match inputs.query.dtype() {
            DType::F64 if ours => attention::forward::<B, f64>(&inputs, &value),
            DType::F32 if ours => attention::forward::<B, f32>(&inputs, &value),
            DType::F16 if ours => attention::forward::<B, f16>(&inputs, &value),
            DType::BF16 if ours => attention::forward::<B, bf16>(&inputs, &value),
            _ => blockwise::forward(inputs, value),
        }
    }

    fn fused_attention_backward(
        inputs: ScoreInputs<B>,
        value: FloatTensor<B>,
        saved: SavedAndGrads<B>,
        required: RequiredGrads,
    ) -> Vec<FloatTensor<B>> {
        let ours = is_ours(&inputs);
        match inputs.query.dtype() {
            DType::F64 if ours => attention::backward::<B, f64>(&inputs, &value, saved, required),
            DType::F32 if ours => attention::backward::<B, f32>(&inputs, &value, saved, required),
            DType::F16 if ours => attention::backward::<B, f16>(&inputs, &value, saved, required),
            DType::BF16 if ours => attention::backward::<B, bf16>(&inputs, &value, saved, required),
            _ => blockwise::backward(inputs, value, saved, required),
        }
    }

    /// By Burn's product where the kernels do not support the call.
    fn linear(
        x: FloatTensor<B>,
        weight: FloatTensor<B>,
        bias: OptionalFloat<B>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<B> {
        let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
        let (dtype, numbers) = (x.dtype(), depth * columns);
        let ours = rows > 0 && numbers >= FEWEST_NUMBERS && dtype == weight.dtype();
        let few = ours && rows <= SKINNY_ROWS;
        let packs = numbers <= MOST_NUMBERS || rows >= PACKED_ROWS;
        let many = ours && !few && packs && dtype == DType::F32;
        // A gate is another column of the same row, which has not been computed yet.
        if many && !gated {
            let layer = linear_layer::<B>(&x, &weight, bias.as_ref(), activation);
            if let Some(layer) = layer {
                return layer;
            }
        }
        let product = match dtype {
            DType::F32 if few => skinny_gemm::<B, f32>(&x, &weight),
            DType::F64 if few => skinny_gemm::<B, f64>(&x, &weight),
            _ if many => linear_layer::<B>(&x, &weight, None, Activation::Identity),
            _ => None,
        };
        let product = product.unwrap_or_else(|| B::float_matmul(x, weight));
        B::activate(product, bias, activation, gated)
    }

    /// In one pass where the operands are f32 and the bias is contiguous.
    fn activate(
        x: FloatTensor<B>,
        bias: OptionalFloat<B>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<B> {
        let [rows, width] = x.shape().dims::<2>();
        if activation == Activation::Identity && !gated && bias.as_ref().is_none() {
            return x;
        }
        let in_f32 = x.dtype() == DType::F32;
        let Some(bias) = numbers::<B>(bias.as_ref()).filter(|_| in_f32) else {
            return activation::activate::<B>(x, bias, activation, gated);
        };
        let columns = if gated { width / 2 } else { width };
        let activated = Activated {
            bias,
            columns,
            activation,
        };
        let execution = Execution::available();
        if !gated {
            return B::changed(x, |x| activated.in_place(x, execution));
        }
        let x = row_major::<B, f32>(&x);
        let mut out = vec![0.0; rows * columns];
        activated.gated(elements::<B, f32>(&x), &mut out, execution);
        B::float_tensor(out, Shape::new([rows, columns]))
    }

    /// In one pass where the operands are f32 and the bias is contiguous.
    fn activate_backward(
        x: FloatTensor<B>,
        bias: OptionalFloat<B>,
        gradient: FloatTensor<B>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<B> {
        let [rows, width] = x.shape().dims::<2>();
        let in_f32 = [x.dtype(), gradient.dtype()] == [DType::F32; 2];
        let Some(bias) = numbers::<B>(bias.as_ref()).filter(|_| in_f32) else {
            return activation::activate_backward::<B>(x, bias, gradient, activation, gated);
        };
        let activated = Activated {
            bias,
            columns: if gated { width / 2 } else { width },
            activation,
        };
        let execution = Execution::available();
        let x = row_major::<B, f32>(&x);
        let x = elements::<B, f32>(&x);
        if !gated {
            return B::changed(gradient, |gradient| {
                activated.backward_in_place(x, gradient, execution)
            });
        }
        let gradient = row_major::<B, f32>(&gradient);
        let mut out = vec![0.0; rows * width];
        activated.backward_gated(x, elements::<B, f32>(&gradient), &mut out, execution);
        B::float_tensor(out, Shape::new([rows, width]))
    }

    /// In one pass over memory in f32 and f64; by plain tensor operations in half precision, in which CPUs are not faster.
    fn rotate(
        x: FloatTensor<B>,
        cos: FloatTensor<B>,
        sin: FloatTensor<B>,
        rotation: Rotation,
    ) -> FloatTensor<B> {
        match x.dtype() {
            DType::F32 => rotation::by_kernel::<B, f32>(x, [cos, sin], rotation),
            DType::F64 => rotation::by_kernel::<B, f64>(x, [cos, sin], rotation),
            _ => composed::rotation::rotate::<B>(x, cos, sin, &rotation),
        }
    }

    // Burn's CPU generator samples number by number; the counter-based generator needs a few integer operations per number.
    fn dropout_factors(like: FloatTensor<B>, dropout: AttentionDropout) -> FloatTensor<B> {
        composed::dropout::factors_of_host::<B>(like, dropout)
    }
}

/// Whether the kernels compute attention, in the dtypes that they have.
fn is_ours<B: Host>(inputs: &ScoreInputs<B>) -> bool {
    inputs.scalars.body == Body::Fastest && !inputs.needs_tensor_form()
}

/// The numbers of a bias, none without a bias; `None` if they cannot be read in place as f32.
fn numbers<B: Host>(bias: Option<&FloatTensor<B>>) -> Option<&[f32]> {
    match bias {
        Some(bias) if bias.dtype() == DType::F32 => contiguous::<B, f32>(bias),
        Some(_) => None,
        None => Some(&[]),
    }
}

/// The product of few rows, if the kernel can read it.
fn skinny_gemm<B: Host, T: Element<Real = T> + Plain>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
) -> Option<FloatTensor<B>> {
    let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
    let product = SkinnyGemm::<T> {
        x: contiguous::<B, T>(x)?,
        weight: contiguous::<B, T>(weight)?,
        rows,
        depth,
        columns,
    };
    let mut out = vec![T::default(); rows * columns];
    product.run(&mut out, Execution::available());
    Some(B::float_tensor(out, Shape::new([rows, columns])))
}

/// The layer of many rows, if the kernel can read it.
fn linear_layer<B: Host>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    bias: Option<&FloatTensor<B>>,
    activation: Activation,
) -> Option<FloatTensor<B>> {
    let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
    let layer = Linear {
        x: contiguous::<B, f32>(x)?,
        weight: contiguous::<B, f32>(weight)?,
        bias: numbers::<B>(bias)?,
        rows,
        depth,
        columns,
        activation,
    };
    let mut out = vec![0.0; rows * columns];
    layer.run(&mut out, Execution::available());
    Some(B::float_tensor(out, Shape::new([rows, columns])))
}
