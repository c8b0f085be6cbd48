//! Dropout acts in training, nowhere else, and repeats with its seed.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn::{
    BlockConfig, SelfAttention, SelfAttentionConfig, SelfAttentionInput, Transformer,
    TransformerConfig, TransformerInput,
};
use burn_attn_tests::{
    compare::{assert_same, differs},
    devices,
    numbers::{alone, filled, tensor},
};

fn attention(dropout: f64, device: &Device) -> SelfAttention {
    filled(
        SelfAttentionConfig::new(15, 3)
            .with_dropout(dropout)
            .init(device),
        1,
    )
}

fn attend(module: &SelfAttention, device: &Device) -> Tensor<3> {
    module.forward(SelfAttentionInput::new(tensor([2, 7, 15], 3, device)))
}

fn transformer(dropout: f64, device: &Device) -> Transformer {
    let config = TransformerConfig::new(15, 29, 3, 2, 2)
        .with_block(BlockConfig::new().with_dropout(dropout));
    filled(config.init(device), 1)
}

fn transform(module: &Transformer, device: &Device) -> Tensor<3> {
    let input = TransformerInput::new(tensor([2, 7, 15], 3, device), tensor([2, 5, 15], 4, device));
    module.forward(input)
}

#[test]
fn dropout_vanishes_without_training() {
    let _alone = alone();
    for (_, plain) in devices::cpu() {
        let training = plain.clone().autodiff();
        let expected = attend(&attention(0.0, &plain), &plain);
        let in_training = attention(0.5, &training);
        for (module, device) in [
            (attention(0.5, &plain), &plain),
            (in_training.valid(), &plain),
            // Inputs with autodiff do not turn a validated module back to training.
            (in_training.valid(), &training),
            (in_training.freeze(), &training),
        ] {
            assert_same(&attend(&module, device), &expected);
        }

        let expected = transform(&transformer(0.0, &plain), &plain);
        let in_training = transformer(0.5, &training);
        for module in [transformer(0.5, &plain), in_training.valid()] {
            assert_same(&transform(&module, &plain), &expected);
        }
        // With autodiff, Burn's layer norm is another sum with other last bits.
        let expected = transform(&transformer(0.0, &training), &training);
        assert_same(&transform(&in_training.freeze(), &training), &expected);
    }
}

#[test]
fn dropout_comes_back_with_training() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let module = attention(0.5, &device);
        burn_attn::seed(&device, 7);
        let expected = attend(&module, &device);
        burn_attn::seed(&device, 7);
        assert_same(&attend(&module.valid().train(), &device), &expected);
    }
}

#[test]
fn dropout_differs_between_calls_and_repeats_with_the_seed() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let of_attention = attention(0.5, &device);
        let of_transformer = transformer(0.5, &device);
        let run = |seed| {
            burn_attn::seed(&device, seed);
            [
                attend(&of_attention, &device),
                attend(&of_attention, &device),
                transform(&of_transformer, &device),
                transform(&of_transformer, &device),
            ]
        };
        let [first, second, third, fourth] = run(7);
        assert!(differs(&first, &second));
        assert!(differs(&third, &fourth));
        for (again, before) in run(7).iter().zip([&first, &second, &third, &fourth]) {
            assert_same(again, before);
        }
        for (other, before) in run(8).iter().zip([&first, &second, &third, &fourth]) {
            assert!(differs(other, before));
        }
    }
}

#[test]
fn initial_parameters_repeat_with_the_seed() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let run = |seed| {
            burn_attn::seed(&device, seed);
            let config = TransformerConfig::new(15, 29, 3, 2, 2);
            transform(&config.init(&device), &device)
        };
        let first = run(7);
        assert_same(&run(7), &first);
        assert!(differs(&run(8), &first));
    }
}

#[test]
fn dropped_weights_are_dropped_in_the_backward_pass_too() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        // The gradient of `loss` in the direction of itself, against the difference of two losses.
        let module = attention(0.5, &device);
        let x: Tensor<3> = tensor([2, 7, 15], 3, &device).require_grad();
        let loss = |x: Tensor<3>| {
            burn_attn::seed(&device, 7);
            (module.forward(SelfAttentionInput::new(x)) * tensor([2, 7, 15], 4, &device)).sum()
        };
        let gradients = loss(x.clone()).backward();
        let gradient = x.grad(&gradients).expect("the gradient of the input");
        let slope: f32 = gradient.clone().square().sum().into_scalar();
        let step = 1e-3;
        let shifted = |sign: f32| -> f32 {
            let moved = x.clone().inner() + gradient.clone() * (sign * step);
            loss(Tensor::from_inner(moved)).into_scalar()
        };
        let measured = (shifted(1.0) - shifted(-1.0)) / (2.0 * step);
        assert!(
            (measured / slope - 1.0).abs() < 1e-2,
            "{measured} against {slope}"
        );
    }
}
