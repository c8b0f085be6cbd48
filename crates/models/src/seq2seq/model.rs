//! The encoder–decoder model: from tokens to the logits of the tokens that follow.

use burn::{
    module::Module,
    nn::{Dropout, Linear},
    tensor::{Int, Tensor},
};
use burn_attn::{
    LayerInput, TiedEmbedding, Transformer, dropout,
    positions::{Learned, Positions, Sinusoidal},
};

use crate::vocabulary;

/// An encoder–decoder transformer with one vocabulary for source and target, as in the paper and in T5.
///
/// ```text
/// memory = encoder(embedding(source) + positions)
/// logits = head(decoder(embedding(target) + positions, memory))     the head is the transposed embedding, unless it is separate
/// ```
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3; tied embeddings: "Using the output embedding to improve
/// language models" (arXiv:1608.05859). PyTorch equivalent: `T5ForConditionalGeneration` of Hugging Face's `transformers`.
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
/// let target = Tensor::<2, Int>::from_data([[1, 11], [1, 12]], &device);
/// assert_eq!(model.forward(source, &[3, 2], target).dims(), [2, 2, 100]);
/// ```
#[derive(Module, Debug)]
pub struct Seq2Seq {
    /// `[vocab_size, d_model]`, also the output projection, unless there is a [`head`](Self::head).
    pub embedding: TiedEmbedding,
    pub(super) sinusoidal: Option<Sinusoidal>,
    /// Added to the embedded tokens of source and target, if positions are learned.
    pub learned: Option<Learned>,
    pub(crate) dropout: Dropout,
    /// Encoder and decoder.
    pub transformer: Transformer,
    /// The output projection, if it is not the embedding.
    pub head: Option<Linear>,
    pub(super) max_len: usize,
}

/// What the encoder made of the sources.
#[derive(Clone, Debug)]
pub struct Memory {
    /// `[batch, len_source, d_model]`
    pub states: Tensor<3>,
    /// Number of tokens in each source without padding.
    pub lengths: Vec<usize>,
}

impl Memory {
    /// The memory of the batch items with these indices, in this order; an item may be repeated. Panics when an index is not below the
    /// batch size.
    pub fn select(&self, items: &[usize]) -> Self {
        let indices: Vec<i32> = items.iter().map(|&item| item as i32).collect();
        let indices = Tensor::from_data(indices.as_slice(), &self.states.device());
        Self {
            states: self.states.clone().select(0, indices),
            lengths: items.iter().map(|&item| self.lengths[item]).collect(),
        }
    }
}

/// The attention weights of every head, one `[batch, heads, len_q, len_kv]` per layer.
#[derive(Clone, Debug)]
pub struct Seq2SeqAttention {
    /// Encoder self-attention.
    pub encoder: Vec<Tensor<4>>,
    /// Decoder self-attention.
    pub decoder: Vec<Tensor<4>>,
    /// Cross-attention, from targets to sources.
    pub cross: Vec<Tensor<4>>,
}

impl Seq2Seq {
    /// Longest target (tokens) that can be generated; with a table of positions, the longest source or target.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Reads the sources.
    ///
    /// # Shapes
    ///
    /// - `source`: `[batch, len_source]`, padded after `source_lengths` with any token of the vocabulary
    /// - `source_lengths`: one for each source
    ///
    /// # Panics
    ///
    /// As [`embed`](Self::embed), and when the lengths do not fit.
    ///
    /// # Cost
    ///
    /// The cost of the encoder, once for any number of targets.
    pub fn encode(&self, source: Tensor<2, Int>, source_lengths: &[usize]) -> Memory {
        let states = match source.dims() {
            // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
            [0, _] => self.embedding.forward(source),
            _ => {
                let input = self.encoder_input(source, source_lengths);
                self.transformer.encoder.forward(input)
            }
        };
        Memory {
            states,
            lengths: source_lengths.to_vec(),
        }
    }

    /// Logits of the token that follows each position of the target.
    ///
    /// Padding at the end of a target changes nothing before it, because the decoder is causal.
    ///
    /// # Shapes
    ///
    /// - `target`: `[batch, len_target]`
    /// - output: `[batch, len_target, vocab_size]`
    ///
    /// # Panics
    ///
    /// As [`embed`](Self::embed), and when the batches differ.
    ///
    /// # Cost
    ///
    /// The cost of the decoder, and `2 · batch · len_target · d_model · vocab_size` operations for the logits.
    pub fn decode(&self, target: Tensor<2, Int>, memory: &Memory) -> Tensor<3> {
        let input = self.decoder_input(target, memory);
        self.logits(self.transformer.decoder.forward(input))
    }

    /// Logits for training, where the whole target is known.
    ///
    /// # Shapes
    ///
    /// - `source`: `[batch, len_source]`; `source_lengths`: one for each source
    /// - `target`: `[batch, len_target]`
    /// - output: `[batch, len_target, vocab_size]`
    ///
    /// Panics and cost are those of [`encode`](Self::encode) and [`decode`](Self::decode).
    ///
    /// # Example
    ///
    /// See [`Seq2Seq`](Self#example). For the router logits of layers with experts, write out what `forward` does.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_attn::{BlockConfig, ExpertsConfig, TransformerInput, load_balancing_loss};
    /// use burn_attn_models::seq2seq::Seq2SeqConfig;
    ///
    /// let device = Device::default();
    /// let block = BlockConfig::new().with_experts(ExpertsConfig::new(4, 2));
    /// let model = Seq2SeqConfig::new(100).with_d_model(32).with_n_heads(4).with_block(block).init(&device);
    /// let source = Tensor::<2, Int>::from_data([[5, 6, 7], [8, 9, 0]], &device);
    /// let target = Tensor::<2, Int>::from_data([[1, 11], [1, 12]], &device);
    /// let input = TransformerInput::new(model.embed(source, 0), model.embed(target, 0))
    ///     .source_lengths(&[3, 2]);
    /// let output = model.transformer.forward_with_router_logits(input);
    /// let logits = model.logits(output.states);
    /// let loss = load_balancing_loss(&output.decoder_router_logits, 2, None);
    /// # assert_eq!((logits.dims(), loss.dims()), ([2, 2, 100], [1]));
    /// ```
    pub fn forward(
        &self,
        source: Tensor<2, Int>,
        source_lengths: &[usize],
        target: Tensor<2, Int>,
    ) -> Tensor<3> {
        self.decode(target, &self.encode(source, source_lengths))
    }

    /// The attention weights of every layer and head. Arguments and panics are those of [`forward`](Self::forward).
    pub fn attention(
        &self,
        source: Tensor<2, Int>,
        source_lengths: &[usize],
        target: Tensor<2, Int>,
    ) -> Seq2SeqAttention {
        let input = self.encoder_input(source, source_lengths);
        let encoded = self.transformer.encoder.forward_with_weights(input);
        let memory = Memory {
            states: encoded.states,
            lengths: source_lengths.to_vec(),
        };
        let input = self.decoder_input(target, &memory);
        let decoded = self.transformer.decoder.forward_with_weights(input);
        Seq2SeqAttention {
            encoder: encoded.self_weights,
            decoder: decoded.self_weights,
            cross: decoded.cross_weights,
        }
    }

    pub(super) fn encoder_input(&self, source: Tensor<2, Int>, lengths: &[usize]) -> LayerInput {
        LayerInput::new(self.embed(source, 0)).lengths(lengths)
    }

    pub(crate) fn decoder_input(&self, target: Tensor<2, Int>, memory: &Memory) -> LayerInput {
        LayerInput::new(self.embed(target, 0))
            .memory(memory.states.clone())
            .memory_lengths(&memory.lengths)
    }

    /// The tokens as encoder and decoder read them: embedded, with their positions added unless the heads have them. Shapes and panics are those of
    /// [`LanguageModel::embed`](crate::language_model::LanguageModel::embed).
    pub fn embed(&self, tokens: Tensor<2, Int>, positions: impl Into<Positions>) -> Tensor<3> {
        let tables = (self.sinusoidal.as_ref(), self.learned.as_ref());
        let embedded = vocabulary::embed("Seq2Seq", &self.embedding, tables, tokens, positions);
        dropout(&self.dropout, embedded)
    }

    /// Logits `[.., vocab_size]` of the token that follows each state `[.., d_model]` of the decoder.
    ///
    /// # Panics
    ///
    /// When the last axis is not `d_model`.
    pub fn logits<const D: usize>(&self, states: Tensor<D>) -> Tensor<D> {
        vocabulary::logits(&self.embedding, self.head.as_ref(), states)
    }
}
