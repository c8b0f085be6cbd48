//! The future never leaks, and batch items do not see each other: to the bit, and in the gradients.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    BlockConfig, LayerInput, NormPlacement, SelfAttentionConfig, SelfAttentionInput,
    TransformerConfig, TransformerInput, TransformerStackConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs, numbers},
    devices,
    numbers::{filled, tensor},
};

const LEN: usize = 7;
const SHAPE: [usize; 3] = [2, LEN, 15];

/// Something that maps `[2, LEN, 15]` to the same shape.
type Forward = Box<dyn Fn(Tensor<3>) -> Tensor<3>>;

fn block(placement: NormPlacement) -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(placement)
}

/// Every causal module of the crate.
fn causal(device: &Device) -> Vec<Forward> {
    let attention = SelfAttentionConfig::new(15, 3)
        .with_causal(true)
        .with_dropout(0.0);
    let attention = filled(attention.init(device), 1);
    let decoder = |placement| {
        let block = block(placement);
        let config = TransformerStackConfig::decoder(15, 29, 3, 2)
            .with_block(block)
            .with_causal(true);
        let module = filled(config.init(device), 1);
        let memory = tensor([2, 11, 15], 4, device);
        let forward: Forward =
            Box::new(move |x| module.forward(LayerInput::new(x).memory(memory.clone())));
        forward
    };
    let stack = |block| {
        let config = TransformerStackConfig::causal(15, 29, 3, 2).with_block(block);
        let module = filled(config.init(device), 1);
        let forward: Forward = Box::new(move |x| module.forward(LayerInput::new(x)));
        forward
    };
    vec![
        Box::new(move |x| attention.forward(SelfAttentionInput::new(x))),
        decoder(NormPlacement::Pre),
        decoder(NormPlacement::Post),
        stack(block(NormPlacement::Pre)),
        stack(block(NormPlacement::Post)),
        stack(block(NormPlacement::Sandwich).with_parallel(true)),
    ]
}

#[test]
fn a_later_token_changes_nothing_before_it() {
    for (_, device) in devices::cpu() {
        for forward in causal(&device) {
            let x: Tensor<3> = tensor(SHAPE, 3, &device);
            let before = forward(x.clone());
            for changed in 1..LEN {
                let other = tensor([2, LEN - changed, 15], 9, &device) * 100.0;
                let after = forward(x.clone().slice_assign([0..2, changed..LEN], other));
                let earlier = [0..2, 0..changed];
                assert_same(
                    &after.clone().slice(earlier.clone()),
                    &before.clone().slice(earlier),
                );
                assert!(differs(
                    &after.slice([0..2, changed..LEN]),
                    &before.clone().slice([0..2, changed..LEN])
                ));
            }
        }
    }
}

/// A published `sliding_window` counts the token itself: Mistral's 4096 is a window of 4095 tokens before it.
#[test]
fn a_published_window_counts_the_token_itself() {
    let sliding_window = 3;
    for (_, device) in devices::cpu() {
        let module = SelfAttentionConfig::new(15, 3)
            .with_causal(true)
            .with_window(sliding_window - 1)
            .init(&device);
        let x: Tensor<3> = tensor(SHAPE, 3, &device);
        let weights = filled(module, 1)
            .forward_with_weights(SelfAttentionInput::new(x))
            .weights;
        for (row, weights) in numbers(&weights).chunks(LEN).enumerate() {
            let query = row % LEN;
            for (key, weight) in weights.iter().enumerate() {
                // As Hugging Face's `sliding_window_overlay`: `key > query - sliding_window`.
                let seen = key <= query && key + sliding_window > query;
                assert_eq!(*weight > 0.0, seen, "query {query}, key {key}: {weight}");
            }
        }
    }
}

#[test]
fn a_later_token_gets_no_gradient_from_before_it() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        for forward in causal(&device) {
            let x: Tensor<3> = tensor(SHAPE, 3, &device).require_grad();
            let seen = 3;
            let loss = forward(x.clone()).slice([0..2, 0..seen]).square().sum();
            let gradient = x.grad(&loss.backward()).expect("the gradient of the input");
            let later = numbers(&gradient.clone().slice([0..2, seen..LEN]));
            assert!(later.iter().all(|&number| number == 0.0));
            let earlier = numbers(&gradient.slice([0..2, 0..seen]));
            assert!(earlier.iter().all(|&number| number != 0.0));
        }
    }
}

#[test]
fn batch_items_do_not_see_each_other() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let config = TransformerConfig::new(15, 29, 3, 2, 2).with_block(block(NormPlacement::Pre));
        let module = filled(config.init(&device), 1);
        let forward = |source: &Tensor<3>, target: &Tensor<3>| {
            module.forward(TransformerInput::new(source.clone(), target.clone()))
        };
        let source: Tensor<3> = tensor([2, 11, 15], 4, &device).require_grad();
        let target: Tensor<3> = tensor(SHAPE, 3, &device).require_grad();
        let before = forward(&source, &target);

        // The first item does not notice what the second one is.
        let item = |x: &Tensor<3>, index| x.clone().narrow(0, index, 1);
        let changed = |x: &Tensor<3>| {
            let [_, len, _] = x.dims();
            let other = tensor([1, len, 15], 9, &device) * 100.0;
            Tensor::cat(vec![item(x, 0), other], 0)
        };
        let after = forward(&changed(&source), &changed(&target));
        assert_same(&item(&after, 0), &item(&before, 0));
        assert!(differs(&item(&after, 1), &item(&before, 1)));

        let gradients = item(&before, 0).square().sum().backward();
        for input in [&source, &target] {
            let gradient = input.grad(&gradients).expect("the gradient of an input");
            assert!(
                numbers(&item(&gradient, 1))
                    .iter()
                    .all(|&number| number == 0.0)
            );
            assert!(
                numbers(&item(&gradient, 0))
                    .iter()
                    .any(|&number| number != 0.0)
            );
        }
    }
}
