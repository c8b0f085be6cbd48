//! The activations of feed-forward networks.

use burn::{config::Config, tensor::Tensor};
use burn_attn_ops::{Activation, activate};

/// The activation inside a [`FeedForward`](crate::FeedForward), plain or as the gate of a gated linear unit.
///
/// Gated units have a third matrix: with two thirds of the `d_ff`, they have as many parameters as plain ones.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedForwardActivation {
    /// `max(x, 0)`, as in "Attention is all you need".
    Relu,
    /// `x · Φ(x)`, exact ("Gaussian error linear units", arXiv:1606.08415); BERT. PyTorch equivalent: `nn.GELU()`.
    Gelu,
    /// GELU's tanh approximation; GPT-2. PyTorch equivalent: `nn.GELU(approximate="tanh")`.
    GeluTanh,
    /// `x · sigmoid(1.702 · x)`, the other approximation in GELU's paper; CLIP.
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

impl FeedForwardActivation {
    /// Whether the network has a gate.
    pub fn is_gated(self) -> bool {
        self.parts().1
    }

    /// The activation of `x`, `[.., d_ff]`, of the same shape; if it is gated, of `[gate | up]`, `[.., 2 · d_ff]`, which becomes `[.., d_ff]`. For
    /// networks with something between the first linear layer and the activation.
    ///
    /// Panics, cost and source are those of [`ops::activate`](crate::ops::activate).
    pub fn forward<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        let (function, gated) = self.parts();
        let mut shape = x.dims();
        let rows = shape[..D - 1].iter().product();
        let columns = shape[D - 1];
        let (device, dtype) = (x.device(), x.dtype());
        // In a reshape, Burn takes 0 to mean the previous size.
        let is_empty = rows == 0 || columns == 0;
        let x = match is_empty {
            true => Tensor::zeros([rows, columns], (&device, dtype)),
            false => x.reshape([rows, columns]),
        };
        let y = activate(x, None, function, gated);
        shape[D - 1] = y.dims()[1];
        match is_empty {
            true => Tensor::zeros(shape, (&device, dtype)),
            false => y.reshape(shape),
        }
    }

    /// The activation itself, which for a gated unit is that of the gate; and whether there is a gate.
    pub(super) fn parts(self) -> (Activation, bool) {
        match self {
            Self::Relu => (Activation::Relu, false),
            Self::Gelu => (Activation::Gelu, false),
            Self::GeluTanh => (Activation::GeluTanh, false),
            Self::QuickGelu => (Activation::QuickGelu, false),
            Self::Silu => (Activation::Silu, false),
            Self::ReluSquared => (Activation::ReluSquared, false),
            Self::SwiGlu => (Activation::Silu, true),
            Self::GeGlu => (Activation::Gelu, true),
            Self::GeGluTanh => (Activation::GeluTanh, true),
            Self::ReGlu => (Activation::Relu, true),
            Self::ClampedSwiGlu => (Activation::ClampedQuickGelu, true),
        }
    }
}
