//! The attention modules, the feed-forward network and the linear layer below them.

use burn::tensor::{Tensor, quantization::QuantScheme};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, CrossAttentionConfig, CrossAttentionInput,
    FeedForwardActivation, FeedForwardConfig, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    RelativeBuckets, SelfAttentionConfig, SelfAttentionInput, ops,
};
use burn_attn_tests::{
    compare::assert_close,
    numbers::{filled, tensor},
    sentence,
};

use super::{BLOCK, D_FF, D_MODEL, HEADS, TOLERANCE, check, devices, heads, packed, schemes};

#[test]
fn self_attention_in_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        for (name, heads) in heads() {
            let config = SelfAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads)
                .with_causal(true)
                .with_dropout(0.0);
            let module = filled(config.init(&device), 3);
            let input = || SelfAttentionInput::new(x.clone());
            let what = format!("{backend}, {name}");
            check(&what, &module, |module| module.forward(input()));
            check(&what, &module, |module| {
                module.forward_with_weights(input()).weights
            });
        }
    }
}

#[test]
fn cross_attention_in_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let memory: Tensor<3> = tensor([2, 5, 33], 2, &device);
        for (name, heads) in heads() {
            let config = CrossAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads)
                .with_d_memory(33)
                .with_dropout(0.0);
            let module = filled(config.init(&device), 3);
            let what = format!("{backend}, {name}");
            check(&what, &module, |module| {
                module.forward(CrossAttentionInput::new(x.clone(), memory.clone()))
            });
            check(&what, &module, |module| {
                let projected = module.project_memory(memory.clone());
                module.forward(CrossAttentionInput::new(x.clone(), projected))
            });
        }
    }
}

#[test]
fn multi_head_attention_in_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let key: Tensor<3> = tensor([2, 5, 33], 2, &device);
        let value: Tensor<3> = tensor([2, 5, 21], 4, &device);
        for (name, heads) in heads() {
            let config = MultiHeadAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads)
                .with_d_key_in(33)
                .with_d_value_in(21)
                .with_dropout(0.0);
            let module = filled(config.init(&device), 3);
            check(&format!("{backend}, {name}"), &module, |module| {
                let input = MultiHeadAttentionInput::new(x.clone(), key.clone(), value.clone());
                module.forward(input.mask(AttentionMask::causal()))
            });
        }
    }
}

#[test]
fn a_feed_forward_network_in_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        for activation in [FeedForwardActivation::Relu, FeedForwardActivation::SwiGlu] {
            let config = FeedForwardConfig::new(D_MODEL, D_FF)
                .with_activation(activation)
                .with_dropout(0.0);
            let module = filled(config.init(&device), 3);
            check(&format!("{backend}, {activation:?}"), &module, |module| {
                module.forward(x.clone())
            });
        }
    }
}

#[test]
fn a_conversion_makes_floats_of_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let memory: Tensor<3> = tensor([2, 5, D_MODEL], 2, &device);
        let config = MultiHeadAttentionConfig::new(D_MODEL, HEADS)
            .with_n_kv_heads(3)
            .with_dropout(0.0);
        let separate = filled(config.init(&device), 3);
        let of_one = || MultiHeadAttentionInput::self_attention(x.clone());
        let of_two = || MultiHeadAttentionInput::cross_attention(x.clone(), memory.clone());
        for (name, scheme) in schemes() {
            let same = |what: &str, actual: Tensor<3>, expected: Tensor<3>| {
                let what = format!("{backend}, {name}, {what}");
                assert_close(&what, &actual.into_data(), &expected.into_data(), TOLERANCE);
            };
            let module = packed(separate.clone(), scheme);
            let fused = module.clone().into_self_attention();
            let output = fused.forward(SelfAttentionInput::new(x.clone()));
            same("fused", output, module.forward(of_one()));
            let fused = module.clone().into_cross_attention();
            let output = fused.forward(CrossAttentionInput::new(x.clone(), memory.clone()));
            same("fused memory", output, module.forward(of_two()));

            let fused = packed(separate.clone().into_self_attention(), scheme);
            let expected = fused.forward(SelfAttentionInput::new(x.clone()));
            same("apart", fused.into_multi_head().forward(of_one()), expected);
            let fused = packed(separate.clone().into_cross_attention(), scheme);
            let expected = fused.forward(CrossAttentionInput::new(x.clone(), memory.clone()));
            let output = fused.into_multi_head().forward(of_two());
            same("memory apart", output, expected);
        }
    }
}

/// A weight of 8 bits is off by half a step, and a step is the largest weight of its scale by 127: so much, times the
/// inputs, is how far a product may be off.
#[test]
fn a_product_is_off_by_half_a_step() {
    let (rows, depth, columns) = (5, 33, 21);
    for (backend, device) in devices() {
        let x: Tensor<2> = tensor([rows, depth], 1, &device);
        let weight: Tensor<2> = tensor([depth, columns], 2, &device);
        let bias: Tensor<1> = tensor([columns], 3, &device);
        let exact = ops::linear(x.clone(), weight.clone(), Some(bias.clone()));
        let steps = [
            weight.clone().abs().max().expand([depth, columns]),
            // One scale for each block of a row.
            weight
                .clone()
                .abs()
                .reshape([depth, columns / BLOCK as usize, BLOCK as usize])
                .max_dim(2)
                .expand([depth, columns / BLOCK as usize, BLOCK as usize])
                .reshape([depth, columns]),
        ];
        for ((name, scheme), step) in schemes().into_iter().zip(steps) {
            let half_steps = step / (2.0 * 127.0);
            let packed = weight.clone().quantize_dynamic(&scheme);
            let product = ops::linear(x.clone(), packed, Some(bias.clone()));
            let off = (product - exact.clone()).abs();
            assert!(off.clone().max().into_scalar::<f32>() > 1e-4);
            // Rounding to f32 on top.
            let bound = x.clone().abs().matmul(half_steps) + 1e-5;
            let most: f32 = (off - bound).max().into_scalar();
            assert!(most <= 0.0, "{backend}, {name}: {most:.1e} beyond");
        }
    }
}

fn packed_or_unpacked<const D: usize>(
    x: Tensor<D>,
    scheme: &QuantScheme,
    is_packed: bool,
) -> Tensor<D> {
    let packed = x.quantize_dynamic(scheme);
    match is_packed {
        true => packed,
        false => packed.dequantize(),
    }
}

#[test]
fn tensors_of_the_options_in_8_bits() {
    let (len_q, len_kv) = (7, 9);
    let buckets = RelativeBuckets {
        buckets: 8,
        max_distance: 20,
        bidirectional: true,
    };
    // Scales of blocks give a tensor of four dimensions eight, and ndarray has at most six: such tensors have one scale.
    let [(_, whole), _] = schemes();
    for (backend, device) in devices() {
        let x = |len, seed| tensor::<4>([2, HEADS, len, 6], seed, &device);
        let operands = || [x(len_q, 1), x(len_kv, 2), x(len_kv, 3)];
        for (name, scheme) in schemes() {
            let options = |is_packed: bool| {
                let slopes =
                    |seed| packed_or_unpacked(tensor([HEADS], seed, &device), &scheme, is_packed);
                let table = |rows, columns| {
                    let table = tensor([rows, columns], 5, &device);
                    packed_or_unpacked(table, &scheme, is_packed)
                };
                let dense = tensor([1, HEADS, len_q, len_kv], 6, &device);
                let dense = packed_or_unpacked(dense, &whole, is_packed);
                let biases = [
                    AttentionBias::alibi(slopes(4)),
                    AttentionBias::relative(table(buckets.buckets, HEADS), buckets),
                    AttentionBias::distances(table(HEADS, len_q + len_kv - 1)),
                    AttentionBias::dense(dense),
                ];
                let biases = biases.map(|bias| AttentionOptions::default().bias(bias));
                let sinks = AttentionOptions::default().sinks(slopes(7));
                biases.into_iter().chain([sinks])
            };
            for (packed, floats) in options(true).zip(options(false)) {
                let [actual, expected] = [packed, floats].map(|options| {
                    let [query, key, value] = operands();
                    ops::attention(query, key, value, options).into_data()
                });
                assert_close(&format!("{backend}, {name}"), &actual, &expected, TOLERANCE);
            }
            for (index, operand) in ["query", "key", "value"].into_iter().enumerate() {
                let mut operands = operands();
                operands[index] = operands[index].clone().quantize_dynamic(&whole);
                let [query, key, value] = operands;
                let options = AttentionOptions::default();
                assert_eq!(
                    sentence(|| ops::attention(query, key, value, options)),
                    format!(
                        "attention: the {operand} is quantised, but must be floats: call `dequantize` first"
                    )
                );
            }
        }
    }
}
