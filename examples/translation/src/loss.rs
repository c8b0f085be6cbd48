//! Cross entropy with smoothed labels that ignores padding.
//!
//! Burn's `CrossEntropyLoss` gives the same number, but builds the smoothed targets as a matrix as large as the logits and
//! records every operation for the backward pass: about twenty passes over `[tokens, vocabulary]`, by far the largest tensor of
//! a step. The gradient of this loss has a closed form, `softmax(logits) - targets`, so it is computed
//! outside the graph and passed to the logits directly.

use burn::tensor::activation::softmax;
use burn::tensor::{IndexingUpdateOp, Int, Tensor};

/// The loss of a batch.
pub struct Loss {
    /// `[1]`, without a graph: the mean over all tokens that are not padding.
    pub value: Tensor<1>,
    /// `[1]`: its gradient is that of the loss; its value is meaningless.
    pub surrogate: Tensor<1>,
}

/// `-(1 - ε) log p(expected) - ε mean(log p)`, averaged over the tokens.
///
/// # Shapes
/// `logits [batch, len, vocabulary]`, `expected [batch, len]`, `weights [batch, len]`: 1 for a token, 0 for padding.
/// `tokens` is the sum of the weights.
///
/// # Source
/// Szegedy et al., 2016, section 7.
pub fn smoothed_cross_entropy(
    logits: Tensor<3>,
    expected: Tensor<2, Int>,
    weights: Tensor<2>,
    tokens: usize,
    smoothing: f64,
) -> Loss {
    let (value, gradient) =
        value_and_gradient(logits.clone().inner(), expected, weights, tokens, smoothing);
    Loss {
        value,
        surrogate: (logits * gradient).sum(),
    }
}

/// Only the value of the loss, for a model without a graph.
pub fn validation_loss(
    logits: Tensor<3>,
    expected: Tensor<2, Int>,
    weights: Tensor<2>,
    tokens: usize,
) -> Tensor<1> {
    value_and_gradient(logits, expected, weights, tokens, 0.0).0
}

fn value_and_gradient(
    logits: Tensor<3>,
    expected: Tensor<2, Int>,
    weights: Tensor<2>,
    tokens: usize,
    smoothing: f64,
) -> (Tensor<1>, Tensor<3>) {
    let [batch, len, vocabulary] = logits.dims();
    let rows = batch * len;
    let logits = logits.reshape([rows, vocabulary]);
    let expected = expected.inner().reshape([rows, 1]);
    let weights = weights.inner().reshape([rows, 1]) / tokens as f64;

    let probabilities = softmax(logits.clone(), 1);
    // The largest probability is exp(largest logit) / sum: that gives the logarithm of the sum without another pass of
    // exponentials, and never takes the logarithm of an underflow.
    let log_sum = logits.clone().max_dim(1) - probabilities.clone().max_dim(1).log();
    let losses = log_sum
        - logits.clone().gather(1, expected.clone()) * (1.0 - smoothing)
        - logits.mean_dim(1) * smoothing;
    let value = (losses * weights.clone()).sum();

    let hits = weights.clone() * (smoothing - 1.0);
    let gradient = ((probabilities - smoothing / vocabulary as f64) * weights).scatter(
        1,
        expected,
        hits,
        IndexingUpdateOp::Add,
    );
    (value, gradient.reshape([batch, len, vocabulary]))
}

#[cfg(test)]
mod tests {
    use burn::nn::loss::CrossEntropyLossConfig;
    use burn::tensor::{Device, TensorData, Tolerance};

    use super::*;

    /// Logits from a small formula, and targets of which the last is padding.
    fn case(device: &Device) -> (Tensor<3>, Tensor<2, Int>, Tensor<2>) {
        let logits: Vec<f32> = (0..2 * 3 * 7)
            .map(|i| ((i * 37 % 23) as f32 - 11.0) * 0.7)
            .collect();
        (
            Tensor::from_data(TensorData::new(logits, [2, 3, 7]), device),
            Tensor::from_data(TensorData::from([[3i64, 6, 2], [1, 2, 0]]), device),
            Tensor::from_data(TensorData::from([[1f32, 1., 1.], [1., 1., 0.]]), device),
        )
    }

    #[test]
    fn value_and_gradient_are_those_of_burn() {
        let device = Device::default().autodiff();
        let (logits, expected, weights) = case(&device);
        let logits = logits.require_grad();
        let loss = smoothed_cross_entropy(logits.clone(), expected.clone(), weights, 5, 0.1);
        let gradient = logits.grad(&loss.surrogate.backward()).unwrap();

        let burn = CrossEntropyLossConfig::new()
            .with_pad_tokens(Some(vec![0]))
            .with_smoothing(Some(0.1))
            .init(&device)
            .forward(logits.clone().reshape([6, 7]), expected.reshape([6]));
        let expected_gradient = logits.grad(&burn.backward()).unwrap();
        loss.value
            .into_data()
            .assert_approx_eq::<f32>(&burn.into_data(), Tolerance::default());
        gradient
            .into_data()
            .assert_approx_eq::<f32>(&expected_gradient.into_data(), Tolerance::default());
    }

    #[test]
    fn a_hopeless_prediction_has_a_finite_loss() {
        let device = Device::default();
        let logits = Tensor::<3>::from_data(TensorData::from([[[500f32, -500.0]]]), &device);
        let expected = Tensor::<2, Int>::from_data(TensorData::from([[1i64]]), &device);
        let loss = validation_loss(logits, expected, Tensor::ones([1, 1], &device), 1);
        assert_eq!(loss.into_scalar::<f32>(), 1000.0);
    }
}
