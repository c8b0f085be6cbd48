//! The tensors among the options of a case, and their gradients.

use burn::tensor::{Gradients, Tensor};
use burn_attn::{AttentionBias, RelativeBuckets};

/// The tensors among the options that have a gradient.
pub struct OptionTensors {
    pub bias: Option<Tensor<4>>,
    pub alibi: Option<Tensor<1>>,
    pub relative: Option<(Tensor<2>, RelativeBuckets)>,
    pub sinks: Option<Tensor<1>>,
}

impl OptionTensors {
    /// The sum of all biases.
    pub fn attention_bias(&self) -> AttentionBias {
        let relative = self.relative.clone();
        [
            self.bias.clone().map(AttentionBias::dense),
            self.alibi.clone().map(AttentionBias::alibi),
            relative.map(|(table, buckets)| AttentionBias::relative(table, buckets)),
        ]
        .into_iter()
        .flatten()
        .fold(AttentionBias::none(), AttentionBias::and)
    }

    /// The same, as leaves of the graph.
    pub fn tracked(self) -> Self {
        Self {
            bias: self.bias.map(Tensor::require_grad),
            alibi: self.alibi.map(Tensor::require_grad),
            relative: self
                .relative
                .map(|(table, buckets)| (table.require_grad(), buckets)),
            sinks: self.sinks.map(Tensor::require_grad),
        }
    }

    /// The gradient of each, by the names of the oracle's.
    pub fn gradients(&self, gradients: &Gradients) -> Vec<(&'static str, Vec<f64>)> {
        let table = self.relative.as_ref().map(|(table, _)| table);
        let sinks = self.sinks.as_ref();
        [
            (
                "bias gradient",
                self.bias.as_ref().map(|x| gradient(x, gradients)),
            ),
            (
                "slopes gradient",
                self.alibi.as_ref().map(|x| gradient(x, gradients)),
            ),
            ("table gradient", table.map(|x| gradient(x, gradients))),
            ("sinks gradient", sinks.map(|x| gradient(x, gradients))),
        ]
        .into_iter()
        .filter_map(|(name, gradient)| Some((name, gradient?)))
        .collect()
    }
}

/// The gradient of one tracked tensor, which an optimizer can subtract: it has the type of the tensor.
pub fn gradient<const D: usize>(tensor: &Tensor<D>, gradients: &Gradients) -> Vec<f64> {
    let gradient = tensor
        .grad(gradients)
        .expect("every tracked input gets a gradient");
    assert_eq!(gradient.dtype(), tensor.dtype());
    gradient.into_data().iter().collect()
}
