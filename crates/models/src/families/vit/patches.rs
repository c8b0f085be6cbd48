//! What all models share that see images as patches.

use burn::{
    nn::conv::Conv2d,
    tensor::{
        Tensor,
        module::interpolate,
        ops::{InterpolateMode, InterpolateOptions},
    },
};

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
    let patches = patches.forward(images);
    let [_, d_model, rows, columns] = patches.dims();
    let tokens = patches.reshape([batch, d_model, rows * columns]);
    (tokens.swap_dims(1, 2), [rows, columns])
}

/// The positions of `special` tokens and of a grid of patches, `[1, special + rows · columns, d_model]`: those of `table`, `[1, len, d_model]`, whose grid is
/// a square. It is interpolated bicubically for any other.
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
    let of_patches = table.clone().narrow(1, special, along * along);
    let grid = of_patches
        .reshape([1, along, along, d_model])
        .permute([0, 3, 1, 2]);
    let options = InterpolateOptions::new(InterpolateMode::Bicubic)
        .with_align_corners(false)
        .with_output_size([rows, columns]);
    let grid = interpolate(grid, options).permute([0, 2, 3, 1]);
    let of_patches = grid.reshape([1, rows * columns, d_model]);
    match special {
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
        0 => of_patches,
        _ => Tensor::cat(vec![table.narrow(1, 0, special), of_patches], 1),
    }
}
