//! Sizes of a BERT, its files and what their tensors are called.

use std::path::Path;

use burn::{
    nn::{DropoutConfig, EmbeddingConfig, LinearConfig},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, ConfigError, FeedForwardActivation, NormConfig, TransformerEncoderConfig,
    positions::LearnedConfig,
};
use burn_attn_derive::Config;
use serde_json::json;

use super::Bert;
use crate::{
    pretrained::{ConfigFile, PretrainedError},
    weights::{Table, same},
};

/// Configuration of [`Bert`].
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
    /// Number of segments that a text may be made of, such as question and answer.
    #[config(default = 2)]
    pub n_segments: usize,
    /// Whether the model has a pooler.
    #[config(default = true)]
    pub pooler: bool,
    /// How every layer is built; its norm is that of the embedded tokens too.
    #[config(default = "BertConfig::base_block()")]
    pub block: BlockConfig,
}

impl BertConfig {
    /// The block of the paper: post-norm with an epsilon of 1e-12, exact GELU, dropout 0.1.
    pub fn base_block() -> BlockConfig {
        BlockConfig::new().with_norm(NormConfig::layer_norm().with_epsilon(1e-12))
    }

    /// Whether a model can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "BertConfig";
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("max_len", self.max_len),
            ("n_segments", self.n_segments),
        ];
        ConfigError::check_positive(NAME, &sizes)?;
        let encoder = self.encoder().validate();
        encoder.map_err(|error| error.in_name_of(NAME))
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Bert {
        if let Err(error) = self.validate() {
            panic!("{error}");
        }
        let d_model = self.d_model;
        Bert {
            tokens: EmbeddingConfig::new(self.vocab_size, d_model).init(device),
            segments: EmbeddingConfig::new(self.n_segments, d_model).init(device),
            positions: LearnedConfig::new(d_model, self.max_len).init(device),
            norm: self.block.norm.init(d_model, device),
            dropout: DropoutConfig::new(self.block.dropout).init(),
            encoder: self.encoder().init(device),
            pooler: self
                .pooler
                .then(|| LinearConfig::new(d_model, d_model).init(device)),
            max_len: self.max_len,
        }
    }

    fn encoder(&self) -> TransformerEncoderConfig {
        TransformerEncoderConfig::new(self.d_model, self.d_ff, self.n_heads, self.n_layers)
            .with_block(self.block.clone())
    }

    /// Which parameter is which tensor of Hugging Face's `BertModel`, with or without a head on top.
    pub fn table() -> Table {
        let layer = Table::new()
            .linear(
                "self_attention.query_key_value",
                same([
                    "attention.self.query",
                    "attention.self.key",
                    "attention.self.value",
                ]),
            )
            .linear("self_attention.output", "attention.output.dense")
            .norm("self_attention_residual.norm", "attention.output.LayerNorm")
            .linear("feed_forward.linear_inner", "intermediate.dense")
            .linear("feed_forward.linear_outer", "output.dense")
            .norm("feed_forward_residual.norm", "output.LayerNorm");
        Table::new()
            .row("tokens.weight", "embeddings.word_embeddings.weight")
            .row("segments.weight", "embeddings.token_type_embeddings.weight")
            .row("positions.table", "embeddings.position_embeddings.weight")
            .norm("norm", "embeddings.LayerNorm")
            .part("encoder.layers.{layer}", "encoder.layer.{layer}", layer)
            .linear("pooler", "pooler.dense")
            .ignore("embeddings.position_ids")
            // Heads for tasks, which are not the encoder's.
            .ignore("cls.*")
            .ignore("classifier.*")
            .ignore("qa_outputs.*")
            .rename("bert.*", "*")
            // As the first checkpoints called them.
            .rename("*.LayerNorm.gamma", "*.LayerNorm.weight")
            .rename("*.LayerNorm.beta", "*.LayerNorm.bias")
    }

    /// What a `config.json` of Hugging Face's says.
    pub(super) fn from_file(folder: &Path) -> Result<Self, PretrainedError> {
        use FeedForwardActivation::{Gelu, GeluTanh, Relu};

        let mut file = ConfigFile::read(folder, "BERT")?;
        file.only("model_type", json!("bert"))?;
        file.only("position_embedding_type", json!("absolute"))?;
        file.only("is_decoder", json!(false))?;
        file.only("add_cross_attention", json!(false))?;
        file.only("pruned_heads", json!({}))?;
        file.only("use_bfloat16", json!(false))?;
        // Of a head on top.
        let of_a_head = [
            "classifier_dropout",
            "tie_word_embeddings",
            "directionality",
            "pooler_fc_size",
            "pooler_num_attention_heads",
            "pooler_num_fc_layers",
            "pooler_size_per_head",
            "pooler_type",
        ];
        for field in of_a_head {
            file.ignore(field);
        }
        let epsilon = file.number("layer_norm_eps", 1e-12)?;
        let activation = file.choice(
            "hidden_act",
            &[
                ("gelu", Gelu),
                ("gelu_new", GeluTanh),
                ("gelu_pytorch_tanh", GeluTanh),
                ("relu", Relu),
            ],
        )?;
        let block = Self::base_block()
            .with_norm(NormConfig::layer_norm().with_epsilon(epsilon))
            .with_activation(activation)
            .with_dropout(file.number("hidden_dropout_prob", 0.1)?)
            .with_attention_dropout(Some(file.number("attention_probs_dropout_prob", 0.1)?));
        let config = Self::new(file.size("vocab_size")?)
            .with_d_model(file.size("hidden_size")?)
            .with_n_heads(file.size("num_attention_heads")?)
            .with_n_layers(file.layers("num_hidden_layers")?)
            .with_d_ff(file.size("intermediate_size")?)
            .with_max_len(file.size("max_position_embeddings")?)
            .with_n_segments(file.size_if_any("type_vocab_size")?.unwrap_or(2))
            .with_block(block);
        let path = file.finish()?;
        match config.validate() {
            Ok(()) => Ok(config),
            Err(error) => Err(PretrainedError::Config { path, error }),
        }
    }
}
