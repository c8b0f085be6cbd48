//! Cross-attention: a decoder looks at what an encoder made of the source.

use burn::{
    config::Config,
    module::Module,
    nn::{Initializer, Linear},
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_ops::{AttentionBias, AttentionMask};

use super::heads::{AttentionOutput, Heads, apply, linear};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`CrossAttention`].
#[derive(Config, Debug)]
pub struct CrossAttentionConfig {
    /// Width of the query, the memory and the output.
    pub d_model: usize,
    /// Number of heads; each is `d_model / n_heads` wide.
    pub n_heads: usize,
    /// Probability of dropping an attention weight in training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Whether the projections add a learned bias.
    #[config(default = true)]
    pub bias: bool,
    /// How the projections start.
    #[config(
        default = "Initializer::KaimingUniform { gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false }"
    )]
    pub initializer: Initializer,
}

impl CrossAttentionConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_heads("CrossAttentionConfig", self.d_model, self.n_heads)?;
        ConfigError::check_dropout("CrossAttentionConfig", self.dropout)
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> CrossAttention {
        expect_valid(self.validate());
        let linear =
            |d_output| linear(self.d_model, d_output, self.bias, &self.initializer, device);
        CrossAttention {
            query: linear(self.d_model),
            key_value: linear(2 * self.d_model),
            output: linear(self.d_model),
            heads: Heads::new(self.n_heads, self.dropout),
        }
    }
}

/// Encoder–decoder attention: every position of the decoder asks the encoder's memory what matters to it.
///
/// ```text
/// query         = x · W_query
/// [key | value] = memory · W_key_value      one linear layer, split logically: d_head = d_model / n_heads
/// context = concat over heads of softmax(query · keyᵀ / √d_head + mask) · value
/// output  = context · W_output
/// ```
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2.3. PyTorch equivalent: `nn.MultiheadAttention` called
/// with the memory as key and value.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, CrossAttentionConfig, CrossAttentionInput};
///
/// let device = Device::default();
/// let attention = CrossAttentionConfig::new(32, 4).init(&device);
/// let decoder = Tensor::random([2, 5, 32], Distribution::Default, &device);
/// let memory = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let source_lengths = Tensor::from_data([7, 4], &device);
/// let input = CrossAttentionInput::new(decoder, memory).mask(AttentionMask::key_lengths(source_lengths));
/// let output = attention.forward_with_weights(input);
/// assert_eq!(output.context.dims(), [2, 5, 32]);
/// assert_eq!(output.weights.dims(), [2, 4, 5, 7]);
/// ```
#[derive(Module, Debug)]
pub struct CrossAttention {
    /// Queries of all heads: `[d_model, d_model]`.
    pub query: Linear,
    /// Keys and values of all heads, in this order: `[d_model, 2 · d_model]`.
    pub key_value: Linear,
    /// Mixes the heads: `[d_model, d_model]`.
    pub output: Linear,
    heads: Heads,
}

/// What [`CrossAttention`] reads.
#[derive(Clone, Debug)]
pub struct CrossAttentionInput {
    query: Tensor<3>,
    memory: Tensor<3>,
    mask: AttentionMask,
    bias: Option<AttentionBias>,
}

impl CrossAttentionInput {
    /// The decoder's state `[batch, len_q, d_model]` and the encoder's memory `[batch, len_kv, d_model]`.
    pub fn new(query: Tensor<3>, memory: Tensor<3>) -> Self {
        Self {
            query,
            memory,
            mask: AttentionMask::none(),
            bias: None,
        }
    }

    /// Which positions of the memory may be seen.
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = mask;
        self
    }

    /// Adds `bias` to the scores.
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = Some(bias);
        self
    }
}

impl CrossAttention {
    /// The context that the memory gives to every position of the query.
    ///
    /// # Shapes
    ///
    /// - query: `[batch, len_q, d_model]`
    /// - memory: `[batch, len_kv, d_model]`
    /// - output: `[batch, len_q, d_model]`
    ///
    /// # Panics
    ///
    /// When a width is not `d_model`, the batches differ or the mask does not fit.
    ///
    /// # Cost
    ///
    /// `4 · batch · (len_q + len_kv) · d_model²` operations for the projections and
    /// `4 · batch · len_q · len_kv · d_model` for the attention.
    pub fn forward(&self, input: CrossAttentionInput) -> Tensor<3> {
        let projected = self.project(input.query, input.memory);
        let context = self.heads.attend(projected, input.mask, input.bias);
        apply(&self.output, context)
    }

    /// The context and the weights of every head. The context is the same as [`forward`](Self::forward)'s.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward); the weights are `[batch, heads, len_q, len_kv]`.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: CrossAttentionInput) -> AttentionOutput {
        let projected = self.project(input.query, input.memory);
        let (context, weights) = self
            .heads
            .attend_with_weights(projected, input.mask, input.bias);
        AttentionOutput {
            context: apply(&self.output, context),
            weights,
        }
    }

    fn project(&self, query: Tensor<3>, memory: Tensor<3>) -> [Tensor<4>; 3] {
        let [d_model, _] = self.query.weight.dims();
        let [batch, _, _] = query.dims();
        assert_shape!(query, [_, _, d_model]);
        assert_shape!(memory, [batch, _, d_model]);
        let [query] = self.heads.split(apply(&self.query, query));
        let [key, value] = self.heads.split(apply(&self.key_value, memory));
        [query, key, value]
    }
}
