//! Which projections have a bias, and projections made of others.

use burn::{config::Config, module::Param, nn::Linear, tensor::Tensor};

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
