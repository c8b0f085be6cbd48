//! What a feed-forward network does between its linear layers.

use burn::{
    config::Config,
    tensor::{
        Tensor,
        activation::{relu, silu},
    },
};

/// The function inside a [`FeedForward`](crate::FeedForward), plain or as the gate of a gated linear unit.
///
/// Gated units have a third matrix: at two thirds of the `d_ff` they have as many parameters as plain ones.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedForwardActivation {
    /// `max(x, 0)`, as in "Attention is all you need".
    Relu,
    /// `x · Φ(x)`, exact ("Gaussian error linear units", arXiv:1606.08415); BERT. PyTorch equivalent: `nn.GELU()`.
    Gelu,
    /// GELU's tanh approximation; GPT-2. PyTorch equivalent: `nn.GELU(approximate="tanh")`.
    GeluTanh,
    /// Gated by `x · sigmoid(x)` ("GLU variants improve transformer", arXiv:2002.05202); Llama, PaLM.
    SwiGlu,
    /// Gated by the exact GELU (the same paper).
    GeGlu,
    /// Gated by GELU's tanh approximation; T5 1.1, Gemma.
    GeGluTanh,
}

impl FeedForwardActivation {
    /// Whether the network has a gate.
    pub fn is_gated(self) -> bool {
        match self {
            Self::Relu | Self::Gelu | Self::GeluTanh => false,
            Self::SwiGlu | Self::GeGlu | Self::GeGluTanh => true,
        }
    }

    /// The function itself, without the product of a gated unit.
    pub(super) fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Relu => relu(x),
            Self::Gelu | Self::GeGlu => gelu(x),
            Self::GeluTanh | Self::GeGluTanh => gelu_tanh(x),
            Self::SwiGlu => silu(x),
        }
    }
}

/// `x · (1 + erf(x / √2)) / 2`.
///
/// Burn 0.22.1 computes the same forward, but on most backends its gradient is that of the tanh approximation.
fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let scaled = x.clone() * core::f64::consts::FRAC_1_SQRT_2;
    x * ((scaled.erf() + 1.0) * 0.5)
}

/// `x · (1 + tanh(√(2 / π) · (x + 0.044715 · x³))) / 2`, without the general power of Burn's.
fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let factor = core::f64::consts::FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2;
    let inner = (x.clone().square() * (0.044715 * factor) + factor) * x.clone();
    x * ((inner.tanh() + 1.0) * 0.5)
}
