//! From images to maps and classes.

use burn::{
    module::Module,
    nn::Linear,
    tensor::{Int, Tensor},
};

use super::{DecodeHead, SegformerStage};
use crate::families::grid::{Interpolation, check_images, to_map, to_tokens};

/// An encoder of images, with a head for classes of pixels or for classes of images if it has one.
///
/// # Source
///
/// "SegFormer" (arXiv:2105.15203). PyTorch equivalents: `SegformerForSemanticSegmentation`, `SegformerForImageClassification` and
/// `SegformerModel` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_models::segformer::{DecodeHeadConfig, SegformerConfig, SegformerStageConfig};
///
/// let device = Device::default();
/// let stages = vec![SegformerStageConfig::new(8, 1, 1, 4).with_stride(4), SegformerStageConfig::new(16, 1, 2, 1)];
/// let model = SegformerConfig::new().with_stages(stages).with_decode_head(DecodeHeadConfig::new(5)).init(&device);
/// let images = Tensor::random([2, 3, 33, 64], Distribution::Default, &device);
/// let maps = model.forward(images.clone());
/// assert_eq!([maps[0].dims(), maps[1].dims()], [[2, 8, 9, 16], [2, 16, 5, 8]]);
/// assert_eq!(model.segment(images).dims(), [2, 33, 64]);
/// ```
#[derive(Module, Debug)]
pub struct Segformer {
    /// The stages of the encoder.
    pub stages: Vec<SegformerStage>,
    /// From the mean of the last map to logits of classes of images, if there is such a head.
    pub head: Option<Linear>,
    /// From the maps of all stages to logits of classes of pixels, if there is such a head.
    pub decode_head: Option<DecodeHead>,
}

/// The maps, states and attention weights of a [`Segformer`].
#[derive(Clone, Debug, Default)]
pub struct SegformerOutput {
    /// The map of every stage, as [`Segformer::forward`] returns it.
    pub maps: Vec<Tensor<4>>,
    /// The states after every block, `[batch, rows · columns, d_model]` each, before the norm of the stage.
    pub states: Vec<Tensor<3>>,
    /// The attention weights of every block, `[batch, heads, rows · columns, len_kv]` each, with a key for every whole square of the block's
    /// reduction, row by row.
    pub weights: Vec<Tensor<4>>,
}

impl Segformer {
    /// The map of every stage for images `[batch, channels, height, width]`: `[batch, d_model, rows, columns]` each, of published models a quarter,
    /// an eighth, a sixteenth and a thirty-second of the height and width, rounded up. Published models read red, green and blue from 0
    /// to 1, normalised by ImageNet's mean and standard deviation.
    ///
    /// # Panics
    ///
    /// When there are no images, the channels differ, or an image is too small for the reduction of a stage: less than 29 pixels high or wide, of published models.
    ///
    /// # Cost
    ///
    /// The cost of the blocks, [`SegformerBlock::forward`](super::SegformerBlock::forward), and of the convolutions before each stage.
    pub fn forward(&self, images: Tensor<4>) -> Vec<Tensor<4>> {
        self.run(images, false).maps
    }

    /// As [`forward`](Self::forward), with the states and attention weights of every block. This takes all scores once more, and memory for them.
    pub fn forward_with_weights(&self, images: Tensor<4>) -> SegformerOutput {
        self.run(images, true)
    }

    /// The logits of the classes of images, `[batch, n_classes]`.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward), and when the model has no such head.
    ///
    /// # Cost
    ///
    /// The cost of [`forward`](Self::forward).
    pub fn classify(&self, images: Tensor<4>) -> Tensor<2> {
        let head = self.head.as_ref();
        let head = head.expect("Segformer: the model has no head for classes of images");
        let last = self.forward(images).pop().expect("there is a stage");
        let (tokens, _) = to_tokens(last);
        head.forward(tokens.mean_dim(1).squeeze_dim::<2>(1))
    }

    /// The logits of the classes of pixels, `[batch, n_classes, rows, columns]`, in the size of the first map.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward), and when the model has no such head.
    ///
    /// # Cost
    ///
    /// The cost of [`forward`](Self::forward) and [`DecodeHead::forward`].
    pub fn logits(&self, images: Tensor<4>) -> Tensor<4> {
        let head = self.decode_head.as_ref();
        let head = head.expect("Segformer: the model has no head for classes of pixels");
        head.forward(&self.forward(images))
    }

    /// The [`logits`](Self::logits), interpolated for a `size` of rows and columns of pixels, `[batch, rows · columns, n_classes]`.
    ///
    /// Panics as [`logits`](Self::logits), and takes memory for `batch · n_classes · rows · columns` numbers in addition.
    pub fn pixel_logits(&self, images: Tensor<4>, size: [usize; 2]) -> Tensor<3> {
        let (logits, grid) = to_tokens(self.logits(images));
        Interpolation::Bilinear.resized(logits, grid, size)
    }

    /// The class of every pixel, `[batch, height, width]`: that of the largest of the [`pixel_logits`](Self::pixel_logits). PyTorch equivalent:
    /// `post_process_semantic_segmentation` of `transformers`.
    ///
    /// Panics and cost are those of [`pixel_logits`](Self::pixel_logits).
    pub fn segment(&self, images: Tensor<4>) -> Tensor<3, Int> {
        let [batch, _, height, width] = images.dims();
        let logits = self.pixel_logits(images, [height, width]);
        logits.argmax(2).reshape([batch, height, width])
    }

    fn run(&self, images: Tensor<4>, with_weights: bool) -> SegformerOutput {
        let first = &self.stages[0].patches.projection;
        check_images("Segformer", first, &images);
        let mut output = SegformerOutput::default();
        let mut map = images.cast(first.weight.dtype());
        for stage in &self.stages {
            let (mut x, grid) = stage.patches.forward(map);
            for block in &stage.blocks {
                let (states, weights) = block.forward(x, grid, with_weights);
                if let Some(weights) = weights {
                    output.states.push(states.clone());
                    output.weights.push(weights);
                }
                x = states;
            }
            map = to_map(stage.norm.forward(x), grid);
            output.maps.push(map.clone());
        }
        output
    }
}
