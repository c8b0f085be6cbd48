//! Layers that `nn.TransformerEncoderLayer` cannot be, composed of PyTorch's parts by the script.

use burn_attn::{
    AttentionMask, BlockConfig, FeedForwardActivation, LayerInput, NormConfig, NormPlacement,
    TransformerStackConfig,
};
use burn_attn_tests::golden::GoldenFile;

use super::{
    inputs::Inputs,
    layers::{D_FF, D_MODEL, N_HEADS, TOLERANCE, check_encoder},
    layout::Layout,
    on_every_device,
};

/// As `TOLERANCE` with sandwich norms, which blow small numbers up: gradients go to 48, and PyTorch's float32 is off by 4e-6.
const SANDWICH_TOLERANCE: f64 = 2e-5;

/// The same as an encoder's layer with a mask and as a causal one.
fn check_causal(name: &str, block: &BlockConfig, tolerance: f64) {
    check_encoder(name, block, &AttentionMask::causal(), tolerance);
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 1)
            .with_block(block.clone())
            .with_final_norm(false);
        let module = Layout::EncoderLayer.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let mask = inputs.mask("lengths");
        let input = LayerInput::new(inputs.read("x")).mask(mask);
        let output = module.forward(input);
        inputs.check(Layout::EncoderLayer, &module, output, tolerance);
    });
}

#[test]
fn sandwich_with_rms_norm_and_swiglu_is_pytorchs() {
    let block = BlockConfig::new()
        .with_dropout(0.0)
        .with_norm(NormConfig::rms_norm().with_epsilon(1e-6))
        .with_norm_placement(NormPlacement::Sandwich)
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_bias(false);
    check_causal("block_sandwich", &block, SANDWICH_TOLERANCE);
}

#[test]
fn parallel_with_layer_norm_and_geglu_is_pytorchs() {
    let block = BlockConfig::new()
        .with_dropout(0.0)
        .with_norm(NormConfig::layer_norm().without_bias())
        .with_norm_placement(NormPlacement::Pre)
        .with_parallel(true)
        .with_activation(FeedForwardActivation::GeGlu)
        .with_bias(false);
    check_causal("block_parallel", &block, TOLERANCE);
}

#[test]
fn post_norm_with_rms_norm_and_tanh_gelu_is_pytorchs() {
    let block = BlockConfig::new()
        .with_dropout(0.0)
        .with_norm(NormConfig::rms_norm())
        .with_norm_placement(NormPlacement::Post)
        .with_activation(FeedForwardActivation::GeluTanh);
    check_encoder("block_post_rms", &block, &AttentionMask::none(), TOLERANCE);
}
