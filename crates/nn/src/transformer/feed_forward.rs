//! The feed-forward network, which treats every position separately.

use burn::{
    module::{Module, Param},
    nn::{Dropout, DropoutConfig, Initializer, Linear},
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_derive::Config;
use burn_attn_ops as ops;

use super::FeedForwardActivation;
use crate::{
    dropout,
    error::{ConfigError, expect_valid},
    linear::{apply_to_rows, kaiming_uniform, side_by_side},
};

/// Configuration of [`FeedForward`].
#[derive(Config, Debug)]
pub struct FeedForwardConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Width between the linear layers.
    pub d_ff: usize,
    /// The activation between the linear layers, with or without a gate.
    #[config(default = "FeedForwardActivation::Gelu")]
    pub activation: FeedForwardActivation,
    /// Probability of dropping an activation between the linear layers in training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Whether the linear layers add a learned bias.
    #[config(default = true)]
    pub bias: bool,
    /// How the linear layers are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

impl FeedForwardConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "FeedForwardConfig";
        ConfigError::check_positive(NAME, &[("d_model", self.d_model), ("d_ff", self.d_ff)])?;
        ConfigError::check_dropout(NAME, self.dropout)
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> FeedForward {
        expect_valid(self.validate());
        let parts = if self.activation.is_gated() { 2 } else { 1 };
        let linear = |d_input, widths: &[usize]| {
            side_by_side(d_input, widths, self.bias, &self.initializer, device)
        };
        FeedForward {
            linear_inner: linear(self.d_model, &vec![self.d_ff; parts]),
            linear_outer: linear(self.d_ff, &[self.d_model]),
            dropout: DropoutConfig::new(self.dropout).init(),
            activation: self.activation,
        }
    }
}

/// Two linear layers with an activation between them, applied to every position separately.
///
/// ```text
/// plain: dropout(activation(x · W_inner)) · W_outer
/// gated: dropout(activation(x · W_gate) ⊙ (x · W_up)) · W_outer      W_inner = [W_gate | W_up]: one product
/// ```
///
/// [`ClampedSwiGlu`](FeedForwardActivation::ClampedSwiGlu) also bounds `x · W_up` and adds 1 to it.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.3; gated: "GLU variants improve transformer"
/// (arXiv:2002.05202), equation 6. PyTorch equivalent: `linear1`, `activation`, `dropout` and `linear2` of an
/// `nn.TransformerEncoderLayer`; Llama's `gate_proj`, `up_proj` and `down_proj`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{FeedForwardActivation, FeedForwardConfig};
///
/// let device = Device::default();
/// let network = FeedForwardConfig::new(32, 64)
///     .with_activation(FeedForwardActivation::SwiGlu)
///     .with_bias(false)
///     .init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(network.forward(x).dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct FeedForward {
    /// `[d_model, d_ff]`; with a gate `[d_model, 2 · d_ff]`, the columns of the gate first.
    pub linear_inner: Linear,
    /// `[d_ff, d_model]`
    pub linear_outer: Linear,
    dropout: Dropout,
    #[module(skip)]
    activation: FeedForwardActivation,
}

impl FeedForward {
    /// The output of the network for every position, `[.., d_model]`. Panics when the last axis is not `d_model`. It takes
    /// `4 · positions · d_model · d_ff` operations, with a gate 6 instead of 4.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let [d_model, _] = self.linear_inner.weight.dims();
        assert_shape!(x, [.., d_model]);
        let shape = x.shape();
        // Empty products: see `linear::apply`.
        if shape.num_elements() == 0 {
            return x;
        }
        // As one matrix, the gradient of a weight is one product instead of one per batch item and their sum.
        let rows: Tensor<2> = x.reshape([shape.num_elements() / d_model, d_model]);
        let Linear { weight, bias } = &self.linear_inner;
        let bias = bias.as_ref().map(Param::val);
        let (function, gated) = self.activation.parts();
        let inner = ops::activated_linear(rows, weight.val(), bias, function, gated);
        let inner = dropout(&self.dropout, inner);
        apply_to_rows(&self.linear_outer, inner).reshape(shape)
    }
}
