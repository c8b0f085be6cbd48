//! The translation model of "Attention is all you need" (arXiv:1706.03762): tokens in, logits of tokens out.

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, Initializer},
    tensor::{Device, Int, Tensor},
};
use burn_attn::{
    AttentionMask, BlockConfig, ConfigError, FeedForwardActivation, NormPlacement, TiedEmbedding,
    TiedEmbeddingConfig, Transformer, TransformerConfig, TransformerDecoderInput,
    TransformerEncoderInput, dropout,
    positions::{Positions, Sinusoidal, SinusoidalConfig},
};
use burn_attn_derive::Config;

use crate::vocabulary;

/// Configuration of [`Seq2Seq`].
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
    /// Probability of dropping a number in training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Longest source or target (tokens).
    #[config(default = 256)]
    pub max_len: usize,
    /// Where the norms are; the paper's is `Post`.
    #[config(default = "NormPlacement::Pre")]
    pub norm_placement: NormPlacement,
}

impl Seq2SeqConfig {
    /// Whether a model can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "Seq2SeqConfig";
        let sizes = [("vocab_size", self.vocab_size), ("max_len", self.max_len)];
        ConfigError::check_positive(NAME, &sizes)?;
        let transformer = self.transformer().validate();
        transformer.map_err(|error| error.in_name_of(NAME))
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Seq2Seq {
        if let Err(error) = self.validate() {
            panic!("{error}");
        }
        Seq2Seq {
            embedding: TiedEmbeddingConfig::new(self.vocab_size, self.d_model).init(device),
            positions: SinusoidalConfig::new(self.d_model)
                .with_max_len(self.max_len)
                .init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
            transformer: self.transformer().init(device),
            max_len: self.max_len,
        }
    }

    fn transformer(&self) -> TransformerConfig {
        TransformerConfig::new(
            self.d_model,
            self.d_ff,
            self.n_heads,
            self.n_encoder_layers,
            self.n_decoder_layers,
        )
        .with_block(
            BlockConfig::new()
                .with_dropout(self.dropout)
                .with_norm_placement(self.norm_placement)
                .with_activation(FeedForwardActivation::Relu)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 }),
        )
    }
}

/// An encoder–decoder transformer over one vocabulary, whose embedding is tied to its output projection.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3; tied embeddings: "Using the output embedding to improve
/// language models" (arXiv:1608.05859).
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_attn_models::seq2seq::Seq2SeqConfig;
///
/// let device = Device::default();
/// let model = Seq2SeqConfig::new(100).with_d_model(32).with_n_heads(4).init(&device);
/// let source = Tensor::<2, Int>::from_data([[5, 6, 7], [8, 9, 0]], &device);
/// let source_lengths = Tensor::<1, Int>::from_data([3, 2], &device);
/// let target = Tensor::<2, Int>::from_data([[1, 11], [1, 12]], &device);
/// assert_eq!(model.forward(source, source_lengths, target).dims(), [2, 2, 100]);
/// ```
#[derive(Module, Debug)]
pub struct Seq2Seq {
    /// `[vocab_size, d_model]`, also the output projection.
    pub embedding: TiedEmbedding,
    positions: Sinusoidal,
    dropout: Dropout,
    /// Encoder and decoder.
    pub transformer: Transformer,
    max_len: usize,
}

/// What the encoder made of the sources.
#[derive(Clone, Debug)]
pub struct Memory {
    /// `[batch, len_source, d_model]`
    pub states: Tensor<3>,
    /// Number of real tokens of each source, `[batch]`.
    pub lengths: Tensor<1, Int>,
}

impl Memory {
    /// The memory of the batch items `items`, in this order, repeated where named twice.
    pub fn select(&self, items: Tensor<1, Int>) -> Self {
        Self {
            states: self.states.clone().select(0, items.clone()),
            lengths: self.lengths.clone().select(0, items),
        }
    }
}

/// What every head of every layer looks at; one `[batch, heads, len_q, len_kv]` a layer.
#[derive(Clone, Debug)]
pub struct Seq2SeqAttention {
    /// Encoder self-attention.
    pub encoder: Vec<Tensor<4>>,
    /// Decoder self-attention.
    pub decoder: Vec<Tensor<4>>,
    /// Cross-attention: targets look at the source.
    pub cross: Vec<Tensor<4>>,
}

impl Seq2Seq {
    /// Longest source or target (tokens).
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Reads the sources.
    ///
    /// # Shapes
    ///
    /// - `source`: `[batch, len_source]`, padded behind `source_lengths` with any token of the vocabulary
    /// - `source_lengths`: `[batch]`
    ///
    /// # Panics
    ///
    /// When a source is longer than `max_len`; on a CPU backend, when a token is outside the vocabulary (elsewhere tokens are not read,
    /// which would wait for the device).
    pub fn encode(&self, source: Tensor<2, Int>, source_lengths: Tensor<1, Int>) -> Memory {
        let [batch, _] = source.dims();
        if batch == 0 {
            // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
            return Memory {
                states: self.embedding.forward(source),
                lengths: source_lengths,
            };
        }
        let input = TransformerEncoderInput::new(self.embed(source, 0))
            .mask(AttentionMask::key_lengths(source_lengths.clone()));
        Memory {
            states: self.transformer.encoder.forward(input),
            lengths: source_lengths,
        }
    }

    /// Logits of the token that follows each position of the target.
    ///
    /// Padding at the end of a target changes nothing before it: the decoder is causal.
    ///
    /// # Shapes
    ///
    /// - `target`: `[batch, len_target]`
    /// - output: `[batch, len_target, vocab_size]`
    ///
    /// # Panics
    ///
    /// When a target is longer than `max_len` or the batches differ; on a CPU backend, when a token is outside the vocabulary.
    pub fn decode(&self, target: Tensor<2, Int>, memory: &Memory) -> Tensor<3> {
        let input = self.decoder_input(target, memory);
        self.embedding
            .logits(self.transformer.decoder.forward(input))
    }

    /// Logits for training, where the whole target is known.
    ///
    /// # Shapes
    ///
    /// - `source`: `[batch, len_source]`; `source_lengths`: `[batch]`
    /// - `target`: `[batch, len_target]`
    /// - output: `[batch, len_target, vocab_size]`
    ///
    /// # Panics
    ///
    /// As [`encode`](Self::encode) and [`decode`](Self::decode).
    pub fn forward(
        &self,
        source: Tensor<2, Int>,
        source_lengths: Tensor<1, Int>,
        target: Tensor<2, Int>,
    ) -> Tensor<3> {
        self.decode(target, &self.encode(source, source_lengths))
    }

    /// The attention weights of every layer and head.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn attention(
        &self,
        source: Tensor<2, Int>,
        source_lengths: Tensor<1, Int>,
        target: Tensor<2, Int>,
    ) -> Seq2SeqAttention {
        let input = TransformerEncoderInput::new(self.embed(source, 0))
            .mask(AttentionMask::key_lengths(source_lengths.clone()));
        let encoded = self.transformer.encoder.forward_with_weights(input);
        let memory = Memory {
            states: encoded.states,
            lengths: source_lengths,
        };
        let input = self.decoder_input(target, &memory);
        let decoded = self.transformer.decoder.forward_with_weights(input);
        Seq2SeqAttention {
            encoder: encoded.self_weights,
            decoder: decoded.self_weights,
            cross: decoded.cross_weights,
        }
    }

    fn decoder_input(&self, target: Tensor<2, Int>, memory: &Memory) -> TransformerDecoderInput {
        TransformerDecoderInput::new(self.embed(target, 0), memory.states.clone())
            .memory_mask(AttentionMask::key_lengths(memory.lengths.clone()))
    }

    pub(super) fn embed(
        &self,
        tokens: Tensor<2, Int>,
        positions: impl Into<Positions>,
    ) -> Tensor<3> {
        let [vocab_size, _] = self.embedding.weight.dims();
        vocabulary::check("Seq2Seq", &tokens, vocab_size);
        let embedded = self.embedding.forward(tokens);
        dropout(
            &self.dropout,
            self.positions.forward_from(embedded, positions),
        )
    }
}
