//! The configuration of an encoder–decoder model.

use burn::{
    nn::{DropoutConfig, Initializer, LinearConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, FeedForwardActivation, NormPlacement, TiedEmbeddingConfig,
    TransformerConfig, expect_valid,
    positions::{LearnedConfig, SinusoidalConfig},
};
use burn_attn_derive::Config;

use super::Seq2Seq;
use crate::language_model::{AbsolutePosition, check_rotary};

/// Configuration of [`Seq2Seq`]: by default the paper's model, but pre-norm.
///
/// # Example
///
/// A small T5 1.1.
///
/// ```
/// use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement, positions::PositionEncoding};
/// use burn_attn_models::{language_model::AbsolutePosition, seq2seq::Seq2SeqConfig};
///
/// let block = BlockConfig::new()
///     .with_norm(NormConfig::rms_norm())
///     .with_norm_placement(NormPlacement::Pre)
///     .with_activation(FeedForwardActivation::GeGluTanh)
///     .with_bias(false)
///     .with_scale(1.0)
///     .with_position(PositionEncoding::relative());
/// let t5 = Seq2SeqConfig::new(100)
///     .with_block(block)
///     .with_absolute_position(AbsolutePosition::None)
///     .with_scaled_embedding(false)
///     .with_tied(false);
/// assert!(t5.validate().is_ok());
/// ```
#[derive(Config, Debug)]
pub struct Seq2SeqConfig {
    /// Number of tokens in the vocabulary that source and target share.
    pub vocab_size: usize,
    /// Width of the model.
    #[config(default = 128)]
    pub d_model: usize,
    /// Number of heads.
    #[config(default = 8)]
    pub n_heads: usize,
    /// Number of encoder layers.
    #[config(default = 2)]
    pub n_encoder_layers: usize,
    /// Number of decoder layers.
    #[config(default = 2)]
    pub n_decoder_layers: usize,
    /// Width inside the feed-forward layers.
    #[config(default = 512)]
    pub d_ff: usize,
    /// Dropout probability in training. With a `block`, that of the embedded tokens only.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Longest source or target (tokens): room in the caches, and rows of the table of positions. Without such a table, sources, and
    /// targets that are not generated, may be longer.
    #[config(default = 256)]
    pub max_len: usize,
    /// Where the norms are, unless there is a `block`; `Post` in the paper.
    #[config(default = "NormPlacement::Pre")]
    pub norm_placement: NormPlacement,
    /// How every layer of both stacks is built; see [`TransformerConfig::block`]. Default: as in the paper, with this `dropout` and
    /// `norm_placement`.
    pub block: Option<BlockConfig>,
    /// What is added to the embedded tokens of source and target.
    #[config(
        default = "AbsolutePosition::Sinusoidal",
        missing = "AbsolutePosition::Sinusoidal"
    )]
    pub absolute_position: AbsolutePosition,
    /// Whether embedded tokens are multiplied by `√d_model`; see [`TiedEmbeddingConfig::scaled`].
    #[config(default = true, missing = true)]
    pub scaled_embedding: bool,
    /// Whether the embedding is also the output projection. Otherwise the model has a separate head.
    #[config(default = true, missing = true)]
    pub tied: bool,
    /// Factor on the decoder's states before the tied embedding turns them into logits: `d_model^−0.5` in the first T5. Default: 1. A model
    /// with a separate head must not have one.
    pub output_factor: Option<f64>,
}

impl Seq2SeqConfig {
    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "Seq2SeqConfig";
        let sizes = [("vocab_size", self.vocab_size), ("max_len", self.max_len)];
        ConfigError::check_positive(NAME, &sizes)?;
        let parts = self.transformer().validate();
        parts
            .and_then(|()| self.embedding().validate())
            .map_err(|error| error.in_name_of(NAME))?;
        ConfigError::check_dropout(NAME, self.dropout)?;
        if let (false, Some(factor)) = (self.tied, self.output_factor) {
            let reason = format!(
                "output_factor is that of a tied embedding, but tied is false and output_factor {factor}"
            );
            return Err(ConfigError::new(NAME, reason));
        }
        check_rotary(NAME, &self.block(), self.max_len)
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Seq2Seq {
        expect_valid(self.validate());
        let sinusoidal = SinusoidalConfig::new(self.d_model).with_max_len(self.max_len);
        let learned = LearnedConfig::new(self.d_model, self.max_len);
        let head = LinearConfig::new(self.d_model, self.vocab_size)
            .with_bias(false)
            .with_initializer(self.block().initializer);
        Seq2Seq {
            embedding: self.embedding().init(device),
            sinusoidal: (self.absolute_position == AbsolutePosition::Sinusoidal)
                .then(|| sinusoidal.init(device)),
            learned: (self.absolute_position == AbsolutePosition::Learned)
                .then(|| learned.init(device)),
            dropout: DropoutConfig::new(self.dropout).init(),
            transformer: self.transformer().init(device),
            head: (!self.tied).then(|| head.init(device)),
            max_len: self.max_len,
        }
    }

    /// How every layer is built: [`block`](Self#structfield.block), or as in the paper.
    pub fn block(&self) -> BlockConfig {
        self.block.clone().unwrap_or_else(|| {
            BlockConfig::new()
                .with_dropout(self.dropout)
                .with_norm_placement(self.norm_placement)
                .with_activation(FeedForwardActivation::Relu)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 })
        })
    }

    fn embedding(&self) -> TiedEmbeddingConfig {
        TiedEmbeddingConfig::new(self.vocab_size, self.d_model)
            .with_scaled(self.scaled_embedding)
            .with_output_factor(self.output_factor)
    }

    fn transformer(&self) -> TransformerConfig {
        TransformerConfig::new(
            self.d_model,
            self.d_ff,
            self.n_heads,
            self.n_encoder_layers,
            self.n_decoder_layers,
        )
        .with_block(self.block())
    }
}
