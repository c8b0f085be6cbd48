//! What a feed-forward network does between its linear layers.

use burn::{
    config::Config,
    tensor::{
        Tensor,
        activation::{relu, sigmoid, silu},
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
    /// `x · sigmoid(1.702 · x)`, the other approximation of GELU's paper; CLIP.
    QuickGelu,
    /// `x · sigmoid(x)` ("Searching for activation functions", arXiv:1710.05941); Marian. PyTorch equivalent: `nn.SiLU()`.
    Silu,
    /// `max(x, 0)²` ("Primer", arXiv:2109.08668).
    ReluSquared,
    /// Gated by `x · sigmoid(x)` ("GLU variants improve transformer", arXiv:2002.05202); Llama, PaLM.
    SwiGlu,
    /// Gated by the exact GELU (the same paper).
    GeGlu,
    /// Gated by GELU's tanh approximation; T5 1.1, Gemma.
    GeGluTanh,
    /// Gated by `max(x, 0)` (the same paper as `SwiGlu`).
    ReGlu,
    /// `(up + 1) · gate · sigmoid(1.702 · gate)`, the gate at most 7 and the other projection, `up`, between −7 and 7;
    /// gpt-oss (arXiv:2508.10925).
    ClampedSwiGlu,
}

/// Where [`FeedForwardActivation::ClampedSwiGlu`] ends.
const CLAMPED_SWIGLU_LIMIT: f64 = 7.0;

impl FeedForwardActivation {
    /// Whether the network has a gate.
    pub fn is_gated(self) -> bool {
        match self {
            Self::Relu
            | Self::Gelu
            | Self::GeluTanh
            | Self::QuickGelu
            | Self::Silu
            | Self::ReluSquared => false,
            Self::SwiGlu | Self::GeGlu | Self::GeGluTanh | Self::ReGlu | Self::ClampedSwiGlu => {
                true
            }
        }
    }

    /// The function itself; of a gated unit, what it makes of the gate.
    pub(super) fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Relu | Self::ReGlu => relu(x),
            Self::Gelu | Self::GeGlu => gelu(x),
            Self::GeluTanh | Self::GeGluTanh => gelu_tanh(x),
            Self::QuickGelu => quick_gelu(x),
            Self::Silu | Self::SwiGlu => silu(x),
            Self::ReluSquared => relu(x).square(),
            Self::ClampedSwiGlu => quick_gelu(x.clamp_max(CLAMPED_SWIGLU_LIMIT)),
        }
    }

    /// What a gated unit makes of its two projections.
    pub(super) fn apply_gate<const D: usize>(self, gate: Tensor<D>, up: Tensor<D>) -> Tensor<D> {
        let up = match self {
            Self::ClampedSwiGlu => up.clamp(-CLAMPED_SWIGLU_LIMIT, CLAMPED_SWIGLU_LIMIT) + 1.0,
            _ => up,
        };
        self.apply(gate) * up
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

/// `x · sigmoid(1.702 · x)`.
fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    sigmoid(x.clone() * 1.702) * x
}
