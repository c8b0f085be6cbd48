//! The product of few rows with a matrix, over tensors in host memory.

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape},
};
use burn_attn_kernels_cpu::tiled::{Element, Execution, FEW_ROWS, FewRows};

use super::readable::{Host, Plain, contiguous};

/// Smaller matrices stay in the nearest cache, where it does not matter how they are read.
const FEWEST_NUMBERS: usize = 1 << 12;

/// `[rows, depth]` times `[depth, columns]`: Burn's product, but for few rows of a matrix that lies row after row.
pub(crate) fn product<B: Host>(x: FloatTensor<B>, weight: FloatTensor<B>) -> FloatTensor<B> {
    let ([rows, _], [depth, columns]) = (x.shape().dims::<2>(), weight.shape().dims::<2>());
    if rows > 0
        && rows <= FEW_ROWS
        && depth * columns >= FEWEST_NUMBERS
        && x.dtype() == weight.dtype()
    {
        let product = match x.dtype() {
            DType::F32 => few_rows::<B, f32>(&x, &weight),
            DType::F64 => few_rows::<B, f64>(&x, &weight),
            _ => None,
        };
        if let Some(product) = product {
            return product;
        }
    }
    B::float_matmul(x, weight)
}

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
    let execution = Execution::available();
    let mut out = vec![T::default(); rows * columns];
    product.run(&mut out, execution);
    Some(B::float_tensor(out, Shape::new([rows, columns])))
}
