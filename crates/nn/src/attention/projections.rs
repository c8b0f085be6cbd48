//! The linear layers before and after the heads.

use burn::{
    module::Param,
    nn::{Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;

use burn_attn_ops as ops;

use crate::error::ConfigError;

/// Which projections add a learned bias.
///
/// ```
/// use burn_attn::ProjectionBias;
///
/// let llama = ProjectionBias::none();
/// let qwen2 = ProjectionBias::all().with_output(false);
/// assert!(qwen2.query && !qwen2.output && !llama.query);
/// ```
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub struct ProjectionBias {
    /// The queries'.
    #[config(default = true)]
    pub query: bool,
    /// The keys'.
    #[config(default = true)]
    pub key: bool,
    /// The values'.
    #[config(default = true)]
    pub value: bool,
    /// The one that mixes the heads.
    #[config(default = true)]
    pub output: bool,
}

impl ProjectionBias {
    /// All four.
    pub fn all() -> Self {
        Self::new()
    }

    /// None.
    pub fn none() -> Self {
        Self {
            query: false,
            key: false,
            value: false,
            output: false,
        }
    }

    /// The bias of projections that are one linear layer.
    ///
    /// # Errors
    ///
    /// When one of them has a bias and another has none.
    pub(crate) fn shared(
        config: &'static str,
        parts: &[(&str, bool)],
    ) -> Result<bool, ConfigError> {
        let first = parts[0].1;
        if parts.iter().all(|&(_, bias)| bias == first) {
            return Ok(first);
        }
        let named: Vec<String> = parts
            .iter()
            .map(|(name, bias)| format!("{name} {bias}"))
            .collect();
        let reason = format!(
            "projections that are one linear layer all have a bias or none has, got {}",
            named.join(", ")
        );
        Err(ConfigError::Invalid { config, reason })
    }
}

/// A projection as every module here makes it.
pub(super) fn linear(
    [d_input, d_output]: [usize; 2],
    bias: bool,
    initializer: &Initializer,
    device: &Device,
) -> Linear {
    LinearConfig::new(d_input, d_output)
        .with_bias(bias)
        .with_initializer(initializer.clone())
        .init(device)
}

/// `linear` of `x`, also where there is nothing to project.
///
/// In Burn 0.22.1 a product with an empty batch reads out of bounds on flex, one with an empty length divides by zero on
/// ndarray.
pub(super) fn apply(linear: &Linear, x: Tensor<3>) -> Tensor<3> {
    let [batch, len, d_input] = x.dims();
    let [_, d_output] = linear.weight.dims();
    if batch == 0 || len == 0 {
        return Tensor::zeros([batch, len, d_output], (&x.device(), x.dtype()));
    }
    // As one matrix, the gradient of the weight is one product instead of one per batch item and their sum.
    let rows = x.reshape([batch * len, d_input]);
    apply_to_rows(linear, rows).reshape([batch, len, d_output])
}

/// `linear` of some rows, fast for the single rows of decoding too.
pub(crate) fn apply_to_rows(linear: &Linear, rows: Tensor<2>) -> Tensor<2> {
    let bias = linear.bias.as_ref().map(Param::val);
    ops::linear(rows, linear.weight.val(), bias)
}

/// Several layers of the same input as one, whose outputs lie side by side; a missing bias is zeros where another has one.
pub(super) fn fuse(layers: Vec<Linear>) -> Linear {
    let any_bias = layers.iter().any(|layer| layer.bias.is_some());
    let biases = layers.iter().map(|layer| match &layer.bias {
        Some(bias) => bias.val(),
        None => {
            let [_, d_output] = layer.weight.dims();
            Tensor::zeros([d_output], (&layer.weight.device(), layer.weight.dtype()))
        }
    });
    let bias = any_bias.then(|| parameter(Tensor::cat(biases.collect(), 0)));
    let weights = layers.iter().map(|layer| layer.weight.val()).collect();
    let weight = parameter(Tensor::cat(weights, 1));
    Linear { weight, bias }
}

/// The reverse of [`fuse`]: layers of these widths.
pub(super) fn separate<const N: usize>(layer: Linear, widths: [usize; N]) -> [Linear; N] {
    let mut first = 0;
    widths.map(|width| {
        let weight = layer.weight.val().narrow(1, first, width);
        let bias = layer.bias.as_ref().map(|bias| {
            let bias = bias.val().narrow(0, first, width);
            parameter(bias)
        });
        first += width;
        Linear {
            weight: parameter(weight),
            bias,
        }
    })
}

/// A parameter with these numbers, wherever they come from.
fn parameter<const D: usize>(numbers: Tensor<D>) -> Param<Tensor<D>> {
    Param::from_tensor(numbers.detach())
}
