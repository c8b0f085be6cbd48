//! The decoder-only language model: from tokens to the logits of the tokens that follow.

use burn::{
    module::Module,
    nn::{Dropout, Linear},
    tensor::{Int, Tensor},
};
use burn_attn::{
    LayerInput, SelfAttention, TiedEmbedding, TokenMixer, TransformerStack, dropout,
    positions::{Learned, Positions, Sinusoidal},
    softcap,
};

use crate::vocabulary;

/// A stack of causal layers between an embedding and the logits of the next token. The layers have self-attention or other
/// [mixers of tokens](TokenMixer).
///
/// ```text
/// logits = head(transformer(embedding(tokens) + positions))      without a separate head, the transposed embedding
/// ```
///
/// # Source
///
/// GPT-2; "Generating Wikipedia by summarizing long sequences" (arXiv:1801.10198), section 4.2.3; tied embeddings: "Using the
/// output embedding to improve language models" (arXiv:1608.05859). PyTorch equivalent: `GPT2LMHeadModel` and
/// `LlamaForCausalLM` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_models::language_model::{AbsolutePosition, LanguageModelConfig};
///
/// let device = Device::default();
/// let model = LanguageModelConfig::new(100)
///     .with_d_model(32)
///     .with_n_heads(4)
///     .with_absolute_position(AbsolutePosition::Sinusoidal)
///     .init(&device);
/// let logits = model.forward(Tensor::from_data([[5, 6, 7], [8, 9, 2]], &device));
/// assert_eq!(logits.dims(), [2, 3, 100]);
/// ```
#[derive(Module, Debug)]
pub struct LanguageModel<M = SelfAttention> {
    /// `[vocab_size, d_model]`, also the output projection, unless there is a [`head`](Self::head).
    pub embedding: TiedEmbedding,
    pub(super) sinusoidal: Option<Sinusoidal>,
    /// Added to the embedded tokens, if positions are learned.
    pub learned: Option<Learned>,
    pub(super) dropout: Dropout,
    /// The layers and the last norm.
    pub transformer: TransformerStack<M>,
    /// The output projection, if it is not the embedding.
    pub head: Option<Linear>,
    pub(super) logit_softcap: Option<f64>,
    /// False if the files of an untied model have no output projection.
    pub(crate) has_logits: bool,
    pub(super) max_len: usize,
}

impl<M: TokenMixer> LanguageModel<M> {
    /// Whether the model has [`logits`](Self::logits). One that was loaded from the files of a bare model (`LlamaModel`, `GPTNeoXModel`)
    /// has none, unless its embedding is also the output projection. It has states, for [`attention`](Self::attention) and for a head on top, and
    /// [generation](crate::generate) refuses it.
    pub fn has_logits(&self) -> bool {
        self.has_logits
    }

    /// Longest sequence (tokens) that can be generated; with a table of positions, the longest that can be read at all.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Logits of the token that follows each position, for training or to score a text.
    ///
    /// Padding at the end of a sequence changes nothing before it, because the model is causal.
    ///
    /// # Shapes
    ///
    /// - `tokens`: `[batch, len]`
    /// - output: `[batch, len, vocab_size]`
    ///
    /// # Panics
    ///
    /// As [`embed`](Self::embed), and when the heads have fewer rotary positions than `len` or the model [has no logits](Self::has_logits).
    ///
    /// # Cost
    ///
    /// The cost of the layers, and `2 · batch · len · d_model · vocab_size` operations for the logits, usually the largest tensor.
    ///
    /// # Example
    ///
    /// See [`LanguageModel`](Self#example). To add a mask, such as that of several texts packed into one row, write out what `forward`
    /// does. If positions are added to the tokens, [`Positions::PerToken`] lets each text start at 0. For the router logits of layers with experts, which the balancing
    /// loss of training takes, write it out with
    /// [`forward_with_router_logits`](burn_attn::TransformerStack::forward_with_router_logits) and
    /// [`load_balancing_loss`](burn_attn::load_balancing_loss).
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_attn::{AttentionMask, LayerInput, positions::PositionEncoding};
    /// use burn_attn_models::language_model::LanguageModelConfig;
    ///
    /// let device = Device::default();
    /// let config = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4);
    /// let block = config.block.clone().with_position(PositionEncoding::rotary());
    /// let model = config.with_block(block).init(&device);
    /// let tokens = Tensor::from_data([[5, 6, 7, 8, 9]], &device);
    /// let texts = Tensor::<2, Int>::from_data([[0, 0, 0, 1, 1]], &device);
    /// let input = LayerInput::new(model.embed(tokens, 0))
    ///     .mask(AttentionMask::segments(texts.clone(), texts));
    /// let logits = model.logits(model.transformer.forward(input));
    /// assert_eq!(logits.dims(), [1, 5, 100]);
    /// ```
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let input = LayerInput::new(self.embed(tokens, 0));
        self.logits(self.transformer.forward(input))
    }

    /// The attention weights of every layer with self-attention, `[batch, heads, len, len]` each, for tokens `[batch, len]`. It panics as [`forward`](Self::forward), but needs
    /// no logits.
    pub fn attention(&self, tokens: Tensor<2, Int>) -> Vec<Tensor<4>> {
        let input = LayerInput::new(self.embed(tokens, 0));
        self.transformer.forward_with_weights(input).self_weights
    }

    /// The tokens as the transformer reads them: embedded, with their positions added unless the heads have them.
    ///
    /// # Shapes
    ///
    /// - `tokens`: `[batch, len]`, at these `positions`
    /// - output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When a position is past the table of positions; on a CPU backend, when a token is outside the vocabulary. On others the check
    /// would have to wait for the device, and such a token gets whatever embedding the backend finds.
    pub fn embed(&self, tokens: Tensor<2, Int>, positions: impl Into<Positions>) -> Tensor<3> {
        let tables = (self.sinusoidal.as_ref(), self.learned.as_ref());
        let embedded =
            vocabulary::embed("LanguageModel", &self.embedding, tables, tokens, positions);
        dropout(&self.dropout, embedded)
    }

    /// Logits of the token that follows each state of the transformer.
    ///
    /// # Shapes
    ///
    /// - `states`: `[.., d_model]`
    /// - output: `[.., vocab_size]`
    ///
    /// # Panics
    ///
    /// When the last axis is not `d_model`, or the model [has no logits](Self::has_logits).
    pub fn logits<const D: usize>(&self, states: Tensor<D>) -> Tensor<D> {
        assert!(
            self.has_logits,
            "LanguageModel: its files are those of a bare model, without an output projection, so it has states, but no logits"
        );
        let logits = vocabulary::logits(&self.embedding, self.head.as_ref(), states);
        match self.logit_softcap {
            Some(cap) => softcap(logits, cap),
            None => logits,
        }
    }
}
