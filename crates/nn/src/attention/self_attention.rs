//! Self-attention: a sequence looks at itself.

use burn::{
    config::Config,
    module::Module,
    nn::{Initializer, Linear},
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_ops::{AttentionBias, AttentionMask};

use super::heads::{AttentionOutput, Heads, apply, linear};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`SelfAttention`].
#[derive(Config, Debug)]
pub struct SelfAttentionConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Number of heads; each is `d_model / n_heads` wide.
    pub n_heads: usize,
    /// Whether a position sees only itself and what came before (a decoder) or everything (an encoder).
    #[config(default = false)]
    pub causal: bool,
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

impl SelfAttentionConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_heads("SelfAttentionConfig", self.d_model, self.n_heads)?;
        ConfigError::check_dropout("SelfAttentionConfig", self.dropout)
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> SelfAttention {
        expect_valid(self.validate());
        let linear =
            |d_output| linear(self.d_model, d_output, self.bias, &self.initializer, device);
        SelfAttention {
            query_key_value: linear(3 * self.d_model),
            output: linear(self.d_model),
            heads: Heads::new(self.n_heads, self.dropout),
            causal: self.causal,
        }
    }
}

/// Self-attention: every position asks all positions of the same sequence what matters to it.
///
/// ```text
/// [query | key | value] = x · W          one linear layer, split logically: d_head = d_model / n_heads
/// context = concat over heads of softmax(query · keyᵀ / √d_head + mask) · value
/// output  = context · W_output
/// ```
///
/// One head is plain self-attention. With `causal` it is the decoder's, without the encoder's.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2. PyTorch equivalent: `nn.MultiheadAttention` called with
/// query, key and value the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{SelfAttentionConfig, SelfAttentionInput};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let context = attention.forward(SelfAttentionInput::new(x));
/// assert_eq!(context.dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// Query, key and value of all heads, in this order: `[d_model, 3 · d_model]`.
    pub query_key_value: Linear,
    /// Mixes the heads: `[d_model, d_model]`.
    pub output: Linear,
    heads: Heads,
    causal: bool,
}

/// What [`SelfAttention`] reads.
#[derive(Clone, Debug)]
pub struct SelfAttentionInput {
    x: Tensor<3>,
    mask: AttentionMask,
    bias: Option<AttentionBias>,
}

impl SelfAttentionInput {
    /// A batch of sequences, `[batch, len, d_model]`.
    pub fn new(x: Tensor<3>) -> Self {
        Self {
            x,
            mask: AttentionMask::none(),
            bias: None,
        }
    }

    /// Which positions may be seen, besides what `causal` already hides.
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

impl SelfAttention {
    /// The context of every position.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, len, d_model]`
    /// - output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When the width is not `d_model` or the mask does not fit.
    ///
    /// # Cost
    ///
    /// `8 · batch · len · d_model²` operations for the projections and `4 · batch · len² · d_model` for the attention.
    pub fn forward(&self, input: SelfAttentionInput) -> Tensor<3> {
        let (projected, mask, bias) = self.project(input);
        apply(&self.output, self.heads.attend(projected, mask, bias))
    }

    /// The context and the weights of every head. The context is the same as [`forward`](Self::forward)'s.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward); the weights are `[batch, heads, len, len]`.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: SelfAttentionInput) -> AttentionOutput {
        let (projected, mask, bias) = self.project(input);
        let (context, weights) = self.heads.attend_with_weights(projected, mask, bias);
        AttentionOutput {
            context: apply(&self.output, context),
            weights,
        }
    }

    fn project(
        &self,
        input: SelfAttentionInput,
    ) -> ([Tensor<4>; 3], AttentionMask, Option<AttentionBias>) {
        let [d_model, _] = self.query_key_value.weight.dims();
        assert_shape!(input.x, [_, _, d_model]);
        let projected = apply(&self.query_key_value, input.x);
        let mask = match self.causal {
            true => input.mask.and(AttentionMask::causal()),
            false => input.mask,
        };
        (self.heads.split(projected), mask, input.bias)
    }
}
