//! From texts to states and vectors.

use burn::{
    module::Module,
    nn::{Embedding, Linear},
    tensor::{Int, Tensor, assert_shape},
};
use burn_attn::{LayerInput, TransformerStack, TransformerStackOutput, embed, positions::Learned};

use super::{ClipFamily, vision::projected};
use crate::vocabulary;

/// The encoder of texts of a CLIP or a SigLIP.
///
/// Texts of several lengths are padded at their ends. In CLIP no token sees what follows it, so padding may be any tokens, but none larger than the end
/// of the text where that is the [largest](super::ClipTextConfig::end_token). SigLIP was trained on texts that its tokenizer had padded to `max_len`: all
/// tokens see the padding, and the last state stands for the text.
///
/// # Source
///
/// arXiv:2103.00020, section 2.4; arXiv:2303.15343. PyTorch equivalents: `CLIPTextModel`, `CLIPTextModelWithProjection` and `SiglipTextModel` of
/// Hugging Face's `transformers`, without an `attention_mask`.
#[derive(Module, Debug)]
pub struct ClipText {
    /// `[vocab_size, d_model]`
    pub tokens: Embedding,
    /// `[max_len, d_model]`
    pub positions: Learned,
    /// The layers, and the norm after them.
    pub encoder: TransformerStack,
    /// From the pooled state to the vector of a text, if there is a projection.
    pub projection: Option<Linear>,
    #[module(skip)]
    pub(super) end_token: Option<usize>,
    #[module(skip)]
    pub(super) family: ClipFamily,
}

impl ClipText {
    /// Longest text (tokens).
    pub fn max_len(&self) -> usize {
        let [max_len, _] = self.positions.table.dims();
        max_len
    }

    /// The states of tokens `[batch, len]`, `[batch, len, d_model]`, normalised.
    ///
    /// # Panics
    ///
    /// When a text is longer than [`max_len`](Self::max_len); on a CPU backend, when a token is outside the vocabulary.
    ///
    /// # Cost
    ///
    /// The cost of the encoder for `len` tokens.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        self.encoder.forward(self.embed(tokens))
    }

    /// As [`forward`](Self::forward), with the attention weights of every layer. This takes all scores once more, and memory for
    /// `batch · heads · len²` weights per layer.
    pub fn forward_with_weights(&self, tokens: Tensor<2, Int>) -> TransformerStackOutput {
        self.encoder.forward_with_weights(self.embed(tokens))
    }

    /// As [`forward`](Self::forward), with the states after every layer, before the norm.
    pub fn forward_with_hidden_states(&self, tokens: Tensor<2, Int>) -> TransformerStackOutput {
        self.encoder.forward_with_hidden_states(self.embed(tokens))
    }

    /// One state per text, `[batch, d_model]`, of the states of [`forward`](Self::forward): in CLIP that of the first end token, or of the first
    /// token if there is none; in SigLIP the last. PyTorch equivalent: the `pooler_output` of `CLIPTextModel`; that of `SiglipTextModel` is projected.
    ///
    /// # Panics
    ///
    /// When the shapes of states and tokens differ, or the texts have no tokens.
    pub fn pool(&self, states: Tensor<3>, tokens: Tensor<2, Int>) -> Tensor<2> {
        let [batch, len, d_model] = states.dims();
        assert_shape!(tokens, [batch, len]);
        assert!(len > 0, "ClipText: the texts have no tokens");
        if self.family == ClipFamily::Siglip {
            return states.narrow(1, len - 1, 1).squeeze_dim(1);
        }
        let is_end = match self.end_token {
            Some(token) => tokens.equal_scalar(token as i64),
            None => tokens.clone().max_dim(1).expand([batch, len]).equal(tokens),
        };
        // No two positions have the same rank: backends choose differently among equal ones.
        let order = Tensor::<1, Int>::arange(0..len as i64, &states.device());
        let rank = is_end.int() * len as i64 - order.unsqueeze::<2>();
        let place = rank.argmax(1).reshape([batch, 1, 1]);
        states
            .gather(1, place.repeat_dim(2, d_model))
            .squeeze_dim(1)
    }

    /// The vectors of texts, `[batch, d_projection]`, not normalised: [pooled](Self::pool) states, projected if there is a projection.
    /// Panics and cost are those of [`forward`](Self::forward) and [`pool`](Self::pool). PyTorch equivalent: the `pooler_output` of
    /// `get_text_features`.
    pub fn features(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        let ([batch, _], [_, d_model]) = (tokens.dims(), self.tokens.weight.dims());
        // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
        if batch == 0 {
            let projection = self.projection.as_ref();
            let width = projection.map_or(d_model, |projection| projection.weight.dims()[1]);
            let dtype = self.tokens.weight.dtype();
            return Tensor::zeros([0, width], (&tokens.device(), dtype));
        }
        let states = self.forward(tokens.clone());
        projected(&self.projection, self.pool(states, tokens))
    }

    fn embed(&self, tokens: Tensor<2, Int>) -> LayerInput {
        let [vocab_size, _] = self.tokens.weight.dims();
        vocabulary::check("ClipText", &tokens, vocab_size);
        LayerInput::new(self.positions.forward(embed(&self.tokens, tokens)))
    }
}
