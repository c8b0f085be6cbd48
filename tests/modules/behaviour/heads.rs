//! Heads are the paper's: small attentions side by side, computed here one by one with plain tensor operations.

use burn::{
    nn::Linear,
    tensor::{Device, Tensor, activation::softmax},
};
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

const D_MODEL: usize = 15;

/// A projection of one head: weights `[d_model, d_head]` and bias `[d_head]`.
struct Projection {
    weight: Tensor<2>,
    bias: Tensor<1>,
}

impl Projection {
    /// The columns of a linear layer from `first` on.
    fn columns(linear: &Linear, first: usize, count: usize) -> Self {
        let bias = linear.bias.as_ref().expect("a bias by default").val();
        Self {
            weight: linear.weight.val().narrow(1, first, count),
            bias: bias.narrow(0, first, count),
        }
    }

    fn of(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.clone()) + self.bias.clone().unsqueeze()
    }
}

/// `softmax(q kᵀ / √d) v` of one head of one batch item.
fn head(x: Tensor<2>, memory: Tensor<2>, [query, key, value]: [Projection; 3]) -> Tensor<2> {
    let [_, d_head] = query.weight.dims();
    let scores = query.of(x).matmul(key.of(memory.clone()).transpose()) / (d_head as f64).sqrt();
    softmax(scores, 1).matmul(value.of(memory))
}

/// Item by item and head by head; `projections(first, count)` are those of the columns of one head.
fn by_hand(
    x: Tensor<3>,
    memory: Tensor<3>,
    n_heads: usize,
    projections: impl Fn(usize, usize) -> [Projection; 3],
    output: &Linear,
) -> Tensor<3> {
    let d_head = D_MODEL / n_heads;
    let items = x.iter_dim(0).zip(memory.iter_dim(0)).map(|(x, memory)| {
        let (x, memory) = (x.squeeze_dim(0), memory.squeeze_dim(0));
        let heads = (0..n_heads).map(|index| {
            let projections = projections(index * d_head, d_head);
            head(x.clone(), memory.clone(), projections)
        });
        Projection::columns(output, 0, D_MODEL).of(Tensor::cat(heads.collect(), 1))
    });
    Tensor::stack(items.collect(), 0)
}

/// Runs `check` with every number of heads, queries and a memory, and compares the two contexts that it gives.
fn with_heads(check: impl Fn(usize, &Device, Tensor<3>, Tensor<3>) -> [Tensor<3>; 2]) {
    for (_, device) in devices::cpu() {
        for n_heads in [1, 3, 5, 15] {
            let x = tensor([2, 7, D_MODEL], 3, &device);
            let memory = tensor([2, 11, D_MODEL], 4, &device);
            let [actual, expected] = check(n_heads, &device, x, memory).map(Tensor::into_data);
            assert_close("by hand", &actual, &expected, 1e-6);
        }
    }
}

#[test]
fn self_attention_is_its_heads_side_by_side() {
    with_heads(|n_heads, device, x, _| {
        let module = filled(SelfAttentionConfig::new(D_MODEL, n_heads).init(device), 1);
        let linear = &module.query_key_value;
        let projections = |first, count| {
            [0, 1, 2].map(|part| Projection::columns(linear, part * D_MODEL + first, count))
        };
        let expected = by_hand(x.clone(), x.clone(), n_heads, projections, &module.output);
        [module.forward(SelfAttentionInput::new(x)), expected]
    });
}

#[test]
fn cross_attention_is_its_heads_side_by_side() {
    with_heads(|n_heads, device, x, memory| {
        let module = filled(CrossAttentionConfig::new(D_MODEL, n_heads).init(device), 1);
        let projections = |first, count| {
            [
                Projection::columns(&module.query, first, count),
                Projection::columns(&module.key_value, first, count),
                Projection::columns(&module.key_value, D_MODEL + first, count),
            ]
        };
        let output = &module.output;
        let expected = by_hand(x.clone(), memory.clone(), n_heads, projections, output);
        let input = CrossAttentionInput::new(x, memory);
        [module.forward(input), expected]
    });
}

#[test]
fn multi_head_attention_is_its_heads_side_by_side() {
    with_heads(|n_heads, device, x, memory| {
        let config = MultiHeadAttentionConfig::new(D_MODEL, n_heads);
        let module = filled(config.init(device), 1);
        let projections = |first, count| {
            [&module.query, &module.key, &module.value]
                .map(|linear| Projection::columns(linear, first, count))
        };
        let output = &module.output;
        let expected = by_hand(x.clone(), memory.clone(), n_heads, projections, output);
        let input = MultiHeadAttentionInput::cross_attention(x, memory);
        [module.forward(input), expected]
    });
}
