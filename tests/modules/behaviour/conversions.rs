//! Each attention module made of another has the same numbers, and trains.

use burn::{
    module::Module,
    nn::Linear,
    tensor::{DType, Device, Tensor},
};
use burn_attn::{
    CrossAttention, CrossAttentionConfig, CrossAttentionInput, MultiHeadAttention,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, ProjectionBias, SelfAttention,
    SelfAttentionInput,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    parameters::wide,
    sentence,
};

const TOLERANCE: f64 = 1e-6;

#[test]
fn one_layer_or_several_are_the_same() {
    for (backend, device) in devices::with_and_without_autodiff() {
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
            let fused = separate.clone().into_self_attention();
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

#[test]
fn a_missing_bias_has_the_dtype_of_the_others() {
    for (backend, device) in devices::cpu() {
        let config = MultiHeadAttentionConfig::new(30, 6)
            .with_bias(ProjectionBias::all().with_key(false))
            .with_dropout(0.0);
        let separate = wide(filled(config.init(&device), 3));
        let x = tensor::<3>([2, 7, 30], 1, &device).cast(DType::F64);
        let expected = separate.forward(MultiHeadAttentionInput::self_attention(x.clone()));
        let fused = separate.into_self_attention();
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

/// A module of each kind, converted, and the parts of it that a conversion made.
fn converted(separate: MultiHeadAttention) -> (SelfAttention, CrossAttention, MultiHeadAttention) {
    let fused = separate.clone().into_self_attention();
    let apart = fused.clone().into_multi_head();
    (fused, separate.into_cross_attention(), apart)
}

fn separate(device: &Device) -> MultiHeadAttention {
    filled(MultiHeadAttentionConfig::new(30, 6).init(device), 3)
}

#[test]
fn what_is_frozen_stays_frozen() {
    for (_, device) in devices::with_and_without_autodiff() {
        for frozen in [true, false] {
            let module = separate(&device);
            let module = if frozen { module.no_grad() } else { module };
            let (fused, memory, apart) = converted(module);
            // On a device without autodiff it shows when training begins.
            let (fused, memory, apart) = (fused.train(), memory.train(), apart.train());
            for linear in [
                &fused.query_key_value,
                &memory.key_value,
                &memory.query,
                &memory.output,
                &apart.query,
                &apart.key,
                &apart.value,
                &apart.output,
            ] {
                assert_eq!(linear.weight.is_require_grad(), !frozen);
                let bias = linear.bias.as_ref().expect("a bias by default");
                assert_eq!(bias.is_require_grad(), !frozen);
            }
        }
    }
}

#[test]
fn parts_that_are_not_frozen_alike_cannot_be_one() {
    for (_, device) in devices::with_and_without_autodiff() {
        let mut module = separate(&device);
        module.value.weight = module.value.weight.set_require_grad(false);
        let expected = |names| {
            format!(
                "MultiHeadAttention: the weights of {names} become one parameter, but only those of [\"value\"] are \
                 frozen; freeze or unfreeze them together first"
            )
        };
        let whole = module.clone();
        assert_eq!(
            sentence(|| whole.into_self_attention()),
            expected("[\"query\", \"key\", \"value\"]")
        );
        assert_eq!(
            sentence(|| module.clone().into_cross_attention()),
            expected("[\"key\", \"value\"]")
        );
        // Weights and biases are parameters of their own.
        module.key.weight = module.key.weight.set_require_grad(false);
        let memory = module.into_cross_attention().train();
        assert!(!memory.key_value.weight.is_require_grad());
        assert!(memory.key_value.bias.expect("a bias").is_require_grad());
    }
}

#[test]
fn what_is_carried_over_keeps_its_identity() {
    let separate = separate(&devices::any());
    let ids = |linear: &Linear| (linear.weight.id, linear.bias.as_ref().map(|bias| bias.id));
    let (query, output) = (ids(&separate.query), ids(&separate.output));
    let (fused, memory, apart) = converted(separate);
    for found in [&fused.output, &memory.output, &apart.output] {
        assert_eq!(ids(found), output);
    }
    assert_eq!(ids(&memory.query), query);
    assert_eq!(ids(&memory.into_multi_head().query), query);
}
