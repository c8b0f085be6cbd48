//! The sizes of a CLIP or a SigLIP.

use burn::{
    nn::{EmbeddingConfig, Initializer, Linear, LinearConfig, conv::Conv2dConfig},
    tensor::Device,
};
use burn_attn::{
    ConfigError, CrossAttentionConfig, FeedForwardConfig, TransformerStackConfig, expect_valid,
    positions::LearnedConfig,
};
use burn_attn_derive::Config;

use super::{AttentionPooling, Clip, ClipFamily, ClipText, ClipVision};
use crate::families::{check_image_size, normal};

const NAME: &str = "ClipConfig";
const NORMAL: Initializer = normal(0.02);

/// Configuration of [`Clip`].
#[derive(Config, Debug)]
pub struct ClipConfig {
    /// Which of the models it is.
    pub family: ClipFamily,
    /// The encoder of images.
    pub vision: ClipVisionConfig,
    /// The encoder of texts.
    pub text: ClipTextConfig,
}

/// Configuration of [`ClipVision`], by default that of CLIP base with patches of 32 × 32, without a projection.
#[derive(Config, Debug)]
pub struct ClipVisionConfig {
    /// Height and width of the images that the table of positions is for (pixels); others are read with an interpolated table.
    #[config(default = 224)]
    pub image_size: usize,
    /// Height and width of a patch (pixels).
    #[config(default = 32)]
    pub patch_size: usize,
    /// Channels of an image.
    #[config(default = 3)]
    pub n_channels: usize,
    /// The layers.
    #[config(
        default = "TransformerStackConfig::encoder(768, 3072, 12, 12).with_block(ClipFamily::Clip.block())"
    )]
    pub encoder: TransformerStackConfig,
    /// Width of the vectors of images, if a projection makes them. Default: that of the states, without a projection.
    pub d_projection: Option<usize>,
}

/// Configuration of [`ClipText`], by default that of CLIP base, without its vocabulary and a projection.
#[derive(Config, Debug)]
pub struct ClipTextConfig {
    /// Number of tokens in the vocabulary.
    pub vocab_size: usize,
    /// Longest text (tokens).
    #[config(default = 77)]
    pub max_len: usize,
    /// In CLIP, the token at the end of a text. Default: the largest token of the text, as that of CLIP's vocabulary is.
    pub end_token: Option<usize>,
    /// The layers, which are causal in CLIP.
    #[config(
        default = "TransformerStackConfig::causal(512, 2048, 8, 12).with_block(ClipFamily::Clip.block())"
    )]
    pub encoder: TransformerStackConfig,
    /// Width of the vectors of texts, if a projection makes them, which has a bias in SigLIP. Default: that of the states, without a projection.
    pub d_projection: Option<usize>,
}

impl ClipConfig {
    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check()?;
        // The defaults of the encoders are CLIP's.
        let clips = ClipFamily::Clip.block();
        for (kind, block) in [
            ("images", &self.vision.encoder.block),
            ("texts", &self.text.encoder.block),
        ] {
            let (activation, norm, family) = (block.activation, &block.norm, self.family);
            let is_clips = (activation, norm) == (clips.activation, &clips.norm);
            ConfigError::check(NAME, family == ClipFamily::Clip || !is_clips, || {
                format!(
                    "the encoder of {kind} has CLIP's {activation:?} and {norm:?}, but family is {family:?}"
                )
            })?;
        }
        Ok(())
    }

    /// [`validate`](Self::validate) without the check for the default blocks of CLIP in a SigLIP, which only a configuration built in code has.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_parts()?;
        let (vision, text) = (&self.vision, &self.text);
        let of_images = vision.d_projection.unwrap_or(vision.encoder.d_model);
        let of_texts = text.d_projection.unwrap_or(text.encoder.d_model);
        ConfigError::check(NAME, of_images == of_texts, || {
            format!("vectors of images are {of_images} wide, but those of texts {of_texts}")
        })
    }

    /// Checks each encoder alone.
    pub(super) fn check_parts(&self) -> Result<(), ConfigError> {
        let (vision, text) = (&self.vision, &self.text);
        ConfigError::check_positive(NAME, &sizes!(vision; patch_size, n_channels))?;
        ConfigError::check_positive(NAME, &sizes!(text; vocab_size, max_len))?;
        check_image_size(NAME, vision.image_size, vision.patch_size)?;
        let (vocab_size, end_token) = (text.vocab_size, text.end_token.unwrap_or(0));
        ConfigError::check(NAME, end_token < vocab_size, || {
            format!("end_token {end_token} is not below vocab_size {vocab_size}")
        })?;
        let family = self.family;
        let is_clip = family == ClipFamily::Clip;
        for (kind, encoder, causal, d_projection) in [
            ("images", &vision.encoder, false, vision.d_projection),
            ("texts", &text.encoder, is_clip, text.d_projection),
        ] {
            let found = encoder.causal;
            ConfigError::check(NAME, found == causal, || {
                format!(
                    "the encoder of {kind} has causal {found}, but that of family {family:?} {causal}"
                )
            })?;
            ConfigError::check_positive(NAME, &[("d_projection", d_projection.unwrap_or(1))])?;
            if let Some(d_memory) = encoder.d_memory {
                let reason = format!("d_memory is {d_memory}, but an encoder has no memory");
                return Err(ConfigError::new(NAME, reason));
            }
            let valid = encoder.validate();
            valid.map_err(|error| error.in_name_of(NAME))?;
        }
        if is_clip {
            return Ok(());
        }
        let (attention, feed_forward) = pooling_parts(&vision.encoder);
        let valid = attention.validate().and_then(|()| feed_forward.validate());
        valid.map_err(|error| error.in_name_of(NAME))
    }

    /// Builds the model, with the scale and the bias of its paper.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Clip {
        expect_valid(self.validate());
        self.init_whole(device)
    }

    pub(super) fn init_whole(&self, device: &Device) -> Clip {
        let (scale, bias) = match self.family {
            ClipFamily::Clip => (1.0 / 0.07, None),
            ClipFamily::Siglip => (10.0, Some(-10.0)),
        };
        let number = |value| Initializer::Constant { value }.init([1], device);
        Clip {
            vision: self.init_vision(device),
            text: self.init_text(device),
            logit_scale: number(f64::ln(scale)),
            logit_bias: bias.map(number),
        }
    }

    pub(super) fn init_vision(&self, device: &Device) -> ClipVision {
        let (config, is_clip) = (&self.vision, self.family == ClipFamily::Clip);
        let (encoder, patch) = (&config.encoder, config.patch_size);
        let (d_model, norm) = (encoder.d_model, &encoder.block.norm);
        // Pixels that do not fill a patch are left out.
        let along = config.image_size / patch;
        let tokens = usize::from(is_clip) + along * along;
        let patches = Conv2dConfig::new([config.n_channels, d_model], [patch; 2])
            .with_stride([patch; 2])
            .with_bias(!is_clip);
        ClipVision {
            patches: patches.init(device),
            class_token: is_clip.then(|| NORMAL.init([d_model], device)),
            positions: NORMAL.init([tokens, d_model], device),
            input_norm: is_clip.then(|| norm.init(d_model, device)),
            encoder: encoder.init(device),
            pooling: (!is_clip).then(|| pooling(encoder, device)),
            projection: projection(d_model, config.d_projection, false, device),
        }
    }

    pub(super) fn init_text(&self, device: &Device) -> ClipText {
        let (config, has_bias) = (&self.text, self.family == ClipFamily::Siglip);
        let d_model = config.encoder.d_model;
        let tokens = EmbeddingConfig::new(config.vocab_size, d_model);
        ClipText {
            tokens: tokens.with_initializer(NORMAL).init(device),
            positions: LearnedConfig::new(d_model, config.max_len).init(device),
            encoder: config.encoder.init(device),
            projection: projection(d_model, config.d_projection, has_bias, device),
            end_token: config.end_token,
            family: self.family,
        }
    }
}

fn projection(d_model: usize, width: Option<usize>, bias: bool, device: &Device) -> Option<Linear> {
    let projection = LinearConfig::new(d_model, width?).with_bias(bias);
    Some(projection.init(device))
}

/// The attention and the feed-forward network of the pooling, with the sizes of a layer.
fn pooling_parts(encoder: &TransformerStackConfig) -> (CrossAttentionConfig, FeedForwardConfig) {
    let d_model = encoder.d_model;
    let attention = CrossAttentionConfig::new(d_model, encoder.n_heads).with_dropout(0.0);
    let feed_forward = FeedForwardConfig::new(d_model, encoder.d_ff)
        .with_activation(encoder.block.activation)
        .with_dropout(0.0);
    (attention, feed_forward)
}

fn pooling(encoder: &TransformerStackConfig, device: &Device) -> AttentionPooling {
    let (attention, feed_forward) = pooling_parts(encoder);
    let d_model = encoder.d_model;
    AttentionPooling {
        probe: NORMAL.init([1, 1, d_model], device),
        attention: attention.init(device),
        norm: encoder.block.norm.init(d_model, device),
        feed_forward: feed_forward.init(device),
    }
}
