//! What every attention module does between its projections: split into heads, attend, merge.

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use burn_attn_ops::{
    AttentionBias, AttentionMask, AttentionOptions, attention, attention_weights,
    next_dropout_seed, split_heads,
};

use crate::dropout::is_active;

/// What an attention module returns when asked for its weights.
#[derive(Clone, Debug)]
pub struct AttentionOutput {
    /// `[batch, len_q, d_model]`, the same bits as without asking for weights.
    pub context: Tensor<3>,
    /// `[batch, heads, len_q, len_kv]`: how much each query looks at each key, before dropout.
    pub weights: Tensor<4>,
}

/// The heads of an attention module: everything but its projections.
#[derive(Module, Debug)]
pub(super) struct Heads {
    n_heads: usize,
    dropout: Dropout,
}

impl Heads {
    pub(super) fn new(n_heads: usize, dropout: f64) -> Self {
        Self {
            n_heads,
            dropout: DropoutConfig::new(dropout).init(),
        }
    }

    /// `[batch, len, N · heads · d_head]` to `N` times `[batch, heads, len, d_head]`.
    pub(super) fn split<const N: usize>(&self, x: Tensor<3>) -> [Tensor<4>; N] {
        split_heads(x, [self.n_heads; N])
    }

    /// `[batch, heads, len, d_head]` to `[batch, len, heads · d_head]`.
    fn merge(x: Tensor<4>) -> Tensor<3> {
        let [batch, n_heads, len, d_head] = x.dims();
        x.swap_dims(1, 2).reshape([batch, len, n_heads * d_head])
    }

    /// Attention of the queries of all heads over their keys and values, heads merged again.
    pub(super) fn attend(
        &self,
        [query, key, value]: [Tensor<4>; 3],
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> Tensor<3> {
        let options = self.options(&query.device(), mask, bias);
        Self::merge(attention(query, key, value, options))
    }

    /// [`attend`](Self::attend), and the weights it uses, before dropout.
    pub(super) fn attend_with_weights(
        &self,
        projected: [Tensor<4>; 3],
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> (Tensor<3>, Tensor<4>) {
        let [query, key, _] = projected.clone();
        let options = AttentionOptions {
            mask: mask.clone(),
            bias: bias.clone(),
            ..AttentionOptions::default()
        };
        let weights = attention_weights(query, key, options);
        (self.attend(projected, mask, bias), weights)
    }

    /// What the caller says, and dropout in training.
    fn options(
        &self,
        device: &Device,
        mask: AttentionMask,
        bias: Option<AttentionBias>,
    ) -> AttentionOptions {
        let options = AttentionOptions {
            mask,
            bias,
            ..AttentionOptions::default()
        };
        if is_active(&self.dropout, device) {
            return options.dropout(self.dropout.prob, next_dropout_seed());
        }
        options
    }
}

/// A projection as every module here makes it.
pub(super) fn linear(
    d_input: usize,
    d_output: usize,
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
    if batch == 0 || len == 0 {
        let [_, d_output] = linear.weight.dims();
        return Tensor::zeros([batch, len, d_output], &x.device());
    }
    // As one matrix, the gradient of the weight is one product instead of one per batch item and their sum.
    let [_, d_output] = linear.weight.dims();
    let rows = x.reshape([batch * len, d_input]);
    linear.forward(rows).reshape([batch, len, d_output])
}
