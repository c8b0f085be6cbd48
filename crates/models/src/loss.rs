//! Cross entropy with smoothed labels that ignores padding.
//!
//! Burn's `CrossEntropyLoss` gives the same number, but builds the smoothed targets as a matrix as large as the logits and
//! records every operation for the backward pass: about twenty passes over `[tokens, vocabulary]`, the largest tensor of
//! a step. Here the gradient, `softmax(logits) - targets`, is computed outside the graph and passed to the logits directly.

use burn::tensor::activation::softmax;
use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

/// The loss of a batch.
#[derive(Clone, Debug)]
pub struct Loss {
    /// `[1]`, without a graph: the sum over all tokens that are not padding, divided by `tokens` (nats per token). In f32 if the logits
    /// are in half precision.
    pub value: Tensor<1>,
    /// `[1]`: its gradient is that of the loss; its value is meaningless.
    pub surrogate: Tensor<1>,
}

/// `-(1 - ε) log p(expected) - ε mean(log p)`, summed over the tokens and divided by `tokens`, for training.
///
/// # Shapes
///
/// - `logits`: `[batch, len, vocabulary]`, on an autodiff device
/// - `expected`: `[batch, len]`, tokens of the vocabulary; padding needs one too, 0 for instance
/// - `weights`: `[batch, len]`, 1 for a token, 0 for padding
/// - `tokens`: the sum of the weights, for the mean; of a part of a batch, the sum of those of the whole batch
/// - `smoothing`: ε, from 0 to 1
///
/// # Panics
///
/// With both shapes when `expected` or `weights` are not `[batch, len]`, when there are no tokens, or when `smoothing` is not from 0
/// to 1.
///
/// # Cost
///
/// A softmax of the logits, and about eight more passes over tensors as large, of which the gradient stays until the backward pass.
/// Logits in half precision are cast to f32 first, and only their gradient is cast back.
///
/// # Source
///
/// "Rethinking the Inception architecture for computer vision" (arXiv:1512.00567), section 7. PyTorch equivalent:
/// `F.cross_entropy(.., ignore_index=.., label_smoothing=..)`.
///
/// # Example
///
/// ```
/// # #[cfg(all(feature = "autodiff", feature = "flex"))] {
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_attn_models::loss::smoothed_cross_entropy;
///
/// let device = Device::default().autodiff();
/// let logits = Tensor::<3>::zeros([1, 2, 4], &device).require_grad();
/// let expected = Tensor::<2, Int>::from_data([[3, 0]], &device);
/// // The second token is padding.
/// let weights = Tensor::<2>::from_data([[1.0, 0.0]], &device);
/// let loss = smoothed_cross_entropy(logits.clone(), expected, weights, 1, 0.0);
/// assert!((loss.value.into_scalar::<f32>() - 4f32.ln()).abs() < 1e-6);
/// let gradient = logits.grad(&loss.surrogate.backward()).unwrap();
/// assert_eq!(gradient.to_data().try_to_vec::<f32>().unwrap()[..4], [0.25, 0.25, 0.25, -0.75]);
/// # }
/// ```
pub fn smoothed_cross_entropy(
    logits: Tensor<3>,
    expected: Tensor<2, Int>,
    weights: Tensor<2>,
    tokens: usize,
    smoothing: f64,
) -> Loss {
    let (shape, dtype) = (logits.dims(), logits.dtype());
    let flat = Flat::new(logits.clone().inner(), expected, weights, tokens, smoothing);
    Loss {
        value: flat.value(),
        surrogate: (logits * flat.gradient().cast(dtype).reshape(shape)).sum(),
    }
}

/// The loss alone, `[1]`, without smoothing, for a model without a graph.
///
/// Shapes and panics are those of [`smoothed_cross_entropy`]; `logits` are on a device without autodiff. It costs a softmax of them and two
/// more passes.
pub fn validation_loss(
    logits: Tensor<3>,
    expected: Tensor<2, Int>,
    weights: Tensor<2>,
    tokens: usize,
) -> Tensor<1> {
    Flat::new(logits, expected, weights, tokens, 0.0).value()
}

/// The type to add up many numbers of this type in. Half precision has too few digits for sums over the vocabulary and over the tokens; in f16, a
/// norm of 256 would already be infinite, the factor that limits a large one 0, and small squares too.
pub(crate) fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

/// The tokens of a batch one after the other.
struct Flat {
    /// `[rows, vocabulary]`.
    logits: Tensor<2>,
    /// The softmax of the logits.
    probabilities: Tensor<2>,
    /// `[rows, 1]`.
    expected: Tensor<2, Int>,
    /// `[rows, 1]`, divided by the tokens.
    weights: Tensor<2>,
    smoothing: f64,
}

impl Flat {
    fn new(
        logits: Tensor<3>,
        expected: Tensor<2, Int>,
        weights: Tensor<2>,
        tokens: usize,
        smoothing: f64,
    ) -> Self {
        let [batch, len, vocabulary] = logits.dims();
        let shapes = [expected.dims(), weights.dims()];
        assert!(
            shapes == [[batch, len]; 2],
            "loss: expected and weights are {:?} and {:?}, but the logits are of [{batch}, {len}] tokens",
            shapes[0],
            shapes[1]
        );
        assert!(tokens > 0, "loss: there are no tokens, only padding");
        assert!(
            (0.0..=1.0).contains(&smoothing),
            "loss: smoothing must be from 0 to 1, got {smoothing}"
        );
        let rows = batch * len;
        let computed = wide(logits.dtype());
        let logits = logits.reshape([rows, vocabulary]).cast(computed);
        let expected = expected.inner().reshape([rows, 1]);
        let weights = weights.inner().reshape([rows, 1]).cast(computed) / tokens as f64;
        Self {
            probabilities: softmax(logits.clone(), 1),
            logits,
            expected,
            weights,
            smoothing,
        }
    }

    fn value(&self) -> Tensor<1> {
        let (logits, smoothing) = (&self.logits, self.smoothing);
        // The largest probability is exp(largest logit) / sum: that gives the logarithm of the sum without another pass of
        // exponentials, and never takes the logarithm of an underflow.
        let log_sum = logits.clone().max_dim(1) - self.probabilities.clone().max_dim(1).log();
        let losses = log_sum - logits.clone().gather(1, self.expected.clone()) * (1.0 - smoothing);
        // Without smoothing, a logit of −∞ is a token that cannot be, and must not become −∞ · 0.
        let losses = match smoothing == 0.0 {
            true => losses,
            false => losses - logits.clone().mean_dim(1) * smoothing,
        };
        // Nor may one that padding expects.
        let is_padding = self.weights.clone().equal_elem(0.0);
        (losses.mask_fill(is_padding, 0.0) * self.weights.clone()).sum()
    }

    /// The gradient of the loss, `[rows, vocabulary]`.
    fn gradient(self) -> Tensor<2> {
        let [_, vocabulary] = self.logits.dims();
        let hits = self.weights.clone() * (self.smoothing - 1.0);
        let gradient = (self.probabilities - self.smoothing / vocabulary as f64) * self.weights;
        gradient.scatter(1, self.expected, hits, IndexingUpdateOp::Add)
    }
}
