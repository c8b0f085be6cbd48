//! Which projections have a bias; fusing and separating projections.

use burn::{
    module::{Module, Param},
    nn::Linear,
    tensor::Tensor,
};
use burn_attn_derive::Config;

use crate::{error::ConfigError, parameter::floats};

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
    /// The query projection.
    #[config(default = true)]
    pub query: bool,
    /// The key projection.
    #[config(default = true)]
    pub key: bool,
    /// The value projection.
    #[config(default = true)]
    pub value: bool,
    /// The output projection, which mixes the heads.
    #[config(default = true)]
    pub output: bool,
}

impl ProjectionBias {
    /// Biases on all four projections.
    pub fn all() -> Self {
        true.into()
    }

    /// No biases.
    pub fn none() -> Self {
        false.into()
    }

    /// Whether query, key and value, which share one linear layer, have a bias.
    pub(crate) fn of_one_input(&self, config: &'static str) -> Result<bool, ConfigError> {
        let Self {
            query, key, value, ..
        } = *self;
        shared(config, &[("query", query), ("key", key), ("value", value)])
    }

    /// Whether key and value, which share one linear layer, have a bias.
    pub(super) fn of_memory(&self, config: &'static str) -> Result<bool, ConfigError> {
        shared(config, &[("key", self.key), ("value", self.value)])
    }
}

/// Whether projections that share one linear layer have a bias. It is an error if one of them has a bias and another has none.
fn shared(config: &'static str, parts: &[(&str, bool)]) -> Result<bool, ConfigError> {
    let (_, first) = parts[0];
    let agree = parts.iter().all(|&(_, bias)| bias == first);
    ConfigError::check(config, agree, || {
        let named = parts.iter().map(|(name, bias)| format!("{name} {bias}"));
        format!(
            "projections that share one linear layer must all have a bias or all have none, got {}",
            named.collect::<Vec<_>>().join(", ")
        )
    })?;
    Ok(first)
}

/// Biases on all four projections, or on none.
impl From<bool> for ProjectionBias {
    fn from(bias: bool) -> Self {
        Self {
            query: bias,
            key: bias,
            value: bias,
            output: bias,
        }
    }
}

/// Several layers of the same input fused into one, with their outputs side by side. A missing bias becomes zeros if another
/// layer has one. Panics when some of the weights are frozen and others are not, or some of the biases.
pub(super) fn fuse<const N: usize>(layers: [(&str, Linear); N]) -> Linear {
    let weights = layers.each_ref().map(|(_, layer)| floats(&layer.weight));
    let place = (&weights[0].device(), weights[0].dtype());
    let biases = layers.each_ref().map(|(_, layer)| match &layer.bias {
        Some(bias) => floats(bias),
        None => Tensor::zeros([layer.weight.dims()[1]], place),
    });
    let layers = layers.iter();
    let of_weights = (layers.clone()).map(|(name, layer)| (*name, learns(&layer.weight)));
    let weights_learn = learn_alike("weights", of_weights.collect());
    let of_biases = layers.filter_map(|(name, layer)| Some((*name, learns(layer.bias.as_ref()?))));
    let of_biases: Vec<_> = of_biases.collect();
    let weight = parameter(Tensor::cat(weights.into(), 1), weights_learn);
    let bias = (!of_biases.is_empty()).then(|| {
        let learn = learn_alike("biases", of_biases);
        parameter(Tensor::cat(biases.into(), 0), learn)
    });
    Linear { weight, bias }
}

/// The reverse of [`fuse`]: layers of these widths, each frozen if the whole is.
pub(super) fn separate<const N: usize>(layer: Linear, widths: [usize; N]) -> [Linear; N] {
    let weight = floats(&layer.weight);
    let bias = layer.bias.as_ref().map(|bias| (floats(bias), learns(bias)));
    let mut first = 0;
    widths.map(|width| {
        let bias = bias
            .clone()
            .map(|(bias, learns)| parameter(bias.narrow(0, first, width), learns));
        let weight = parameter(
            weight.clone().narrow(1, first, width),
            learns(&layer.weight),
        );
        first += width;
        Linear { weight, bias }
    })
}

/// A new parameter with these numbers, detached from their origin.
fn parameter<const D: usize>(numbers: Tensor<D>, learns: bool) -> Param<Tensor<D>> {
    Param::from_tensor(numbers.detach()).set_require_grad(learns)
}

/// Whether training changes the parameter made of these, which all learn or are all frozen; otherwise panics.
fn learn_alike(what: &str, parts: Vec<(&str, bool)>) -> bool {
    let frozen = parts.iter().filter(|(_, learns)| !learns);
    let frozen: Vec<&str> = frozen.map(|&(name, _)| name).collect();
    let names: Vec<&str> = parts.iter().map(|&(name, _)| name).collect();
    assert!(
        frozen.is_empty() || frozen == names,
        "MultiHeadAttention: the {what} of {names:?} become one parameter, but only those of {frozen:?} are frozen; freeze \
         or unfreeze them together first"
    );
    frozen.is_empty()
}

/// Whether training changes a parameter.
///
/// Outside autodiff, Burn reveals this only after `train`, so a stand-in for the parameter is asked.
fn learns<const D: usize>(parameter: &Param<Tensor<D>>) -> bool {
    if !cfg!(feature = "autodiff") {
        return true;
    }
    let device = parameter.lazy_device().without_autodiff();
    let number = parameter.clone().map(|_| Tensor::zeros([1; D], &device));
    number.train().is_require_grad()
}
