//! Linear layers over tensors in host memory.

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape},
};
use burn_attn_kernels_cpu::tiled::{Activation, Element, Execution, FEW_ROWS, FewRows, ManyRows};

use super::readable::{Host, Plain, contiguous};
use crate::{AttentionOps, OptionalFloat};

/// Smaller matrices stay in the nearest cache, where the order of reads does not matter.
const FEWEST_NUMBERS: usize = 1 << 12;
/// Larger matrices are packed through main memory, which pays off for many rows only.
const MOST_NUMBERS: usize = 1 << 20;
/// The least number of rows for which it does.
const PACKED_ROWS: usize = 128;

/// `activation(x · weight + bias)`, by Burn's product where the kernels do not support the call.
pub(crate) fn linear<B: Host + AttentionOps>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: OptionalFloat<B>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<B> {
    let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
    let (dtype, numbers) = (x.dtype(), depth * columns);
    let ours = rows > 0 && numbers >= FEWEST_NUMBERS && dtype == weight.dtype();
    let few = ours && rows <= FEW_ROWS;
    let packs = numbers <= MOST_NUMBERS || rows >= PACKED_ROWS;
    let many = ours && !few && packs && dtype == DType::F32;
    // A gate is another column of the same row, which has not been computed yet.
    if many && !gated {
        let layer = many_rows::<B>(&x, &weight, bias.as_ref(), activation);
        if let Some(layer) = layer {
            return layer;
        }
    }
    let product = match dtype {
        DType::F32 if few => few_rows::<B, f32>(&x, &weight),
        DType::F64 if few => few_rows::<B, f64>(&x, &weight),
        _ if many => many_rows::<B>(&x, &weight, None, Activation::Identity),
        _ => None,
    };
    let product = product.unwrap_or_else(|| B::float_matmul(x, weight));
    B::activate(product, bias, activation, gated)
}

/// The product of few rows, if the kernel can read it.
fn few_rows<B: Host, T: Element<Real = T> + Plain>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
) -> Option<FloatTensor<B>> {
    let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
    let product = FewRows::<T> {
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
fn many_rows<B: Host>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    bias: Option<&FloatTensor<B>>,
    activation: Activation,
) -> Option<FloatTensor<B>> {
    let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
    let bias = match bias {
        Some(bias) if bias.dtype() == DType::F32 => contiguous::<B, f32>(bias)?,
        Some(_) => return None,
        None => &[],
    };
    let layer = ManyRows {
        x: contiguous::<B, f32>(x)?,
        weight: contiguous::<B, f32>(weight)?,
        bias,
        rows,
        depth,
        columns,
        activation,
    };
    let mut out = vec![0.0; rows * columns];
    layer.run(&mut out, Execution::available());
    Some(B::float_tensor(out, Shape::new([rows, columns])))
}
