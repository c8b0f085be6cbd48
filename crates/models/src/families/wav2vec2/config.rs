//! The sizes of a wav2vec 2.0.

use burn::{
    nn::{DropoutConfig, GroupNormConfig, Initializer, LinearConfig, conv::Conv1dConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, FeedForwardActivation, NormConfig, NormPlacement,
    TransformerStackConfig, expect_valid,
};
use burn_attn_derive::Config;

use super::{FeatureLayer, PositionalConvolution, Wav2Vec2};
use crate::families::normal;

const NAME: &str = "Wav2Vec2Config";

/// Configuration of one convolution of the feature encoder.
#[derive(Config, Debug)]
pub struct FeatureLayerConfig {
    /// Channels of the output.
    pub n_channels: usize,
    /// Width of the kernel, in samples, or in frames of the convolution before.
    pub kernel_size: usize,
    /// Distance of a frame from the next.
    pub stride: usize,
}

/// Configuration of [`Wav2Vec2`], by default that of the base model without a head.
///
/// The large model of LV-60k, for a vocabulary of 32 tokens:
///
/// ```
/// use burn_attn::{BlockConfig, NormPlacement};
/// use burn_attn_models::wav2vec2::Wav2Vec2Config;
///
/// let config = Wav2Vec2Config::new().with_feature_layer_norm(true).with_feature_bias(true);
/// let config = config.with_d_model(1024).with_n_heads(16).with_n_layers(24).with_d_ff(4096).with_vocab_size(32);
/// let block = BlockConfig::new().with_norm_placement(NormPlacement::Pre);
/// assert!(config.with_block(block).validate().is_ok());
/// ```
#[derive(Config, Debug)]
pub struct Wav2Vec2Config {
    /// The convolutions of the feature encoder, the first of which reads the samples.
    #[config(default = "Wav2Vec2Config::base_features()")]
    pub features: Vec<FeatureLayerConfig>,
    /// Whether each of these convolutions has a norm of every frame over its channels, as in models of LV-60k. Otherwise the first alone has a norm,
    /// of every channel over all frames.
    #[config(default = false)]
    pub feature_layer_norm: bool,
    /// Whether the convolutions of the feature encoder add a learned bias.
    #[config(default = false)]
    pub feature_bias: bool,
    /// The activation after each convolution of the feature encoder and after the convolution of positions, without a gate.
    #[config(default = "FeedForwardActivation::Gelu")]
    pub feature_activation: FeedForwardActivation,
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
    /// Width of the kernel of the convolution of positions (frames).
    #[config(default = 128)]
    pub position_kernel: usize,
    /// Number of groups that the channels of the convolution of positions are in.
    #[config(default = 16)]
    pub position_groups: usize,
    /// Number of tokens in the vocabulary, if the model has a head. Default: no head.
    pub vocab_size: Option<usize>,
    /// The CTC blank: the token of frames without a letter.
    #[config(default = 0)]
    pub blank: usize,
    /// How every layer is built, post-norm (by default) or pre-norm; its `dropout` is also that of the frames before the layers, and its `norm` also
    /// that of the features before their projection.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
}

impl Wav2Vec2Config {
    /// The convolutions of all published models: a frame is 400 samples, 25 ms, and the next begins 320 samples, 20 ms, later.
    pub fn base_features() -> Vec<FeatureLayerConfig> {
        let sizes = [(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)];
        let layer = |(kernel_size, stride)| FeatureLayerConfig::new(512, kernel_size, stride);
        sizes.map(layer).into()
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let vocab_size = self.vocab_size.unwrap_or(usize::MAX);
        ConfigError::check_positive(NAME, &[("number of features", self.features.len())])?;
        ConfigError::check_positive(NAME, &[("vocab_size", vocab_size)])?;
        let sizes = sizes!(self; d_model, position_kernel, position_groups);
        ConfigError::check_positive(NAME, &sizes)?;
        for layer in &self.features {
            let sizes = sizes!(layer; n_channels, kernel_size, stride);
            ConfigError::check_positive(NAME, &sizes)?;
        }
        ConfigError::check_no_gate(NAME, "feature_activation", self.feature_activation)?;
        let groups = ("position_groups", self.position_groups);
        ConfigError::check_divisible(NAME, ("d_model", self.d_model), groups)?;
        ConfigError::check(NAME, self.blank < vocab_size, || {
            format!("blank {} is not below vocab_size {vocab_size}", self.blank)
        })?;
        let placement = self.block.norm_placement;
        let is_known = matches!(placement, NormPlacement::Pre | NormPlacement::Post);
        ConfigError::check(NAME, is_known, || {
            format!("norm_placement {placement:?} is not Pre or Post")
        })?;
        let encoder = self.encoder().validate();
        encoder.map_err(|error| error.in_name_of(NAME))
    }

    /// Builds the model. The convolution of positions is initialised as in the reference, all else as Burn's layers are.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Wav2Vec2 {
        expect_valid(self.validate());
        let d_model = self.d_model;
        let of_channels = self.features.iter().map(|layer| layer.n_channels);
        let d_features = self.features[self.features.len() - 1].n_channels;
        let layers = self.features.iter().zip([1].into_iter().chain(of_channels));
        let layers = layers.enumerate().map(|(index, (layer, channels))| {
            let (n_channels, by_frame) = (layer.n_channels, self.feature_layer_norm);
            let by_channel = !by_frame && index == 0;
            let convolution = Conv1dConfig::new(channels, n_channels, layer.kernel_size);
            let convolution = convolution.with_stride(layer.stride);
            FeatureLayer {
                convolution: convolution.with_bias(self.feature_bias).init(device),
                group_norm: by_channel
                    .then(|| GroupNormConfig::new(n_channels, n_channels).init(device)),
                norm: by_frame.then(|| NormConfig::layer_norm().init(n_channels, device)),
                activation: self.feature_activation,
            }
        });
        let is_post = self.block.norm_placement == NormPlacement::Post;
        let head = |vocab_size| LinearConfig::new(d_model, vocab_size).init(device);
        Wav2Vec2 {
            features: layers.collect(),
            feature_norm: self.block.norm.init(d_features, device),
            projection: LinearConfig::new(d_features, d_model).init(device),
            positions: self.positions(device),
            norm: is_post.then(|| self.block.norm.init(d_model, device)),
            dropout: DropoutConfig::new(self.block.dropout).init(),
            encoder: self.encoder().init(device),
            head: self.vocab_size.map(head),
            blank: self.blank,
        }
    }

    fn positions(&self, device: &Device) -> PositionalConvolution {
        let (d_model, kernel) = (self.d_model, self.position_kernel);
        let d_group = d_model / self.position_groups;
        let std = 2.0 / (kernel as f64 * d_model as f64).sqrt();
        // The expected norm of `d_model · d_group` normal numbers: the weight begins equal to the direction, on average.
        let value = std * (d_model as f64 * d_group as f64).sqrt();
        PositionalConvolution {
            magnitude: Initializer::Constant { value }.init([1, 1, kernel], device),
            direction: normal(std).init([d_model, d_group, kernel], device),
            bias: Initializer::Zeros.init([d_model], device),
            activation: self.feature_activation,
        }
    }

    fn encoder(&self) -> TransformerStackConfig {
        TransformerStackConfig::encoder(self.d_model, self.d_ff, self.n_heads, self.n_layers)
            .with_block(self.block.clone())
    }
}
