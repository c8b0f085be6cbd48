//! How well images and texts fit each other.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor},
};

use super::{ClipText, ClipVision};
use crate::{bert::normalized, loss::wide};

/// An encoder of images and one of texts.
///
/// # Source
///
/// "Learning transferable visual models from natural language supervision" (arXiv:2103.00020), figure 3; "Sigmoid loss for language image pre-training"
/// (arXiv:2303.15343), section 3.2. PyTorch equivalents: `CLIPModel` and `SiglipModel` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Int, Tensor, activation::softmax};
/// use burn_attn::TransformerStackConfig;
/// use burn_attn_models::clip::{ClipConfig, ClipFamily, ClipTextConfig, ClipVisionConfig};
///
/// let device = Device::default();
/// let family = ClipFamily::Clip;
/// let vision = ClipVisionConfig::new()
///     .with_image_size(28)
///     .with_patch_size(7)
///     .with_encoder(TransformerStackConfig::encoder(32, 64, 4, 2).with_block(family.block()))
///     .with_d_projection(16);
/// let text = ClipTextConfig::new(100)
///     .with_encoder(TransformerStackConfig::causal(24, 48, 3, 2).with_block(family.block()))
///     .with_d_projection(16);
/// let model = ClipConfig::new(family, vision, text).init(&device);
///
/// let images = Tensor::random([2, 3, 28, 28], Distribution::Default, &device);
/// // The end of a text is the largest token.
/// let texts = Tensor::<2, Int>::from_data([[1, 7, 99, 0], [1, 8, 9, 99], [1, 99, 0, 0]], &device);
/// let probabilities = softmax(model.logits(images, texts), 1);
/// assert_eq!(probabilities.dims(), [2, 3]);
/// ```
#[derive(Module, Debug)]
pub struct Clip {
    /// The encoder of images.
    pub vision: ClipVision,
    /// The encoder of texts.
    pub text: ClipText,
    /// `[1]`: the logarithm of the factor on the similarities.
    pub logit_scale: Param<Tensor<1>>,
    /// `[1]`: added to the logits (SigLIP).
    pub logit_bias: Option<Param<Tensor<1>>>,
}

impl Clip {
    /// How well every text fits every image, `[images, texts]`, in f32 at least: CLIP's softmax over the texts says which of them an image shows, and SigLIP's sigmoid
    /// whether an image shows one. PyTorch equivalent: `logits_per_image`.
    ///
    /// # Panics
    ///
    /// As [`ClipVision::forward`] and [`ClipText::forward`].
    ///
    /// # Cost
    ///
    /// The cost of both encoders. [`similarities`](Self::similarities) compares vectors that are kept.
    pub fn logits(&self, images: Tensor<4>, tokens: Tensor<2, Int>) -> Tensor<2> {
        self.similarities(self.vision.features(images), self.text.features(tokens))
    }

    /// [`logits`](Self::logits) of the [vectors of images](ClipVision::features), `[images, d]`, and [of texts](ClipText::features), `[texts, d]`.
    ///
    /// # Panics
    ///
    /// When the widths differ.
    ///
    /// # Cost
    ///
    /// `2 · images · texts · d` operations.
    pub fn similarities(&self, images: Tensor<2>, texts: Tensor<2>) -> Tensor<2> {
        // Half precision has too few digits for what a softmax of differences reads.
        let dtype = wide(images.dtype());
        let ([n_images, d_images], [n_texts, d_texts]) = (images.dims(), texts.dims());
        assert!(
            d_images == d_texts,
            "Clip: vectors of images are {d_images} wide, but those of texts {d_texts}"
        );
        // In Burn 0.22.1 an empty product reads out of bounds on flex.
        if n_images == 0 || n_texts == 0 {
            return Tensor::zeros([n_images, n_texts], (&images.device(), dtype));
        }
        let [images, texts] = [images, texts].map(|vectors| normalized(vectors.cast(dtype)));
        let scale = self.logit_scale.val().cast(dtype).exp();
        let logits = images.matmul(texts.transpose()) * scale.unsqueeze();
        match &self.logit_bias {
            Some(bias) => logits + bias.val().cast(dtype).unsqueeze(),
            None => logits,
        }
    }
}
