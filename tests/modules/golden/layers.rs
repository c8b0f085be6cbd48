//! One layer of `nn.TransformerEncoder` and `nn.TransformerDecoder`, norm last with ReLU and norm first with GELU.

use burn::nn::activation::ActivationConfig;
use burn_attn::{
    TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoderConfig,
    TransformerEncoderInput,
};

use super::{file::GoldenFile, inputs::Inputs, layout::Layout, on_every_device};

/// About three times the worst error of a value or gradient that was seen on flex and ndarray.
const TOLERANCE: f32 = 2e-6;

const D_MODEL: usize = 15;
const D_FF: usize = 29;
const N_HEADS: usize = 3;

fn check_encoder(name: &str, norm_first: bool, activation: ActivationConfig) {
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let config = TransformerEncoderConfig::new(D_MODEL, D_FF, N_HEADS, 1)
            .with_dropout(0.0)
            .with_norm_first(norm_first)
            .with_final_norm(Some(false))
            .with_activation(activation.clone());
        let module = Layout::EncoderLayer.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let input = TransformerEncoderInput::new(inputs.read("x")).mask(inputs.mask("lengths"));
        inputs.check(
            Layout::EncoderLayer,
            &module,
            module.forward(input),
            TOLERANCE,
        );
    });
}

#[test]
fn encoder_with_norm_last_is_pytorchs() {
    check_encoder("encoder_layer_post", false, ActivationConfig::Relu);
}

#[test]
fn encoder_with_norm_first_is_pytorchs() {
    check_encoder("encoder_layer_pre", true, ActivationConfig::Gelu);
}

fn check_decoder(name: &str, norm_first: bool, activation: ActivationConfig) {
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let config = TransformerDecoderConfig::new(D_MODEL, D_FF, N_HEADS, 1)
            .with_dropout(0.0)
            .with_norm_first(norm_first)
            .with_final_norm(Some(false))
            .with_activation(activation.clone());
        let module = Layout::DecoderLayer.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let input = TransformerDecoderInput::new(inputs.read("target"), inputs.read("memory"))
            .target_mask(inputs.mask("target_lengths"))
            .memory_mask(inputs.mask("memory_lengths"));
        inputs.check(
            Layout::DecoderLayer,
            &module,
            module.forward(input),
            TOLERANCE,
        );
    });
}

#[test]
fn decoder_with_norm_last_is_pytorchs() {
    check_decoder("decoder_layer_post", false, ActivationConfig::Relu);
}

#[test]
fn decoder_with_norm_first_is_pytorchs() {
    check_decoder("decoder_layer_pre", true, ActivationConfig::Gelu);
}
