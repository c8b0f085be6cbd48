//! From the maps of all stages to classes of pixels.

use burn::{
    module::Module,
    nn::{BatchNorm, Dropout, Linear, conv::Conv2d},
    tensor::{Int, Tensor, TensorData, activation::relu},
};
use burn_attn::dropout;

use super::encoder::{to_map, to_sequence};

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
    /// The class of pixels that the loss leaves out.
    pub ignored_class: usize,
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
    /// `2 · batch · rows · columns · d_model² · stages` operations for the fusion, which is most of it.
    pub fn forward(&self, maps: &[Tensor<4>]) -> Tensor<4> {
        let (len, own) = (maps.len(), self.projections.len());
        assert!(
            len == own,
            "DecodeHead: {len} maps for a head on {own} stages"
        );
        let size = size_of(&maps[0]);
        let projected = self.projections.iter().zip(maps).map(|(linear, map)| {
            let projected = linear.forward(to_sequence(map.clone()));
            upsampled(to_map(projected, size_of(map)), size)
        });
        let fused = self.fuse.forward(Tensor::cat(projected.rev().collect(), 1));
        let fused = relu(self.norm.forward(fused));
        self.classifier.forward(dropout(&self.dropout, fused))
    }
}

/// Rows and columns.
fn size_of(map: &Tensor<4>) -> [usize; 2] {
    let [_, _, rows, columns] = map.dims();
    [rows, columns]
}

/// A map with so many rows and columns, interpolated linearly along both between the centres of its pixels (PyTorch's `align_corners=False`).
pub(super) fn upsampled(map: Tensor<4>, size: [usize; 2]) -> Tensor<4> {
    if size_of(&map) == size {
        return map;
    }
    upsampled_along(upsampled_along(map, 2, size[0]), 3, size[1])
}

/// The same along one axis. Not by `interpolate`, because flex is the only backend of Burn 0.22.1 that has its gradient.
fn upsampled_along(map: Tensor<4>, axis: usize, len: usize) -> Tensor<4> {
    let (old, device) = (map.dims()[axis], map.device());
    let last = (old - 1) as f64;
    let places = (0..len).map(|at| (at as f64 + 0.5) * old as f64 / len as f64 - 0.5);
    let places: Vec<f64> = places.map(|place| place.clamp(0.0, last)).collect();
    let at = |round: fn(f64) -> f64| {
        let indices: Vec<i32> = places.iter().map(|&place| round(place) as i32).collect();
        let indices = Tensor::<1, Int>::from_data(indices.as_slice(), &device);
        map.clone().select(axis, indices)
    };
    let mut shape = [1; 4];
    shape[axis] = len;
    let fractions: Vec<f64> = places.iter().map(|place| place.fract()).collect();
    let fractions = Tensor::from_data(TensorData::new(fractions, shape), (&device, map.dtype()));
    let (below, above) = (at(f64::floor), at(f64::ceil));
    below.clone() + (above - below) * fractions
}
