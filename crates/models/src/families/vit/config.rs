//! The sizes of a vision transformer.

use burn::{
    nn::{DropoutConfig, LinearConfig, conv::Conv2dConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, NormConfig, NormPlacement, TransformerStackConfig, expect_valid,
};
use burn_attn_derive::Config;

use super::Vit;
use crate::families::{check_image_size, normal};

const NAME: &str = "VitConfig";

/// Configuration of [`Vit`], by default ViT base for images of 224 × 224 without a head.
///
/// The base model of DINOv2:
///
/// ```
/// use burn_attn::NormConfig;
/// use burn_attn_models::vit::VitConfig;
///
/// let block = VitConfig::base_block().with_norm(NormConfig::layer_norm().with_epsilon(1e-6)).with_layer_scale(1.0);
/// let dinov2 = VitConfig::new().with_image_size(518).with_patch_size(14).with_block(block);
/// assert!(dinov2.validate().is_ok());
/// ```
#[derive(Config, Debug)]
pub struct VitConfig {
    /// Height and width of the images that the table of positions is for (pixels); others are read with an interpolated table.
    #[config(default = 224)]
    pub image_size: usize,
    /// Height and width of a patch (pixels).
    #[config(default = 16)]
    pub patch_size: usize,
    /// Channels of an image.
    #[config(default = 3)]
    pub n_channels: usize,
    /// Width of the model.
    #[config(default = 768)]
    pub d_model: usize,
    /// Number of heads.
    #[config(default = 12)]
    pub n_heads: usize,
    /// Number of layers.
    #[config(default = 12)]
    pub n_layers: usize,
    /// Width inside the feed-forward layers.
    #[config(default = 3072)]
    pub d_ff: usize,
    /// Number of classes, if the model has a head. Default: no head.
    pub n_classes: Option<usize>,
    /// Whether there is a distillation token, with a head if the class token has one (DeiT).
    #[config(default = false)]
    pub distilled: bool,
    /// Whether the head reads the mean of the patches' states beside the class token's (DINOv2).
    #[config(default = false)]
    pub mean_of_patches: bool,
    /// Probability of dropping a number of the embedded patches in training. Default: `dropout` of `block`.
    pub embedding_dropout: Option<f64>,
    /// How every layer is built.
    #[config(default = "VitConfig::base_block()")]
    pub block: BlockConfig,
}

impl VitConfig {
    /// The block of ViT in `transformers`: pre-norm with an epsilon of 1e-12, exact GELU, no dropout. If `dropout` is set, there
    /// is still none inside the feed-forward networks.
    pub fn base_block() -> BlockConfig {
        BlockConfig::new()
            .with_norm(NormConfig::layer_norm().with_epsilon(1e-12))
            .with_norm_placement(NormPlacement::Pre)
            .with_dropout(0.0)
            .with_feed_forward_dropout(0.0)
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_positive(NAME, &sizes!(self; image_size, patch_size, n_channels))?;
        ConfigError::check_positive(NAME, &[("n_classes", self.n_classes.unwrap_or(1))])?;
        check_image_size(NAME, self.image_size, self.patch_size)?;
        ConfigError::check(NAME, !(self.distilled && self.mean_of_patches), || {
            "distilled and mean_of_patches are both true".into()
        })?;
        let encoder = self.encoder().validate();
        encoder.map_err(|error| error.in_name_of(NAME))?;
        ConfigError::check_dropout(NAME, self.embedding_dropout())
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Vit {
        expect_valid(self.validate());
        let (patch, d_model) = (self.patch_size, self.d_model);
        let patches = Conv2dConfig::new([self.n_channels, d_model], [patch, patch]);
        // Pixels that do not fill a patch are left out.
        let along = self.image_size / patch;
        let tokens = 1 + usize::from(self.distilled) + along * along;
        let normal = normal(0.02);
        let token = || normal.init([1, 1, d_model], device);
        let d_head = d_model * (1 + usize::from(self.mean_of_patches));
        let head = || {
            let classes = self.n_classes?;
            Some(LinearConfig::new(d_head, classes).init(device))
        };
        Vit {
            patches: patches.with_stride([patch, patch]).init(device),
            class_token: token(),
            distillation_token: self.distilled.then(token),
            positions: normal.init([1, tokens, d_model], device),
            dropout: DropoutConfig::new(self.embedding_dropout()).init(),
            encoder: self.encoder().init(device),
            head: head(),
            distillation_head: self.distilled.then(head).flatten(),
            mean_of_patches: self.mean_of_patches,
        }
    }

    fn embedding_dropout(&self) -> f64 {
        self.embedding_dropout.unwrap_or(self.block.dropout)
    }

    fn encoder(&self) -> TransformerStackConfig {
        TransformerStackConfig::encoder(self.d_model, self.d_ff, self.n_heads, self.n_layers)
            .with_block(self.block.clone())
    }
}
