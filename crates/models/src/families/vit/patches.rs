//! What all models share that see images as patches.

use burn::{
    nn::conv::Conv2d,
    tensor::{Tensor, TensorData},
};

use crate::loss::wide;

/// A token for every patch of images `[batch, channels, height, width]`, row by row, `[batch, rows · columns, d_model]`; and how many rows and columns
/// there are. What does not fill a patch at the right and at the bottom is left out.
///
/// # Panics
///
/// In the name of `model`, when the channels differ, or an image is smaller than a patch.
pub(crate) fn tokens_of_patches(
    model: &str,
    patches: &Conv2d,
    images: Tensor<4>,
) -> (Tensor<3>, [usize; 2]) {
    let [batch, channels, height, width] = images.dims();
    let ([_, own, ..], [tall, wide]) = (patches.weight.dims(), patches.kernel_size);
    assert!(
        channels == own,
        "{model}: images of {channels} channels for a model that sees {own}"
    );
    assert!(
        height >= tall && width >= wide,
        "{model}: images of {height} × {width} have no patch of {tall} × {wide}"
    );
    let patches = patches.forward(images.cast(patches.weight.dtype()));
    let [_, d_model, rows, columns] = patches.dims();
    let tokens = patches.reshape([batch, d_model, rows * columns]);
    (tokens.swap_dims(1, 2), [rows, columns])
}

/// The positions of `special` tokens and of a grid of patches, `[1, special + rows · columns, d_model]`: those of `table`, `[1, len, d_model]`, whose grid is
/// a square. It is interpolated bicubically for any other, anew in each call, as by PyTorch's
/// `interpolate(mode="bicubic")`: with matrices, because flex is the
/// only backend of Burn 0.22.1 that has the gradient of `interpolate`.
pub(crate) fn positions_of_grid(
    table: Tensor<3>,
    special: usize,
    [rows, columns]: [usize; 2],
) -> Tensor<3> {
    let [_, len, d_model] = table.dims();
    let along = (len - special).isqrt();
    if [rows, columns] == [along; 2] {
        return table;
    }
    // Half precision has too few digits.
    let (device, dtype) = (table.device(), wide(table.dtype()));
    let mixed = |x: Tensor<2>, len: usize| -> Tensor<2> {
        let matrix = TensorData::new(bicubic(along, len), [len, along]);
        Tensor::<2>::from_data(matrix, (&device, dtype)).matmul(x)
    };
    let of_patches = table.clone().narrow(1, special, along * along);
    let x = of_patches.cast(dtype).reshape([along, along * d_model]);
    let x = mixed(x, rows)
        .reshape([rows, along, d_model])
        .swap_dims(0, 1);
    let x = mixed(x.reshape([along, rows * d_model]), columns);
    let x = x.reshape([columns, rows, d_model]).swap_dims(0, 1);
    let of_patches = x.reshape([1, rows * columns, d_model]).cast(table.dtype());
    match special {
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
        0 => of_patches,
        _ => Tensor::cat(vec![table.narrow(1, 0, special), of_patches], 1),
    }
}

/// Bicubic interpolation of `from` numbers to `to`, `[to, from]`, with PyTorch's parameter of -0.75. Numbers beyond an end are the last one.
fn bicubic(from: usize, to: usize) -> Vec<f64> {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    let mut matrix = vec![0.0; to * from];
    for (at, row) in matrix.chunks_mut(from).enumerate() {
        let place = (at as f64 + 0.5) * from as f64 / to as f64 - 0.5;
        let part = place - place.floor();
        let weights = [
            far(part + 1.0),
            near(part),
            near(1.0 - part),
            far(2.0 - part),
        ];
        for (index, weight) in (place.floor() as isize - 1..).zip(weights) {
            row[index.clamp(0, from as isize - 1) as usize] += weight;
        }
    }
    matrix
}
