//! The sizes of a DETR.

use burn::{
    nn::{DropoutConfig, LinearConfig, conv::Conv2dConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, FeedForwardActivation, NormPlacement, TransformerStackConfig,
    expect_valid,
};
use burn_attn_derive::Config;

use super::{BoxHead, Detr};
use crate::{families::normal, resnet::ResNetConfig};

const NAME: &str = "DetrConfig";

/// Configuration of [`Detr`], by default that of the paper without a backbone and heads. The published model for COCO:
///
/// ```
/// use burn_attn_models::{detr::DetrConfig, resnet::ResNetConfig};
///
/// let config = DetrConfig::new().with_backbone(ResNetConfig::new()).with_n_classes(91);
/// assert!(config.validate().is_ok());
/// ```
#[derive(Config, Debug)]
pub struct DetrConfig {
    /// The convolutions that make a feature map. Default: none; the map comes from elsewhere.
    pub backbone: Option<ResNetConfig>,
    /// Channels of the feature map.
    #[config(default = 2048)]
    pub d_features: usize,
    /// Width of the model.
    #[config(default = 256)]
    pub d_model: usize,
    /// Number of heads.
    #[config(default = 8)]
    pub n_heads: usize,
    /// Number of encoder layers.
    #[config(default = 6)]
    pub n_encoder_layers: usize,
    /// Number of decoder layers.
    #[config(default = 6)]
    pub n_decoder_layers: usize,
    /// Width inside the feed-forward layers.
    #[config(default = 2048)]
    pub d_ff: usize,
    /// Number of queries: the most objects that can be found.
    #[config(default = 100)]
    pub n_queries: usize,
    /// Number of classes, "no object" not included, if the model has heads. Default: no heads.
    pub n_classes: Option<usize>,
    /// How every layer of both stacks is built; its `dropout` is also that of the projected features.
    #[config(default = "DetrConfig::base_block()")]
    pub block: BlockConfig,
}

impl DetrConfig {
    /// The block of the paper: post-norm, ReLU, dropout of 0.1 in residual sums.
    pub fn base_block() -> BlockConfig {
        BlockConfig::new()
            .with_norm_placement(NormPlacement::Post)
            .with_activation(FeedForwardActivation::Relu)
            .with_attention_dropout(0.0)
            .with_feed_forward_dropout(0.0)
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_positive(NAME, &sizes!(self; d_features, n_queries))?;
        ConfigError::check_positive(NAME, &[("n_classes", self.n_classes.unwrap_or(1))])?;
        if let Some(backbone) = &self.backbone {
            backbone.validate()?;
            let (d_backbone, d_features) = (backbone.d_features(), self.d_features);
            ConfigError::check(NAME, d_backbone == d_features, || {
                format!("d_features {d_features} is not the backbone's {d_backbone}")
            })?;
        }
        ConfigError::check(NAME, self.d_model.is_multiple_of(4), || {
            format!("d_model {} is not divisible by 4", self.d_model)
        })?;
        for stack in [self.encoder(), self.decoder()] {
            stack.validate().map_err(|error| error.in_name_of(NAME))?;
        }
        ConfigError::check_dropout(NAME, self.block.dropout)
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Detr {
        expect_valid(self.validate());
        let d_model = self.d_model;
        // The last class is "no object".
        let class_head = |n_classes| LinearConfig::new(d_model, n_classes + 1).init(device);
        Detr {
            backbone: self.backbone.as_ref().map(|config| config.init(device)),
            projection: Conv2dConfig::new([self.d_features, d_model], [1, 1]).init(device),
            queries: normal(1.0).init([self.n_queries, d_model], device),
            dropout: DropoutConfig::new(self.block.dropout).init(),
            encoder: self.encoder().init(device),
            decoder: self.decoder().init(device),
            class_head: self.n_classes.map(class_head),
            box_head: self.n_classes.map(|_| BoxHead::new(d_model, device)),
        }
    }

    fn encoder(&self) -> TransformerStackConfig {
        let (d_model, layers) = (self.d_model, self.n_encoder_layers);
        TransformerStackConfig::encoder(d_model, self.d_ff, self.n_heads, layers)
            .with_block(self.block.clone())
    }

    fn decoder(&self) -> TransformerStackConfig {
        let (d_model, layers) = (self.d_model, self.n_decoder_layers);
        TransformerStackConfig::decoder(d_model, self.d_ff, self.n_heads, layers)
            .with_block(self.block.clone())
            .with_final_norm(true)
    }
}
