//! Burn's embedding layer, with gradients that do not saturate in half precision.

use burn::{
    module::Param,
    nn::Embedding,
    tensor::{Int, Tensor, module},
};

use crate::parameter::{floats, select_rows};

/// The result of `layer.forward(tokens)`. In training in half precision, the gradient of a row is accumulated in f32; burn-nn
/// accumulates in bf16 and saturates, from about 256 tokens on.
///
/// The tokens are `[batch, len]`, the output is `[batch, len, d_model]`. Tokens at or beyond `n_embedding` are not checked: Burn's CPU
/// backends panic, a GPU gives meaningless rows. In training, a table in half precision is cast to f32 first.
///
/// ```
/// use burn::{nn::EmbeddingConfig, tensor::{Device, Int, Tensor}};
///
/// let device = Device::default();
/// let layer = EmbeddingConfig::new(7, 5).init(&device);
/// let tokens = Tensor::<2, Int>::from_data([[3, 0, 6]], &device);
/// let rows = burn_attn::embed(&layer, tokens.clone());
/// rows.into_data().assert_eq(&layer.forward(tokens).into_data(), true);
/// ```
pub fn embed(layer: &Embedding, tokens: Tensor<2, Int>) -> Tensor<3> {
    rows(&layer.weight, tokens)
}

pub(crate) fn rows(weight: &Param<Tensor<2>>, tokens: Tensor<2, Int>) -> Tensor<3> {
    let [_, d_model] = weight.dims();
    let [batch, len] = tokens.dims();
    // In Burn 0.22.1 nothing can be selected with no indices on wgpu.
    if batch == 0 || len == 0 {
        let dtype = floats(weight).dtype();
        return Tensor::zeros([batch, len, d_model], (&tokens.device(), dtype));
    }
    select_rows(weight.val(), |table| module::embedding(table, tokens))
}
