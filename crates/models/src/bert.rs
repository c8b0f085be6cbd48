//! BERT (Devlin et al., "BERT: pre-training of deep bidirectional transformers for language understanding", arXiv:1810.04805): an encoder of
//! texts, also of sentences as vectors (MiniLM, arXiv:2002.10957).

use std::path::Path;

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig},
    tensor::{Device, Int, Tensor},
};
use burn_attn::{
    BlockConfig, ConfigError, FeedForwardActivation, Norm, NormConfig, TransformerEncoder,
    TransformerEncoderConfig, TransformerEncoderInput, TransformerStackOutput, dropout,
    positions::{Learned, LearnedConfig},
};
use burn_attn_derive::Config;
use serde_json::json;

use crate::{
    pretrained::{ConfigFile, PretrainedError},
    vocabulary,
    weights::{Table, Weights, same},
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
    fn from_file(folder: &Path) -> Result<Self, PretrainedError> {
        use FeedForwardActivation::{Gelu, GeluTanh, Relu};

        let mut file = ConfigFile::read(folder, "BERT")?;
        file.only("model_type", json!("bert"))?;
        file.only("position_embedding_type", json!("absolute"))?;
        file.only("is_decoder", json!(false))?;
        file.only("add_cross_attention", json!(false))?;
        file.only("pruned_heads", json!({}))?;
        file.only("use_bfloat16", json!(false))?;
        // Of a head on top.
        for field in ["classifier_dropout", "tie_word_embeddings"] {
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
            .with_n_layers(file.size("num_hidden_layers")?)
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

/// The encoder of BERT, with its pooler.
///
/// ```text
/// x      = norm(tokens[token] + positions[position] + segments[segment])
/// states = encoder(x)                                     post-norm layers
/// pooled = tanh(pooler(states of the first token))
/// ```
///
/// # Source
///
/// arXiv:1810.04805. PyTorch equivalent: `BertModel` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_attn_models::bert::{BertConfig, BertInput};
///
/// let device = Device::default();
/// let bert = BertConfig::new(100).with_d_model(24).with_n_heads(3).with_n_layers(2).with_d_ff(48).init(&device);
/// let tokens = Tensor::<2, Int>::from_data([[2, 7, 8, 3], [2, 9, 3, 0]], &device);
/// let states = bert.forward(BertInput::new(tokens).lengths(&[4, 3]));
/// assert_eq!(states.dims(), [2, 4, 24]);
/// ```
#[derive(Module, Debug)]
pub struct Bert {
    /// `[vocab_size, d_model]`
    pub tokens: Embedding,
    /// `[n_segments, d_model]`
    pub segments: Embedding,
    /// `[max_len, d_model]`
    pub positions: Learned,
    /// Of the embedded tokens.
    pub norm: Norm,
    dropout: Dropout,
    /// The layers.
    pub encoder: TransformerEncoder,
    /// What [`pool`](Self::pool) reads the first token's state with, if there is one: models that predict masked tokens have none.
    pub pooler: Option<Linear>,
    max_len: usize,
}

/// What [`Bert`] reads.
#[derive(Clone, Debug)]
pub struct BertInput {
    tokens: Tensor<2, Int>,
    segments: Option<Tensor<2, Int>>,
    lengths: Option<Vec<usize>>,
}

impl BertInput {
    /// Tokens `[batch, len]`.
    pub fn new(tokens: Tensor<2, Int>) -> Self {
        Self {
            tokens,
            segments: None,
            lengths: None,
        }
    }

    /// The segment of each token, `[batch, len]`. Default: 0.
    pub fn segments(mut self, segments: Tensor<2, Int>) -> Self {
        self.segments = Some(segments);
        self
    }

    /// Text `b` has `lengths[b]` tokens; those behind them are padding that nobody sees, of any token of the vocabulary. Default: no padding.
    pub fn lengths(mut self, lengths: &[usize]) -> Self {
        self.lengths = Some(lengths.to_vec());
        self
    }
}

impl Bert {
    /// The model of a folder as Hugging Face's `transformers` saves it: `config.json` with a `model_type` of `bert`, and
    /// `model.safetensors`, its shards, or `pytorch_model.bin`. Heads on top are left out.
    ///
    /// # Errors
    ///
    /// Names the field, the value or the tensors that are not supported.
    ///
    /// # Cost
    ///
    /// Reads every tensor once; none is drawn at random first.
    pub fn from_pretrained(
        folder: impl AsRef<Path>,
        device: &Device,
    ) -> Result<Self, PretrainedError> {
        let folder = folder.as_ref();
        let config = BertConfig::from_file(folder)?;
        let weights = Weights::open(folder)?;
        let has_pooler = weights
            .tensors()
            .any(|(name, _)| name.ends_with("pooler.dense.weight"));
        let mut model = config.with_pooler(has_pooler).init(device);
        weights.load(&BertConfig::table(), &mut model)?;
        Ok(model)
    }

    /// Longest text (tokens).
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// The state of every token.
    ///
    /// # Shapes
    ///
    /// - output: `[batch, len, d_model]`; states of padding mean nothing
    ///
    /// # Panics
    ///
    /// When a text is longer than `max_len`, the shapes or the lengths do not fit; on a CPU backend, when a token is outside the
    /// vocabulary (elsewhere tokens are not read, which would wait for the device).
    ///
    /// # Cost
    ///
    /// That of [`TransformerEncoder`](burn_attn::TransformerStack::forward).
    pub fn forward(&self, input: BertInput) -> Tensor<3> {
        self.encoder.forward(self.embed(input))
    }

    /// The state of every token, and those behind every layer.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_hidden_states(&self, input: BertInput) -> TransformerStackOutput {
        self.encoder.forward_with_hidden_states(self.embed(input))
    }

    /// The state of every token, and what every head of every layer looks at.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: BertInput) -> TransformerStackOutput {
        self.encoder.forward_with_weights(self.embed(input))
    }

    /// One vector a text, of its first token: what BERT was trained to tell consecutive sentences by.
    ///
    /// # Shapes
    ///
    /// - `states`: `[batch, len, d_model]`
    /// - output: `[batch, d_model]`
    ///
    /// # Panics
    ///
    /// When the model has no pooler.
    pub fn pool(&self, states: Tensor<3>) -> Tensor<2> {
        let Some(pooler) = &self.pooler else {
            panic!("Bert: the model has no pooler");
        };
        let first = states.narrow(1, 0, 1).squeeze_dim::<2>(1);
        pooler.forward(first).tanh()
    }

    /// One vector of length 1 a text, the mean over its tokens: what sentence encoders such as MiniLM are compared by.
    ///
    /// # Shapes
    ///
    /// - `states`: `[batch, len, d_model]`, of texts with `lengths` tokens
    /// - output: `[batch, d_model]`
    ///
    /// # Panics
    ///
    /// When there are not as many lengths as texts, or one is zero or more than `len`.
    ///
    /// # Source
    ///
    /// "Sentence-BERT" (arXiv:1908.10084), section 3. PyTorch equivalent: `Pooling` and `Normalize` of `sentence-transformers`.
    pub fn sentence_vectors(&self, states: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        let [batch, len, d_model] = states.dims();
        assert!(
            lengths.len() == batch && lengths.iter().all(|length| (1..=len).contains(length)),
            "Bert: lengths {lengths:?} do not fit states of {batch} texts of {len} tokens"
        );
        let vectors = lengths.iter().enumerate().map(|(text, &length)| {
            let of_text = states.clone().narrow(0, text, 1).narrow(1, 0, length);
            of_text.mean_dim(1).reshape([1, d_model])
        });
        let vectors: Tensor<2> = Tensor::cat(vectors.collect(), 0);
        let squares = vectors.clone().square().sum_dim(1);
        vectors / squares.sqrt().clamp_min(1e-12)
    }

    fn embed(&self, input: BertInput) -> TransformerEncoderInput {
        let BertInput {
            tokens,
            segments,
            lengths,
        } = input;
        let [vocab_size, _] = self.tokens.weight.dims();
        vocabulary::check("Bert", &tokens, vocab_size);
        let of_segments = match segments {
            Some(segments) => {
                assert!(
                    segments.dims() == tokens.dims(),
                    "Bert: segments {:?} do not fit tokens {:?}",
                    segments.dims(),
                    tokens.dims()
                );
                self.segments.forward(segments)
            }
            None => self.segments.weight.val().narrow(0, 0, 1).unsqueeze(),
        };
        let x = self.positions.forward(self.tokens.forward(tokens)) + of_segments;
        let x = dropout(&self.dropout, self.norm.forward(x));
        let input = TransformerEncoderInput::new(x);
        match lengths {
            Some(lengths) => input.lengths(&lengths),
            None => input,
        }
    }
}
