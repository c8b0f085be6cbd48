//! One table for embedding tokens and for computing logits.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Int, Tensor, assert_shape},
};
use burn_attn_derive::Config;

use crate::{
    embed,
    error::{ConfigError, expect_valid},
    parameter::floats,
};

/// Configuration of [`TiedEmbedding`].
#[derive(Config, Debug)]
pub struct TiedEmbeddingConfig {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Width of an embedded token.
    pub d_model: usize,
    /// Whether embedded tokens are multiplied by `√d_model`, as in the paper and Gemma, or not, as in GPT-2. An `input_factor` replaces this
    /// factor.
    #[config(default = true)]
    pub scaled: bool,
    /// Factor on embedded tokens, if it is neither `√d_model` nor 1, as in Granite. Default: according to `scaled`.
    pub input_factor: Option<f64>,
    /// Factor on states before they become logits: `d_model^−0.5` in T5. Default: 1.
    pub output_factor: Option<f64>,
    /// Whether a learned bias, initially zero, is added to the logits, as in BERT's masked language model and in Marian.
    #[config(default = false, missing = false)]
    pub bias: bool,
    /// How the table is initialised. Default: normal with a variance of `1 / d_model`, which gives scaled tokens and the
    /// logits of normalised states a variance of about 1.
    pub initializer: Option<Initializer>,
}

impl TiedEmbeddingConfig {
    /// Whether a module can be built. The error names a size that is zero, or a factor that is not positive.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TiedEmbeddingConfig";
        let sizes = [("vocab_size", self.vocab_size), ("d_model", self.d_model)];
        ConfigError::check_positive(NAME, &sizes)?;
        let factors = [
            ("input_factor", self.input_factor),
            ("output_factor", self.output_factor),
        ];
        ConfigError::check_finite_positive(NAME, &factors)
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TiedEmbedding {
        expect_valid(self.validate());
        let default = Initializer::Normal {
            mean: 0.0,
            std: (self.d_model as f64).powf(-0.5),
        };
        let initializer = self.initializer.as_ref().unwrap_or(&default);
        let scale = match self.scaled {
            true => (self.d_model as f64).sqrt(),
            false => 1.0,
        };
        TiedEmbedding {
            weight: initializer.init([self.vocab_size, self.d_model], device),
            bias: self
                .bias
                .then(|| Initializer::Zeros.init([self.vocab_size], device)),
            input_factor: self.input_factor.unwrap_or(scale),
            output_factor: self.output_factor.unwrap_or(1.0),
        }
    }
}

/// A table that embeds tokens, and whose transpose is the output projection, so that it learns from both uses.
///
/// ```text
/// x      = weight[token] · √d_model      the factor only if `scaled`, or `input_factor`
/// logits = states · weightᵀ              optionally with `output_factor` and `bias`
/// ```
///
/// # Source
///
/// "Using the output embedding to improve language models" (arXiv:1608.05859); the factor: "Attention is all you need"
/// (arXiv:1706.03762), section 3.4. PyTorch equivalent: an `nn.Embedding` and an `nn.Linear(bias=False)` with
/// `linear.weight = embedding.weight`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::TiedEmbeddingConfig;
///
/// let device = Device::default();
/// let embedding = TiedEmbeddingConfig::new(100, 32).init(&device);
/// let x = embedding.forward(Tensor::from_data([[5, 6, 7], [8, 9, 0]], &device));
/// assert_eq!(x.dims(), [2, 3, 32]);
/// assert_eq!(embedding.logits(x).dims(), [2, 3, 100]);
/// ```
#[derive(Module, Debug)]
pub struct TiedEmbedding {
    /// One row per token: `[vocab_size, d_model]`.
    pub weight: Param<Tensor<2>>,
    /// The bias on the logits, if there is one: `[vocab_size]`.
    pub bias: Option<Param<Tensor<1>>>,
    input_factor: f64,
    output_factor: f64,
}

impl TiedEmbedding {
    /// The embedded tokens, `[batch, len, d_model]`, of `tokens`, `[batch, len]`. Those at or beyond `vocab_size` are not checked: Burn's
    /// CPU backends panic, a GPU gives meaningless rows. In training, a table in half precision is cast to f32, where its gradient is
    /// accumulated.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        times(embed::rows(&self.weight, tokens), self.input_factor)
    }

    /// The logits of every token of the vocabulary, `[.., vocab_size]`, for each state, `[.., d_model]`. Panics when the last axis is not
    /// `d_model`. It takes `2 · states · d_model · vocab_size` operations.
    pub fn logits<const D: usize>(&self, states: Tensor<D>) -> Tensor<D> {
        let [vocab_size, d_model] = self.weight.dims();
        assert_shape!(states, [.., d_model]);
        let mut shape = states.dims();
        shape[D - 1] = vocab_size;
        let count = states.shape().num_elements() / d_model;
        // Empty products: see `linear::apply`.
        if count == 0 {
            return Tensor::zeros(shape, (&states.device(), states.dtype()));
        }
        // As one matrix, the gradient of the table is one product instead of one per batch item and their sum.
        let rows: Tensor<2> = times(states, self.output_factor).reshape([count, d_model]);
        let logits = rows.matmul(self.weight.val().transpose());
        match &self.bias {
            Some(bias) => {
                let bias = floats(bias).cast(logits.dtype());
                logits + bias.unsqueeze()
            }
            None => logits,
        }
        .reshape(shape)
    }
}

fn times<const D: usize>(x: Tensor<D>, factor: f64) -> Tensor<D> {
    if factor == 1.0 { x } else { x * factor }
}
