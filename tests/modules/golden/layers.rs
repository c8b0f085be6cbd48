//! One layer of `nn.TransformerEncoder` and `nn.TransformerDecoder`, norm last with ReLU and norm first with GELU.

use burn_attn::{
    AttentionMask, BlockConfig, FeedForwardActivation, LayerInput, NormPlacement,
    TransformerStackConfig,
};
use burn_attn_tests::golden::GoldenFile;

use super::{inputs::Inputs, layout::Layout, on_every_device};

/// About three times the worst error of a value or gradient that was seen on flex and ndarray.
pub const TOLERANCE: f64 = 2e-6;

pub const D_MODEL: usize = 15;
pub const D_FF: usize = 29;
pub const N_HEADS: usize = 3;

fn post_relu() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Post)
        .with_activation(FeedForwardActivation::Relu)
}

fn pre_gelu() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(FeedForwardActivation::Gelu)
}

/// A layer of this block in a stack of one; `mask` comes to the padding.
pub fn check_encoder(name: &str, block: &BlockConfig, mask: &AttentionMask, tolerance: f64) {
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let config = TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, 1)
            .with_block(block.clone())
            .with_final_norm(false);
        let module = Layout::EncoderLayer.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let mask = inputs.mask("lengths").and(mask.clone());
        let input = LayerInput::new(inputs.read("x")).mask(mask);
        let output = module.forward(input);
        inputs.check(Layout::EncoderLayer, &module, output, tolerance);
    });
}

#[test]
fn encoder_with_norm_last_is_pytorchs() {
    let none = AttentionMask::none();
    check_encoder("encoder_layer_post", &post_relu(), &none, TOLERANCE);
}

#[test]
fn encoder_with_norm_first_is_pytorchs() {
    let none = AttentionMask::none();
    check_encoder("encoder_layer_pre", &pre_gelu(), &none, TOLERANCE);
}

fn check_decoder(name: &str, block: BlockConfig) {
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, 1)
            .with_block(block.clone())
            .with_causal(true)
            .with_final_norm(false);
        let module = Layout::DecoderLayer.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let input = LayerInput::new(inputs.read("target"))
            .memory(inputs.read("memory"))
            .mask(inputs.mask("target_lengths"))
            .memory_mask(inputs.mask("memory_lengths"));
        let output = module.forward(input);
        inputs.check(Layout::DecoderLayer, &module, output, TOLERANCE);
    });
}

#[test]
fn decoder_with_norm_last_is_pytorchs() {
    check_decoder("decoder_layer_post", post_relu());
}

#[test]
fn decoder_with_norm_first_is_pytorchs() {
    check_decoder("decoder_layer_pre", pre_gelu());
}
