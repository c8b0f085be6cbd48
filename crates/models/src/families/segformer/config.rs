//! The sizes of a SegFormer.

use burn::{
    nn::{BatchNormConfig, DropoutConfig, LinearConfig, conv::Conv2dConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, CrossAttentionConfig, FeedForwardActivation, NormPlacement,
    TransformerLayerConfig, expect_valid,
};
use burn_attn_derive::Config;

use super::{
    DecodeHead, MixFeedForward, PatchEmbedding, Segformer, SegformerBlock, SegformerStage,
};
use crate::families::grid::convolution;

const NAME: &str = "SegformerConfig";

/// Configuration of one stage of a [`Segformer`].
#[derive(Config, Debug)]
pub struct SegformerStageConfig {
    /// Width of the stage.
    pub d_model: usize,
    /// Number of blocks.
    pub n_layers: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Height and width of the squares of tokens that give one key and value each; 1: every token gives one.
    pub reduction: usize,
    /// Height and width of a patch, in pixels of the image or tokens of the stage before.
    #[config(default = 3)]
    pub patch_size: usize,
    /// Distance of a patch from the next.
    #[config(default = 2)]
    pub stride: usize,
    /// Width inside the feed-forward networks, in multiples of `d_model`.
    #[config(default = 4)]
    pub mlp_ratio: usize,
}

/// Configuration of [`DecodeHead`].
#[derive(Config, Debug)]
pub struct DecodeHeadConfig {
    /// Number of classes of pixels.
    pub n_classes: usize,
    /// Width that the maps of all stages are projected to.
    #[config(default = 256)]
    pub d_model: usize,
    /// Probability of dropping a number before the classifier in training.
    #[config(default = 0.1)]
    pub dropout: f64,
}

/// Configuration of [`Segformer`], by default that of the encoder MiT-B0, without a head.
///
/// A new model is initialised as Burn's layers are; the paper's linear layers begin with a standard deviation of 0.02. All layer norms have an
/// epsilon of 1e-5.
///
/// ```
/// use burn_attn_models::segformer::{DecodeHeadConfig, SegformerConfig};
///
/// let b0_for_ade20k = SegformerConfig::new().with_decode_head(DecodeHeadConfig::new(150));
/// assert!(b0_for_ade20k.validate().is_ok());
/// ```
#[derive(Config, Debug)]
pub struct SegformerConfig {
    /// Channels of an image.
    #[config(default = 3)]
    pub n_channels: usize,
    /// The stages of the encoder.
    #[config(default = "SegformerConfig::base_stages()")]
    pub stages: Vec<SegformerStageConfig>,
    /// Number of classes of images, if the model has a head for them. Default: no head.
    pub n_classes: Option<usize>,
    /// The head for classes of pixels. Default: no head.
    pub decode_head: Option<DecodeHeadConfig>,
    /// The activation inside the feed-forward networks, without a gate.
    #[config(default = "FeedForwardActivation::Gelu")]
    pub activation: FeedForwardActivation,
    /// Dropout probability in training: in feed-forward networks and in residual sums.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Probability of dropping an attention weight in training.
    #[config(default = 0.0)]
    pub attention_dropout: f64,
    /// Probability, in training, that a sublayer of the last block adds nothing to an image. It grows with depth, from 0 in the first block.
    #[config(default = 0.1)]
    pub stochastic_depth: f64,
}

impl SegformerConfig {
    /// The stages of MiT-B0.
    pub fn base_stages() -> Vec<SegformerStageConfig> {
        let stage = SegformerStageConfig::new;
        vec![
            stage(32, 2, 1, 8).with_patch_size(7).with_stride(4),
            stage(64, 2, 2, 4),
            stage(160, 2, 5, 2),
            stage(256, 2, 8, 1),
        ]
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_positive(NAME, &sizes!(self; n_channels))?;
        ConfigError::check_positive(NAME, &[("number of stages", self.stages.len())])?;
        ConfigError::check_positive(NAME, &[("n_classes", self.n_classes.unwrap_or(1))])?;
        ConfigError::check_no_gate(NAME, "activation", self.activation)?;
        for stage in &self.stages {
            let sizes = sizes!(stage; n_layers, reduction, patch_size, stride, mlp_ratio);
            ConfigError::check_positive(NAME, &sizes)?;
            let block = self.block(self.stochastic_depth);
            let layer = TransformerLayerConfig::new(stage.d_model, stage.d_ff(), stage.n_heads);
            let layer = layer.with_block(block).validate();
            layer.map_err(|error| error.in_name_of(NAME))?;
        }
        let Some(head) = &self.decode_head else {
            return Ok(());
        };
        let sizes = sizes!(head; d_model, n_classes);
        ConfigError::check_positive("DecodeHeadConfig", &sizes)?;
        ConfigError::check_dropout("DecodeHeadConfig", head.dropout)
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Segformer {
        expect_valid(self.validate());
        let widths: Vec<usize> = self.stages.iter().map(|stage| stage.d_model).collect();
        let n_layers: usize = self.stages.iter().map(|stage| stage.n_layers).sum();
        let last = (n_layers - 1).max(1) as f64;
        let mut blocks =
            (0..n_layers).map(|layer| self.block(self.stochastic_depth * layer as f64 / last));
        let channels = [self.n_channels].into_iter().chain(widths.clone());
        let stages = self.stages.iter().zip(channels).map(|(stage, channels)| {
            let blocks = blocks.by_ref().take(stage.n_layers);
            stage.init(channels, blocks, device)
        });
        let head = |classes| LinearConfig::new(widths[widths.len() - 1], classes).init(device);
        let decode_head = self.decode_head.as_ref();
        Segformer {
            stages: stages.collect(),
            head: self.n_classes.map(head),
            decode_head: decode_head.map(|head| head.init(&widths, device)),
        }
    }

    /// What a block has in common with the layers of other models.
    fn block(&self, stochastic_depth: f64) -> BlockConfig {
        BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_activation(self.activation)
            .with_dropout(self.dropout)
            .with_attention_dropout(self.attention_dropout)
            .with_stochastic_depth(stochastic_depth)
    }
}

impl SegformerStageConfig {
    fn d_ff(&self) -> usize {
        self.d_model * self.mlp_ratio
    }

    fn init(
        &self,
        channels: usize,
        blocks: impl Iterator<Item = BlockConfig>,
        device: &Device,
    ) -> SegformerStage {
        let patches = convolution([channels, self.d_model, self.patch_size, self.stride]);
        SegformerStage {
            patches: self.patches(patches, device),
            blocks: blocks.map(|block| self.block(&block, device)).collect(),
            norm: BlockConfig::new().norm.init(self.d_model, device),
        }
    }

    fn patches(&self, projection: Conv2dConfig, device: &Device) -> PatchEmbedding {
        PatchEmbedding {
            projection: projection.init(device),
            norm: BlockConfig::new().norm.init(self.d_model, device),
        }
    }

    fn block(&self, block: &BlockConfig, device: &Device) -> SegformerBlock {
        let (d_model, d_ff, square) = (self.d_model, self.d_ff(), [self.reduction; 2]);
        let reduction = Conv2dConfig::new([d_model; 2], square).with_stride(square);
        let attention = CrossAttentionConfig::new(d_model, self.n_heads);
        let attention_dropout = block.attention_dropout.unwrap_or(block.dropout);
        SegformerBlock {
            reduction: (self.reduction > 1).then(|| self.patches(reduction, device)),
            attention: attention.with_dropout(attention_dropout).init(device),
            attention_residual: block.residual(d_model, device),
            feed_forward: MixFeedForward {
                linear_inner: LinearConfig::new(d_model, d_ff).init(device),
                depthwise: convolution([d_ff, d_ff, 3, 1])
                    .with_groups(d_ff)
                    .init(device),
                linear_outer: LinearConfig::new(d_ff, d_model).init(device),
                dropout: DropoutConfig::new(block.dropout).init(),
                activation: block.activation,
            },
            feed_forward_residual: block.residual(d_model, device),
        }
    }
}

impl DecodeHeadConfig {
    /// A head on stages of these widths.
    fn init(&self, widths: &[usize], device: &Device) -> DecodeHead {
        let d_model = self.d_model;
        let projection = |&width: &usize| LinearConfig::new(width, d_model).init(device);
        let fuse = convolution([widths.len() * d_model, d_model, 1, 1]);
        DecodeHead {
            projections: widths.iter().map(projection).collect(),
            fuse: fuse.with_bias(false).init(device),
            norm: BatchNormConfig::new(d_model).init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
            classifier: convolution([d_model, self.n_classes, 1, 1]).init(device),
        }
    }
}
