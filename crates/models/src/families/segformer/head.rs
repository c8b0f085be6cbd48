//! From the maps of all stages to classes of pixels.

use burn::{
    module::Module,
    nn::{BatchNorm, Dropout, Linear, conv::Conv2d},
    tensor::{Tensor, activation::relu},
};
use burn_attn::dropout;

use crate::families::grid::{Interpolation, to_map, to_tokens};

/// The head that gives every pixel a class: linear layers alone, because a state of the encoder already depends on the pixels around it.
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
        let [_, _, rows, columns] = maps[0].dims();
        let [d_model, d_fused, ..] = self.fuse.weight.dims();
        // The columns of the last stage come first.
        let fuse = self.fuse.weight.val().reshape([d_model, d_fused]);
        let fuse = fuse.transpose().split(d_model, 0).into_iter().rev();
        let stages = self.projections.iter().zip(fuse).zip(maps);
        let fused = stages.map(|((linear, fuse), map)| {
            // A map is fused before it becomes larger: both are linear.
            let (tokens, size) = to_tokens(map.clone());
            let fused = linear.forward(tokens).matmul(fuse.unsqueeze());
            Interpolation::Bilinear.resized(fused, size, [rows, columns])
        });
        let fused = fused.reduce(|sum, stage| sum + stage);
        let fused = fused.expect("there is a stage");
        let [batch, len, _] = fused.dims();
        let fused = self.norm.forward(fused.reshape([batch * len, d_model]));
        let fused = dropout(&self.dropout, relu(fused.reshape([batch, len, d_model])));
        // As a product of matrices, because on flex the gradient of a convolution of 1 × 1 makes a step take 1.4 times as long.
        let [n_classes, ..] = self.classifier.weight.dims();
        let classes = self.classifier.weight.val().reshape([n_classes, d_model]);
        let logits = fused.matmul(classes.transpose().unsqueeze());
        let logits = match &self.classifier.bias {
            Some(bias) => logits + bias.val().unsqueeze(),
            None => logits,
        };
        to_map(logits, [rows, columns])
    }
}
