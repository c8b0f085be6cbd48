//! Stacks of layers, at once and through their caches.

use burn::tensor::Tensor;
use burn_attn::{
    BlockConfig, FeedForwardActivation, KvCacheConfig, LayerInput, NormConfig, NormPlacement,
    TransformerConfig, TransformerInput, TransformerStackConfig,
    positions::{LearnedConfig, PositionEncoding},
};
use burn_attn_tests::{
    compare::assert_close,
    numbers::{filled, tensor},
};

use super::{D_FF, D_MODEL, HEADS, TOLERANCE, check, devices, packed, schemes};

fn blocks() -> [(&'static str, BlockConfig); 2] {
    let block = || BlockConfig::new().with_dropout(0.0);
    [
        (
            "pre-norm, layer norm, relu",
            block()
                .with_norm(NormConfig::layer_norm())
                .with_norm_placement(NormPlacement::Pre)
                .with_activation(FeedForwardActivation::Relu),
        ),
        (
            "rms norm, gated, relative",
            block()
                .with_norm(NormConfig::rms_norm())
                .with_activation(FeedForwardActivation::GeGluTanh)
                .with_position(PositionEncoding::relative()),
        ),
    ]
}

#[test]
fn a_causal_stack_in_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        for (name, block) in blocks() {
            let config = TransformerStackConfig::causal(D_MODEL, D_FF, HEADS, 2).with_block(block);
            let module = filled(config.init(&device), 3);
            let what = format!("{backend}, {name}");
            check(&what, &module, |module| {
                module.forward(LayerInput::new(x.clone()))
            });
            for (scheme_name, scheme) in schemes() {
                let module = packed(module.clone(), scheme);
                let whole = module.forward(LayerInput::new(x.clone()));
                let mut cache = module.cache(2, &KvCacheConfig::new(7));
                let first = module.forward_cached(x.clone().narrow(1, 0, 6), &mut cache);
                let last = module.forward_cached(x.clone().narrow(1, 6, 1), &mut cache);
                let cached = Tensor::cat(vec![first, last], 1).into_data();
                let what = format!("{what}, {scheme_name}, cached");
                assert_close(&what, &cached, &whole.into_data(), TOLERANCE);
            }
        }
    }
}

#[test]
fn encoder_and_decoder_in_8_bits() {
    for (backend, device) in devices() {
        let source: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let target: Tensor<3> = tensor([2, 5, D_MODEL], 2, &device);
        for (name, block) in blocks() {
            let config = TransformerConfig::new(D_MODEL, D_FF, HEADS, 1, 1).with_block(block);
            let module = filled(config.init(&device), 3);
            let what = format!("{backend}, {name}");
            let input = || TransformerInput::new(source.clone(), target.clone());
            check(&what, &module, |module| module.forward(input()));
            check(&what, &module, |module| {
                let memory = module.encoder.forward(source.clone());
                let decoder = &module.decoder;
                let mut cache = decoder.cache(2, &KvCacheConfig::new(5));
                decoder.cache_memory(memory, &[7, 7], &mut cache);
                decoder.forward_cached(target.clone(), &mut cache)
            });
        }
    }
}

#[test]
fn learned_positions_in_8_bits() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let module = filled(LearnedConfig::new(D_MODEL, 11).init(&device), 3);
        check(&backend, &module, |module| {
            module.forward_from(x.clone(), vec![1, 4])
        });
        check(&backend, &module, |module| module.forward(x.clone()));
    }
}
