//! The model.

use std::path::Path;

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig},
    tensor::{Device, Int, Tensor},
};
use burn_attn::{
    LayerInput, Norm, TransformerStack, TransformerStackOutput, dropout, embed, expect_valid,
    linear,
    positions::{Learned, LearnedConfig},
};

use super::{BertConfig, Pooling, files::gguf, pooling::normalized};
use crate::{
    families::files::ModelFiles,
    pretrained::{LoadOptions, PretrainedError},
    vocabulary,
};

/// The encoder of BERT, with its pooler.
///
/// ```text
/// x      = norm(tokens[token] + positions[position] + segments[segment])      projected to the width of the layers, if it is narrower
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
    /// `[vocab_size, d_embedding]`
    pub tokens: Embedding,
    /// `[n_segments, d_embedding]`
    pub segments: Embedding,
    /// `[max_len, d_embedding]`
    pub positions: Learned,
    /// Norm of the embedded tokens.
    pub norm: Norm,
    pub(super) dropout: Dropout,
    /// Brings the embedded tokens to the width of the layers, if they are narrower.
    pub projection: Option<Linear>,
    /// The layers.
    pub encoder: TransformerStack,
    /// The layer that [`pool`](Self::pool) applies to the first token's state. Models that predict masked tokens have none.
    pub pooler: Option<Linear>,
    pub(super) max_len: usize,
}

impl BertConfig {
    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Bert {
        expect_valid(self.validate());
        let (d_model, d_embedding) = (self.d_model, self.d_embedding());
        Bert {
            tokens: EmbeddingConfig::new(self.vocab_size, d_embedding).init(device),
            segments: EmbeddingConfig::new(self.n_segments, d_embedding).init(device),
            positions: LearnedConfig::new(d_embedding, self.max_len).init(device),
            norm: self.block.norm.init(d_embedding, device),
            dropout: DropoutConfig::new(self.block.dropout).init(),
            projection: self
                .d_embedding
                .map(|d_embedding| LinearConfig::new(d_embedding, d_model).init(device)),
            encoder: self.encoder().init(device),
            pooler: self
                .pooler
                .then(|| LinearConfig::new(d_model, d_model).init(device)),
            max_len: self.max_len,
        }
    }
}

/// Input of [`Bert`].
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

    /// Text `b` has `lengths[b]` tokens; the rest of its row is padding, which is never read and may be any token of the vocabulary.
    /// Default: no padding.
    pub fn lengths(mut self, lengths: &[usize]) -> Self {
        self.lengths = Some(lengths.to_vec());
        self
    }
}

impl Bert {
    /// Loads a model with a `model_type` of `bert` or `albert` from a folder or a [name on the Hub](crate::pretrained). Heads on top are left out. A BERT is
    /// also loaded from a [GGUF file](crate::pretrained#gguf), which has no pooler.
    ///
    /// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, PretrainedError> {
        let (source, read) = (source.as_ref(), BertConfig::read);
        let valid = |(config, _): &(BertConfig, _)| config.validate();
        let ((config, table), files) = ModelFiles::open(source, options, "BERT", read, valid)?;
        let table = match source.is_file() {
            true => gguf(table),
            false => table,
        };
        let has_pooler = files.weights.tensors().any(|(name, _)| {
            name.ends_with("pooler.dense.weight") || name.ends_with("pooler.weight")
        });
        let config = config.with_pooler(has_pooler);
        files.load(Ok(()), |device| config.init(device), &table)
    }

    /// Longest text (tokens).
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// The state of every token.
    ///
    /// # Shapes
    ///
    /// - output: `[batch, len, d_model]`; the states of padding are meaningless
    ///
    /// # Panics
    ///
    /// When a text is longer than `max_len`, or shapes or lengths do not fit; on a CPU backend, when a token is outside the
    /// vocabulary or a segment is not below `n_segments` (on others the check would have to wait for the device).
    ///
    /// # Cost
    ///
    /// As [`TransformerStack`](burn_attn::TransformerStack::forward).
    pub fn forward(&self, input: BertInput) -> Tensor<3> {
        self.encoder.forward(self.embed(input))
    }

    /// [`forward`](Self::forward), and the states after every layer, `[batch, len, d_model]` each.
    pub fn forward_with_hidden_states(&self, input: BertInput) -> TransformerStackOutput {
        self.encoder.forward_with_hidden_states(self.embed(input))
    }

    /// [`forward`](Self::forward), and the attention weights of every layer, `[batch, heads, len, len]` each.
    pub fn forward_with_weights(&self, input: BertInput) -> TransformerStackOutput {
        self.encoder.forward_with_weights(self.embed(input))
    }

    /// One vector per text, made from its first token: BERT was trained to recognise consecutive sentences by it.
    ///
    /// # Shapes
    ///
    /// - `states`: `[batch, len, d_model]`
    /// - output: `[batch, d_model]`
    ///
    /// # Panics
    ///
    /// When the model has no pooler.
    ///
    /// # Cost
    ///
    /// `2 · batch · d_model²` operations.
    pub fn pool(&self, states: Tensor<3>) -> Tensor<2> {
        let Some(pooler) = &self.pooler else {
            panic!("Bert: the model has no pooler");
        };
        let [batch, _, d_model] = states.dims();
        // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
        if batch == 0 {
            return Tensor::zeros([0, d_model], (&states.device(), states.dtype()));
        }
        let first = states.narrow(1, 0, 1).squeeze_dim::<2>(1);
        pooler.forward(first).tanh()
    }

    /// One vector of length 1 per text, the mean over its tokens, as MiniLM compares texts. Other sentence encoders pool in other ways:
    /// with the feature `tokenizers`, `sentences::SentenceEncoder` reads which.
    ///
    /// Shapes, panics and cost are those of [`Pooling::pool`].
    ///
    /// # Source
    ///
    /// "Sentence-BERT" (arXiv:1908.10084), section 3. PyTorch equivalent: `Pooling` and `Normalize` of `sentence-transformers`.
    pub fn sentence_vectors(&self, states: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        normalized(Pooling::Mean.pool(states, lengths))
    }

    fn embed(&self, input: BertInput) -> LayerInput {
        let BertInput {
            tokens,
            segments,
            lengths,
        } = input;
        let [vocab_size, _] = self.tokens.weight.dims();
        vocabulary::check("Bert", &tokens, vocab_size);
        if let Some(segments) = &segments {
            let (found, fitting) = (segments.dims(), tokens.dims());
            assert!(
                found == fitting,
                "Bert: segments {found:?} do not fit tokens {fitting:?}"
            );
            let [n_segments, _] = self.segments.weight.dims();
            if let Some(segment) = vocabulary::outside(segments, n_segments) {
                panic!("Bert: segment {segment} is not below the number of segments {n_segments}");
            }
        }
        let segments = segments.unwrap_or_else(|| Tensor::zeros([1, 1], &tokens.device()));
        let x = self.positions.forward(embed(&self.tokens, tokens));
        let x = x + embed(&self.segments, segments);
        let x = dropout(&self.dropout, self.norm.forward(x));
        let x = match &self.projection {
            Some(projection) => linear(projection, x),
            None => x,
        };
        let input = LayerInput::new(x);
        match lengths {
            Some(lengths) => input.lengths(&lengths),
            None => input,
        }
    }
}
