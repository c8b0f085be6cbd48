//! The sum around every sublayer, with its norm before or after.

use burn::{
    module::Module,
    nn::{
        Dropout, DropoutConfig, LayerNorm, LayerNormConfig, activation::Activation,
        transformer::PositionWiseFeedForward,
    },
    tensor::{Device, Tensor},
};

use crate::dropout;

/// `x + dropout(sublayer(norm(x)))` with the norm first, else `norm(x + dropout(sublayer(x)))`.
#[derive(Module, Debug)]
pub struct Residual {
    /// The layer norm.
    pub norm: LayerNorm,
    dropout: Dropout,
    norm_first: bool,
}

impl Residual {
    pub(super) fn new(d_model: usize, dropout: f64, norm_first: bool, device: &Device) -> Self {
        Self {
            norm: LayerNormConfig::new(d_model).init(device),
            dropout: DropoutConfig::new(dropout).init(),
            norm_first,
        }
    }

    /// Runs `sublayer` inside the sum, and hands out what it returns besides its result.
    pub(super) fn forward<T>(
        &self,
        x: Tensor<3>,
        sublayer: impl FnOnce(Tensor<3>) -> (Tensor<3>, T),
    ) -> (Tensor<3>, T) {
        if self.norm_first {
            let (y, extra) = sublayer(self.norm.forward(x.clone()));
            (x + dropout(&self.dropout, y), extra)
        } else {
            let (y, extra) = sublayer(x.clone());
            (self.norm.forward(x + dropout(&self.dropout, y)), extra)
        }
    }
}

/// The feed-forward network as a sublayer, also where there is nothing to feed (see `attention::heads::apply`).
pub(super) fn feed_forward(network: &PositionWiseFeedForward, x: Tensor<3>) -> (Tensor<3>, ()) {
    if x.shape().num_elements() == 0 {
        return (x, ());
    }
    // The network's own `forward`, but for the faster dropout and the exact gradient of GELU.
    let inner = network.linear_inner.forward(x);
    let inner = match &network.activation {
        Activation::Gelu(kind) if !kind.approximate => gelu(inner),
        activation => activation.forward(inner),
    };
    let output = network
        .linear_outer
        .forward(dropout(&network.dropout, inner));
    (output, ())
}

/// `x · (1 + erf(x / √2)) / 2`.
///
/// Burn 0.22.1 computes the same forward, but on most backends its gradient is that of the tanh approximation.
fn gelu(x: Tensor<3>) -> Tensor<3> {
    let scaled = x.clone() * core::f64::consts::FRAC_1_SQRT_2;
    x * ((scaled.erf() + 1.0) * 0.5)
}
