//! The sizes of a Whisper.

use burn::{
    nn::{PaddingConfig1d, conv::Conv1dConfig},
    tensor::Device,
};
use burn_attn::{BlockConfig, ConfigError, NormPlacement, expect_valid, positions::LearnedConfig};
use burn_attn_derive::Config;

use super::Whisper;
use crate::{language_model::AbsolutePosition, seq2seq::Seq2SeqConfig};

/// Configuration of [`Whisper`], by default that of Whisper tiny, without its vocabulary. A new model has random positions for its frames, where the paper has
/// sinusoids, which published models have in their weights.
#[derive(Config, Debug)]
pub struct WhisperConfig {
    /// Number of tokens in the vocabulary.
    pub vocab_size: usize,
    /// Number of mel bands of a spectrogram.
    #[config(default = 80)]
    pub n_mels: usize,
    /// Longest recording, in frames of 20 ms: half as many as the frames of a spectrogram.
    #[config(default = 1500)]
    pub max_frames: usize,
    /// Longest text (tokens).
    #[config(default = 448)]
    pub max_len: usize,
    /// Width of the model.
    #[config(default = 384)]
    pub d_model: usize,
    /// Number of heads.
    #[config(default = 6)]
    pub n_heads: usize,
    /// Number of encoder layers.
    #[config(default = 4)]
    pub n_encoder_layers: usize,
    /// Number of decoder layers.
    #[config(default = 4)]
    pub n_decoder_layers: usize,
    /// Width inside the feed-forward layers.
    #[config(default = 1536)]
    pub d_ff: usize,
    /// How every layer of both stacks is built; its `dropout` is also that of frames and embedded tokens.
    #[config(default = "WhisperConfig::base_block()")]
    pub block: BlockConfig,
}

impl WhisperConfig {
    /// The block of the paper: pre-norm, exact GELU, no dropout.
    pub fn base_block() -> BlockConfig {
        BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_dropout(0.0)
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "WhisperConfig";
        ConfigError::check_positive(NAME, &sizes!(self; n_mels, max_frames))?;
        let seq2seq = self.seq2seq().validate();
        seq2seq.map_err(|error| error.in_name_of(NAME))
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Whisper {
        expect_valid(self.validate());
        let conv = |channels| {
            Conv1dConfig::new(channels, self.d_model, 3)
                .with_padding(PaddingConfig1d::Explicit(1, 1))
        };
        Whisper {
            conv1: conv(self.n_mels).init(device),
            conv2: conv(self.d_model).with_stride(2).init(device),
            positions: LearnedConfig::new(self.d_model, self.max_frames).init(device),
            seq2seq: self.seq2seq().init(device),
        }
    }

    fn seq2seq(&self) -> Seq2SeqConfig {
        Seq2SeqConfig::new(self.vocab_size)
            .with_d_model(self.d_model)
            .with_n_heads(self.n_heads)
            .with_n_encoder_layers(self.n_encoder_layers)
            .with_n_decoder_layers(self.n_decoder_layers)
            .with_d_ff(self.d_ff)
            .with_dropout(self.block.dropout)
            .with_max_len(self.max_len)
            .with_block(self.block.clone())
            .with_absolute_position(AbsolutePosition::Learned)
            .with_scaled_embedding(false)
    }
}
