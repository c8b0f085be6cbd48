//! From the maps of all stages to classes of pixels.

use burn::{
    module::Module,
    nn::{BatchNorm, Dropout, Linear, conv::Conv2d},
    tensor::{Tensor, TensorData, activation::relu},
};
use burn_attn::dropout;

use super::encoder::{to_map, to_sequence};
use crate::loss::wide;

/// The head that gives every pixel a class: linear layers alone, because the encoder has already seen what is around a pixel.
///
/// # Source
///
/// "SegFormer" (arXiv:2105.15203), section 3.2. PyTorch equivalent: `SegformerDecodeHead` of `transformers`. In training, Burn's batch norm takes
/// the variance of the batch as it is for its running statistics, PyTorch's the unbiased one.
#[derive(Module, Debug)]
pub struct DecodeHead {
    /// From the width of each stage to that of the head.
    pub projections: Vec<Linear>,
    /// Makes one map of all, those of the last stage first.
    pub fuse: Conv2d,
    /// The norm of each channel over all pixels of a batch.
    pub norm: BatchNorm,
    pub(super) dropout: Dropout,
    /// To the logits of the classes.
    pub classifier: Conv2d,
}

impl DecodeHead {
    /// The logits `[batch, n_classes, rows, columns]` for the maps of the encoder, `[batch, d_model, ..]` of each stage; rows and columns are those
    /// of the first map.
    ///
    /// # Panics
    ///
    /// When a map is missing, or its width is not that of the stage.
    ///
    /// # Cost
    ///
    /// `2 · batch · rows · columns · d_model²` operations for the fusion of the first map, which is most of it.
    pub fn forward(&self, maps: &[Tensor<4>]) -> Tensor<4> {
        let (len, own) = (maps.len(), self.projections.len());
        assert!(
            len == own,
            "DecodeHead: {len} maps for a head on {own} stages"
        );
        let size = size_of(&maps[0]);
        let [d_model, d_fused, ..] = self.fuse.weight.dims();
        // Of the last stage first.
        let fuse = self.fuse.weight.val().reshape([d_model, d_fused]);
        let fuse = fuse.transpose().split(d_model, 0).into_iter().rev();
        let stages = self.projections.iter().zip(fuse).zip(maps);
        let fused = stages.map(|((linear, fuse), map)| {
            // A map is fused before it becomes larger: both are linear.
            let projected = linear.forward(to_sequence(map.clone()));
            let fused = projected.matmul(fuse.unsqueeze());
            upsampled(fused, size_of(map), size)
        });
        let fused = fused.reduce(|sum, stage| sum + stage);
        let fused = fused.expect("there is a stage");
        let [batch, len, _] = fused.dims();
        let fused = self.norm.forward(fused.reshape([batch * len, d_model]));
        let fused = dropout(&self.dropout, relu(fused.reshape([batch, len, d_model])));
        let [n_classes, ..] = self.classifier.weight.dims();
        let classes = self.classifier.weight.val().reshape([n_classes, d_model]);
        let logits = fused.matmul(classes.transpose().unsqueeze());
        let logits = match &self.classifier.bias {
            Some(bias) => logits + bias.val().unsqueeze(),
            None => logits,
        };
        to_map(logits, size)
    }
}

/// Rows and columns.
fn size_of(map: &Tensor<4>) -> [usize; 2] {
    let [_, _, rows, columns] = map.dims();
    [rows, columns]
}

/// What a grid of tokens, `[batch, rows · columns, channels]`, would be with as many rows and columns as `new`: interpolated linearly along both between the centres of
/// tokens (PyTorch's `align_corners=False`). By two products of matrices, because flex is the only backend of Burn 0.22.1 that has the gradient of `interpolate`.
pub(super) fn upsampled(grid: Tensor<3>, old: [usize; 2], new: [usize; 2]) -> Tensor<3> {
    if old == new {
        return grid;
    }
    let ([batch, _, channels], dtype) = (grid.dims(), grid.dtype());
    // Half precision has too few digits for weights that add up to 1.
    let place = (&grid.device(), wide(dtype));
    let [rows, columns] = [0, 1].map(|axis| {
        let weights = TensorData::new(
            interpolation(old[axis], new[axis]),
            [1, new[axis], old[axis]],
        );
        Tensor::<3>::from_data(weights, place)
    });
    let grid = grid.cast(wide(dtype));
    let grid = rows.matmul(grid.reshape([batch, old[0], old[1] * channels]));
    let grid = columns.matmul(grid.reshape([batch * new[0], old[1], channels]));
    grid.reshape([batch, new[0] * new[1], channels]).cast(dtype)
}

/// How much each of `old` tokens is of each of `new` ones, `[new, old]`.
fn interpolation(old: usize, new: usize) -> Vec<f64> {
    let mut weights = vec![0.0; new * old];
    for (at, weights) in weights.chunks_mut(old).enumerate() {
        let place = (at as f64 + 0.5) * old as f64 / new as f64 - 0.5;
        let place = place.clamp(0.0, (old - 1) as f64);
        let below = place as usize;
        weights[below] = 1.0 - place.fract();
        if place.fract() > 0.0 {
            weights[below + 1] = place.fract();
        }
    }
    weights
}
