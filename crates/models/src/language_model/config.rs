//! The configuration of a language model.

use burn::{
    nn::{DropoutConfig, LinearConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, FeedForwardActivation, LayerPattern, NormPlacement,
    TiedEmbeddingConfig, TokenMixer, TransformerStack, TransformerStackConfig, expect_valid,
    positions::{LearnedConfig, PositionEncoding, SinusoidalConfig},
};
use burn_attn_derive::Config;
use serde::{Deserialize, Serialize};

use super::LanguageModel;

/// What is added to the embedded tokens, for heads that do not take positions into account themselves.
///
/// The default of [`LanguageModelConfig`] is `None`, that of [`Seq2SeqConfig`](crate::seq2seq::Seq2SeqConfig) `Sinusoidal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AbsolutePosition {
    /// Nothing, for heads with a [position encoding](burn_attn::HeadsConfig::position). Without one, which is their default, a model has no positions:
    /// only causality tells it something of the order of its tokens.
    #[default]
    None,
    /// [`Sinusoidal`](burn_attn::positions::Sinusoidal), as in the paper of the transformer.
    Sinusoidal,
    /// [`Learned`](burn_attn::positions::Learned), as in GPT-2.
    Learned,
}

/// Configuration of [`LanguageModel`].
///
/// After `new`, a model has **no positions**. Give it some, in one of two ways: to the tokens by
/// [`with_absolute_position`](Self::with_absolute_position), or to the heads by the [`position`](burn_attn::HeadsConfig::position) of the
/// [`block`](Self::block), such as [`PositionEncoding::rotary`]. Without any it learns, but knows the order of its tokens from causality alone.
///
/// # Example
///
/// A small Llama and a small GPT-2.
///
/// ```
/// use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement, positions::PositionEncoding};
/// use burn_attn_models::language_model::{AbsolutePosition, LanguageModelConfig};
///
/// let llama = LanguageModelConfig::new(100)
///     .with_block(
///         BlockConfig::new()
///             .with_norm(NormConfig::rms_norm())
///             .with_norm_placement(NormPlacement::Pre)
///             .with_activation(FeedForwardActivation::SwiGlu)
///             .with_bias(false)
///             .with_n_kv_heads(2)
///             .with_position(PositionEncoding::rotary()),
///     )
///     .with_tied(false)
///     .with_scaled_embedding(false);
/// let gpt2 = LanguageModelConfig::new(100)
///     .with_block(
///         BlockConfig::new()
///             .with_norm_placement(NormPlacement::Pre)
///             .with_activation(FeedForwardActivation::GeluTanh),
///     )
///     .with_absolute_position(AbsolutePosition::Learned)
///     .with_scaled_embedding(false);
/// assert!(llama.validate().is_ok() && gpt2.validate().is_ok());
/// ```
#[derive(Config, Debug)]
pub struct LanguageModelConfig {
    /// Number of tokens in the vocabulary.
    pub vocab_size: usize,
    /// Width of the model.
    #[config(default = 128)]
    pub d_model: usize,
    /// Number of heads.
    #[config(default = 8)]
    pub n_heads: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub n_layers: usize,
    /// Width inside the feed-forward layers.
    #[config(default = 512)]
    pub d_ff: usize,
    /// Longest sequence (tokens): room in the caches, and rows of the table of positions, if there is one.
    #[config(default = 256)]
    pub max_len: usize,
    /// How every layer is built. By default it has norms before the sublayers and ReLU, unlike [`BlockConfig::new`]: to keep
    /// them, change a clone of this one. Its dropout also applies to the embedded tokens. Its heads have no positions, as in [`BlockConfig::new`].
    #[config(
        default = "BlockConfig::new().with_norm_placement(NormPlacement::Pre).with_activation(FeedForwardActivation::Relu)"
    )]
    pub block: BlockConfig,
    /// Which layers differ, and which share their weights.
    #[config(default = "LayerPattern::Uniform", missing = "LayerPattern::Uniform")]
    pub pattern: LayerPattern,
    /// What is added to the embedded tokens. By default nothing: unless the heads of the `block` have a
    /// [position encoding](burn_attn::HeadsConfig::position), the model then has no positions.
    #[config(default = "AbsolutePosition::None", alias = "position")]
    pub absolute_position: AbsolutePosition,
    /// Whether embedded tokens are multiplied by `√d_model`; see
    /// [`TiedEmbeddingConfig::scaled`](burn_attn::TiedEmbeddingConfig::scaled).
    #[config(default = true)]
    pub scaled_embedding: bool,
    /// Whether the embedding is also the output projection. Otherwise the model has a separate head.
    #[config(default = true)]
    pub tied: bool,
    /// Squashes the logits to `logit_softcap · tanh(logit / logit_softcap)` (Gemma 2, arXiv:2408.00118). Default: not at all.
    pub logit_softcap: Option<f64>,
}

impl LanguageModelConfig {
    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "LanguageModelConfig";
        let sizes = [("vocab_size", self.vocab_size), ("max_len", self.max_len)];
        ConfigError::check_positive(NAME, &sizes)?;
        let transformer = self.transformer().validate();
        transformer.map_err(|error| error.in_name_of(NAME))?;
        // A block that no layer has is checked too.
        ConfigError::check_dropout(NAME, self.block.dropout)?;
        if let Some(cap) = self.logit_softcap
            && !(cap > 0.0 && cap.is_finite())
        {
            let reason = format!("logit_softcap must be positive and finite, got {cap}");
            return Err(ConfigError::new(NAME, reason));
        }
        let mut blocks = self.blocks().iter();
        blocks.try_for_each(|block| check_rotary(NAME, block, self.max_len))
    }

    /// The different blocks.
    fn blocks(&self) -> &[BlockConfig] {
        match &self.pattern {
            LayerPattern::Cycle(blocks) => blocks,
            _ => core::slice::from_ref(&self.block),
        }
    }

    /// The most positions that heads rotate, and how many numbers the tables of all of them have: blocks that are alike share one.
    pub(crate) fn rotary_sizes(&self) -> [usize; 2] {
        let of_block = |block: &BlockConfig| match &block.heads.position {
            PositionEncoding::Rotary(rotary) => {
                let d_head = block.heads.d_head.unwrap_or(self.d_model / self.n_heads);
                Some((rotary.clone(), rotary.rotary_dim.unwrap_or(d_head)))
            }
            _ => None,
        };
        let mut tables = Vec::new();
        for table in self.blocks().iter().filter_map(of_block) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        tables
            .iter()
            .fold([0; 2], |[most, numbers], (rotary, width)| {
                let of_table = rotary.max_len.saturating_mul(*width);
                [most.max(rotary.max_len), numbers.saturating_add(of_table)]
            })
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> LanguageModel {
        self.around(device, |transformer| transformer.init(device))
    }

    /// As [`init`](Self::init), with other mixers of tokens than self-attention: [`TransformerStackConfig::init_with`].
    pub fn init_with<M: TokenMixer>(
        &self,
        mixer: impl Fn(usize) -> M,
        device: &Device,
    ) -> LanguageModel<M> {
        self.around(device, |transformer| transformer.init_with(mixer, device))
    }

    fn around<M>(
        &self,
        device: &Device,
        init: impl FnOnce(&TransformerStackConfig) -> TransformerStack<M>,
    ) -> LanguageModel<M> {
        expect_valid(self.validate());
        let sinusoidal = SinusoidalConfig::new(self.d_model).with_max_len(self.max_len);
        let learned = LearnedConfig::new(self.d_model, self.max_len);
        let head = LinearConfig::new(self.d_model, self.vocab_size)
            .with_bias(false)
            .with_initializer(self.block.initializer.clone());
        LanguageModel {
            embedding: TiedEmbeddingConfig::new(self.vocab_size, self.d_model)
                .with_scaled(self.scaled_embedding)
                .init(device),
            sinusoidal: (self.absolute_position == AbsolutePosition::Sinusoidal)
                .then(|| sinusoidal.init(device)),
            learned: (self.absolute_position == AbsolutePosition::Learned)
                .then(|| learned.init(device)),
            dropout: DropoutConfig::new(self.block.dropout).init(),
            transformer: init(&self.transformer()),
            head: (!self.tied).then(|| head.init(device)),
            logit_softcap: self.logit_softcap,
            has_logits: true,
            max_len: self.max_len,
        }
    }

    fn transformer(&self) -> TransformerStackConfig {
        TransformerStackConfig::causal(self.d_model, self.d_ff, self.n_heads, self.n_layers)
            .with_block(self.block.clone())
            .with_pattern(self.pattern.clone())
    }
}

/// Fails if the heads of a model that `config` describes rotate fewer positions than it has.
pub(crate) fn check_rotary(
    config: &'static str,
    block: &BlockConfig,
    max_len: usize,
) -> Result<(), ConfigError> {
    let PositionEncoding::Rotary(rotary) = &block.heads.position else {
        return Ok(());
    };
    let most = rotary.max_len;
    ConfigError::check(config, max_len <= most, || {
        format!("max_len {max_len} is more than the max_len {most} of the heads' rotary positions")
    })
}
