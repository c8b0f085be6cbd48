//! From images to states and classes.

use burn::{
    module::{Module, Param},
    nn::{Dropout, Linear, conv::Conv2d},
    tensor::Tensor,
};
use burn_attn::{LayerInput, TransformerStack, TransformerStackOutput, dropout};

use crate::families::grid::embedded;

/// An encoder of images.
///
/// # Source
///
/// "An image is worth 16x16 words" (arXiv:2010.11929), section 3.1. PyTorch equivalents: `ViTForImageClassification`,
/// `DeiTForImageClassificationWithTeacher` and `Dinov2ForImageClassification` of Hugging Face's `transformers`, and the models without a
/// head.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_models::vit::VitConfig;
///
/// let device = Device::default();
/// let config = VitConfig::new().with_image_size(28).with_patch_size(7).with_n_channels(1).with_d_model(32).with_n_heads(4);
/// let model = config.with_n_layers(2).with_d_ff(64).with_n_classes(10).init(&device);
/// let images = Tensor::random([2, 1, 28, 28], Distribution::Default, &device);
/// assert_eq!(model.forward(images.clone()).dims(), [2, 1 + 16, 32]);
/// assert_eq!(model.logits(images).dims(), [2, 10]);
/// ```
#[derive(Module, Debug)]
pub struct Vit {
    /// Makes a token of every patch.
    pub patches: Conv2d,
    /// `[1, 1, d_model]`: the first token, whose state the head reads.
    pub class_token: Param<Tensor<3>>,
    /// `[1, 1, d_model]`: the second token, if there is one.
    pub distillation_token: Option<Param<Tensor<3>>>,
    /// `[1, len, d_model]`, added to all tokens.
    pub positions: Param<Tensor<3>>,
    pub(super) dropout: Dropout,
    /// The layers, and the norm after them.
    pub encoder: TransformerStack,
    /// From the state of the class token to logits, if the model has a head.
    pub head: Option<Linear>,
    /// From the state of the distillation token to logits, if there is one.
    pub distillation_head: Option<Linear>,
    pub(super) mean_of_patches: bool,
}

impl Vit {
    /// The states of all tokens, `[batch, len, d_model]`: the special ones, then the patches row by row, `height / patch_size` rows of
    /// `width / patch_size`.
    ///
    /// Images `[batch, channels, height, width]` of another size than the table of positions is for are read with an interpolated one, as by
    /// DINOv2, and by `transformers` with `interpolate_pos_encoding=True`. Pixels that do not fill a patch at the right and at the bottom are left out.
    ///
    /// # Panics
    ///
    /// When there are no images, the channels differ, or an image is smaller than a patch.
    ///
    /// # Cost
    ///
    /// The cost of the encoder for `len` tokens, and `2 · batch · channels · height · width · d_model` operations for the patches.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<3> {
        self.encoder.forward(self.embed(images))
    }

    /// As [`forward`](Self::forward), with the attention weights of every layer. This takes all scores once more, and memory for
    /// `batch · heads · len²` weights per layer.
    pub fn forward_with_weights(&self, images: Tensor<4>) -> TransformerStackOutput {
        self.encoder.forward_with_weights(self.embed(images))
    }

    /// As [`forward`](Self::forward), with the states after every layer, before the norm.
    pub fn forward_with_hidden_states(&self, images: Tensor<4>) -> TransformerStackOutput {
        self.encoder.forward_with_hidden_states(self.embed(images))
    }

    /// The logits of the classes, `[batch, n_classes]`; in a DeiT, the mean of both heads.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward), and when the model has no head.
    ///
    /// # Cost
    ///
    /// The cost of [`forward`](Self::forward).
    pub fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.classify(self.forward(images))
    }

    /// [`logits`](Self::logits) of the states of [`forward`](Self::forward).
    pub fn classify(&self, states: Tensor<3>) -> Tensor<2> {
        let head = self.head.as_ref().expect("Vit: the model has no head");
        let state = |token: usize| states.clone().narrow(1, token, 1).squeeze_dim::<2>(1);
        if self.mean_of_patches {
            let [_, len, _] = states.dims();
            let patches = states.clone().narrow(1, 1, len - 1);
            let mean = patches.mean_dim(1).squeeze_dim::<2>(1);
            return head.forward(Tensor::cat(vec![state(0), mean], 1));
        }
        let logits = head.forward(state(0));
        match &self.distillation_head {
            Some(head) => (logits + head.forward(state(1))) / 2.0,
            None => logits,
        }
    }

    /// How many rows and columns of patches such images have.
    pub fn grid(&self, images: &Tensor<4>) -> [usize; 2] {
        let ([.., height, width], [tall, wide]) = (images.dims(), self.patches.kernel_size);
        [height / tall, width / wide]
    }

    fn embed(&self, images: Tensor<4>) -> LayerInput {
        let special = [Some(&self.class_token), self.distillation_token.as_ref()];
        let special = special.into_iter().flatten().map(Param::val).collect();
        let x = embedded("Vit", &self.patches, images, special, self.positions.val());
        LayerInput::new(dropout(&self.dropout, x))
    }
}
