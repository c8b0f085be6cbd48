//! What the models share that read images as grids of tokens.

use burn::{
    nn::{
        PaddingConfig2d,
        conv::{Conv2d, Conv2dConfig},
    },
    tensor::{Tensor, TensorData},
};

use crate::loss::wide;

/// Refuses images `[batch, channels, height, width]`, in the name of `model`, if there are none, or if they do not have the channels that its first
/// convolution reads. In Burn 0.22.1 products with an empty batch read out of bounds on flex.
pub(super) fn check_images(model: &str, first: &Conv2d, images: &Tensor<4>) {
    let ([batch, channels, ..], [_, own, ..]) = (images.dims(), first.weight.dims());
    assert!(batch > 0, "{model}: there are no images");
    assert!(
        channels == own,
        "{model}: images of {channels} channels for a model that sees {own}"
    );
}

/// A convolution with a square kernel, padded by half of it on each side: with a stride of 1, an odd kernel keeps rows and columns.
pub(super) fn convolution([from, to, kernel, stride]: [usize; 4]) -> Conv2dConfig {
    let around = kernel / 2;
    Conv2dConfig::new([from, to], [kernel; 2])
        .with_stride([stride; 2])
        .with_padding(PaddingConfig2d::Explicit(around, around, around, around))
}

/// `[batch, channels, rows, columns]` to `[batch, rows · columns, channels]`, and rows and columns.
pub(super) fn to_tokens(map: Tensor<4>) -> (Tensor<3>, [usize; 2]) {
    let [_, _, rows, columns] = map.dims();
    (map.flatten::<3>(2, 3).swap_dims(1, 2), [rows, columns])
}

/// `[batch, rows · columns, channels]` to `[batch, channels, rows, columns]`.
pub(super) fn to_map(tokens: Tensor<3>, [rows, columns]: [usize; 2]) -> Tensor<4> {
    let [batch, _, channels] = tokens.dims();
    let tokens = tokens.swap_dims(1, 2);
    tokens.reshape([batch, channels, rows, columns])
}

/// `special` tokens, `[1, 1, d_model]` each, then one for every patch of images `[batch, channels, height, width]`, row by row, with their positions added:
/// `[batch, len, d_model]`. Pixels that do not fill a patch at the right and at the bottom are left out.
///
/// # Panics
///
/// In the name of `model`, when there are no images, the channels differ, or an image is smaller than a patch.
pub(super) fn embedded(
    model: &str,
    patches: &Conv2d,
    images: Tensor<4>,
    special: Vec<Tensor<3>>,
    positions: Tensor<3>,
) -> Tensor<3> {
    check_images(model, patches, &images);
    let ([batch, _, height, width], [tall, wide]) = (images.dims(), patches.kernel_size);
    assert!(
        height >= tall && width >= wide,
        "{model}: images of {height} × {width} have no patch of {tall} × {wide}"
    );
    let images = images.cast(patches.weight.dtype());
    let (tokens, grid) = to_tokens(patches.forward(images));
    let [_, _, d_model] = tokens.dims();
    let positions = positions_of_grid(positions, special.len(), grid);
    let special = special.into_iter();
    let special = special.map(|token| token.expand([batch, 1, d_model]));
    Tensor::cat(special.chain([tokens]).collect(), 1) + positions
}

/// The positions of `special` tokens and of a grid of patches, `[1, special + rows · columns, d_model]`: those of `table`, `[1, len, d_model]`, whose grid is
/// a square. For any other it is interpolated bicubically, anew in each call.
fn positions_of_grid(table: Tensor<3>, special: usize, grid: [usize; 2]) -> Tensor<3> {
    let [_, len, _] = table.dims();
    let along = (len - special).isqrt();
    if grid == [along; 2] {
        return table;
    }
    let of_patches = table.clone().narrow(1, special, along * along);
    let of_patches = Interpolation::Bicubic.resized(of_patches, [along; 2], grid);
    match special {
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
        0 => of_patches,
        _ => Tensor::cat(vec![table.narrow(1, 0, special), of_patches], 1),
    }
}

/// How the numbers between those of a grid are found, as by PyTorch's `interpolate` with `align_corners=False`.
#[derive(Clone, Copy)]
pub(super) enum Interpolation {
    Bilinear,
    Bicubic,
}

impl Interpolation {
    /// What a grid of tokens, `[batch, rows · columns, channels]`, would be with as many rows and columns as `new`. By two products of matrices,
    /// because flex is the only backend of Burn 0.22.1 that has the gradient of `interpolate`.
    pub(super) fn resized(self, grid: Tensor<3>, old: [usize; 2], new: [usize; 2]) -> Tensor<3> {
        if old == new {
            return grid;
        }
        let ([batch, _, channels], dtype) = (grid.dims(), grid.dtype());
        // Half precision has too few digits for weights that add up to 1.
        let place = (&grid.device(), wide(dtype));
        let [rows, columns] = [0, 1].map(|axis| {
            let weights = self.matrix(old[axis], new[axis]);
            let weights = TensorData::new(weights, [1, new[axis], old[axis]]);
            Tensor::<3>::from_data(weights, place)
        });
        let grid = grid.cast(wide(dtype));
        let grid = rows.matmul(grid.reshape([batch, old[0], old[1] * channels]));
        let grid = columns.matmul(grid.reshape([batch * new[0], old[1], channels]));
        grid.reshape([batch, new[0] * new[1], channels]).cast(dtype)
    }

    /// How much each of `old` numbers is of each of `new` ones, `[new, old]`. Numbers beyond an end are the last one.
    fn matrix(self, old: usize, new: usize) -> Vec<f64> {
        let mut matrix = vec![0.0; new * old];
        for (at, row) in matrix.chunks_mut(old).enumerate() {
            let place = (at as f64 + 0.5) * old as f64 / new as f64 - 0.5;
            let weights = self.weights(place - place.floor());
            let first = place.floor() as isize + 1 - weights.len() as isize / 2;
            for (index, weight) in (first..).zip(weights) {
                row[index.clamp(0, old as isize - 1) as usize] += weight;
            }
        }
        matrix
    }

    /// The weights of the numbers around a place that is this part of the way from one to the next: as many before it as after it.
    fn weights(self, part: f64) -> Vec<f64> {
        // PyTorch's parameter.
        const A: f64 = -0.75;
        let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
        let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
        match self {
            Self::Bilinear => vec![1.0 - part, part],
            Self::Bicubic => vec![
                far(part + 1.0),
                near(part),
                near(1.0 - part),
                far(2.0 - part),
            ],
        }
    }
}
