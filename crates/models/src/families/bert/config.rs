//! The sizes of a BERT or an ALBERT.

use burn_attn::{BlockConfig, ConfigError, LayerPattern, NormConfig, TransformerStackConfig};
use burn_attn_derive::Config;

/// Configuration of [`Bert`](super::Bert), by default BERT base.
#[derive(Config, Debug)]
pub struct BertConfig {
    /// Number of tokens in the vocabulary.
    pub vocab_size: usize,
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
    /// Longest text (tokens).
    #[config(default = 512)]
    pub max_len: usize,
    /// Number of segments that a text may consist of, such as a question and an answer.
    #[config(default = 2)]
    pub n_segments: usize,
    /// Width of the embeddings, if a projection brings them to `d_model` (ALBERT). Default: `d_model`, with no projection.
    pub d_embedding: Option<usize>,
    /// Which layers differ, and which share their weights (ALBERT).
    #[config(default = "LayerPattern::Uniform", missing = "LayerPattern::Uniform")]
    pub pattern: LayerPattern,
    /// Whether the model has a pooler.
    #[config(default = true)]
    pub pooler: bool,
    /// How every layer is built; the embedded tokens get the same norm.
    #[config(default = "BertConfig::base_block()")]
    pub block: BlockConfig,
}

impl BertConfig {
    /// The block of the paper: post-norm with an epsilon of 1e-12, exact GELU, dropout 0.1, but none inside the feed-forward networks.
    pub fn base_block() -> BlockConfig {
        BlockConfig::new()
            .with_norm(NormConfig::layer_norm().with_epsilon(1e-12))
            .with_feed_forward_dropout(0.0)
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "BertConfig";
        ConfigError::check_positive(NAME, &sizes!(self; vocab_size, max_len, n_segments))?;
        ConfigError::check_positive(NAME, &[("d_embedding", self.d_embedding())])?;
        let encoder = self.encoder().validate();
        let parts = encoder.and_then(|()| self.block.norm.validate());
        parts.map_err(|error| error.in_name_of(NAME))?;
        // The embedded tokens have the block's norm and dropout, even if no layer is built like the block.
        ConfigError::check_dropout(NAME, self.block.dropout)
    }

    /// The layers.
    pub(super) fn encoder(&self) -> TransformerStackConfig {
        TransformerStackConfig::encoder(self.d_model, self.d_ff, self.n_heads, self.n_layers)
            .with_block(self.block.clone())
            .with_pattern(self.pattern.clone())
    }

    /// The width of the embeddings.
    pub(super) fn d_embedding(&self) -> usize {
        self.d_embedding.unwrap_or(self.d_model)
    }
}
