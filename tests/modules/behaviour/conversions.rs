//! Each attention module made of another has the same numbers, and trains.

use burn::tensor::{DType, Tensor};
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    ProjectionBias, SelfAttentionInput,
};

use crate::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    parameters::wide,
};

const TOLERANCE: f32 = 1e-6;

#[test]
fn one_layer_or_several_are_the_same() {
    for (backend, device) in devices::cpu() {
        for device in [device.clone(), device.autodiff()] {
            let x: Tensor<3> = tensor([2, 7, 30], 1, &device);
            let memory = tensor([2, 5, 30], 2, &device);
            for bias in [
                ProjectionBias::all(),
                ProjectionBias::none(),
                ProjectionBias::all().with_key(false),
            ] {
                let config = MultiHeadAttentionConfig::new(30, 6)
                    .with_dropout(0.0)
                    .with_n_kv_heads(2)
                    .with_d_head(3)
                    .with_d_value_head(7)
                    .with_bias(bias);
                let separate = filled(config.init(&device), 3);
                let check = |what: &str, actual: Tensor<3>, expected: &Tensor<3>| {
                    let what = format!("{backend}, {bias:?}, {what}");
                    assert_close(&what, &actual.into_data(), &expected.to_data(), TOLERANCE);
                };

                let input = || MultiHeadAttentionInput::self_attention(x.clone());
                let expected = separate.forward(input());
                let fused = separate.clone().into_self_attention(false);
                let output = fused.forward(SelfAttentionInput::new(x.clone()));
                check("fused", output, &expected);
                check(
                    "separated",
                    fused.into_multi_head().forward(input()),
                    &expected,
                );

                let input = || MultiHeadAttentionInput::cross_attention(x.clone(), memory.clone());
                let expected = separate.forward(input());
                let fused = separate.clone().into_cross_attention();
                let output = fused.forward(CrossAttentionInput::new(x.clone(), memory.clone()));
                check("fused memory", output, &expected);
                let again = fused.into_multi_head().forward(input());
                check("separated memory", again, &expected);
            }
        }
    }
}

#[test]
fn a_missing_bias_has_the_dtype_of_the_others() {
    for (backend, device) in devices::cpu() {
        let config = MultiHeadAttentionConfig::new(30, 6)
            .with_bias(ProjectionBias::all().with_key(false))
            .with_dropout(0.0);
        let separate = wide(filled(config.init(&device), 3));
        let x = tensor::<3>([2, 7, 30], 1, &device).cast(DType::F64);
        let expected = separate.forward(MultiHeadAttentionInput::self_attention(x.clone()));
        let fused = separate.into_self_attention(false);
        let actual = fused.forward(SelfAttentionInput::new(x));
        assert_eq!(actual.dtype(), DType::F64);
        assert_close(backend, &actual.into_data(), &expected.into_data(), 1e-12);
    }
}

#[test]
fn a_converted_module_is_trained() {
    let device = devices::any().autodiff();
    let module = CrossAttentionConfig::new(30, 6)
        .init(&device)
        .into_multi_head();
    let x: Tensor<3> = tensor([2, 7, 30], 1, &device);
    let output = module.forward(MultiHeadAttentionInput::self_attention(x));
    let gradients = output.sum().backward();
    assert!(module.key.weight.grad(&gradients).is_some());
}
