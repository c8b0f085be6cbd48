//! How much of each input is in each output of an encoder, through all layers.

use burn::tensor::{DType, Tensor};

/// How much of the input at each token is in the output at each token, if attention and residuals were all that a model did: the product of
/// `(W + I) / 2` over the layers, the last one on the left, where `W` is the mean of the heads' attention weights.
///
/// # Shapes
///
/// - each of `layers`: `[batch, heads, len, len]`, as [`Vit::forward_with_weights`](crate::vit::Vit::forward_with_weights) returns them
/// - returns `[batch, len, len]`: a row for each output, which sums to 1
///
/// # Panics
///
/// When there is no layer, or one is not square.
///
/// # Cost
///
/// A product of matrices `len` × `len` for each layer and member of the batch.
///
/// # Source
///
/// "Quantifying attention flow in transformers" (arXiv:2005.00928), section 3.
pub fn attention_rollout(layers: &[Tensor<4>]) -> Tensor<3> {
    let through = |weights: &Tensor<4>| {
        let [_, _, len, keys] = weights.dims();
        assert!(
            len == keys,
            "attention_rollout: weights of {len} queries and {keys} keys are not those of self-attention"
        );
        let identity = Tensor::<2>::eye(len, &weights.device()).cast(DType::F32);
        let weights = weights.clone().cast(DType::F32);
        (weights.mean_dim(1).squeeze_dim::<3>(1) + identity.unsqueeze::<3>()) / 2.0
    };
    let layers = layers.iter().map(through);
    let product = layers.reduce(|below, above| above.matmul(below));
    product.expect("attention_rollout: there are no layers")
}
