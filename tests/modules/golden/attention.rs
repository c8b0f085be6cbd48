//! `nn.MultiheadAttention` against the three attention modules.

use burn_attn::{
    AttentionMask, AttentionOutput, CrossAttentionConfig, CrossAttentionInput,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{compare::assert_close, golden::GoldenFile};

use super::{inputs::Inputs, layout::Layout, on_every_device};

/// About three times the worst error of a value or gradient that was seen on flex and ndarray.
const TOLERANCE: f64 = 1.5e-6;

const D_MODEL: usize = 15;
const N_HEADS: usize = 3;

fn check_weights(file: &GoldenFile, output: AttentionOutput) {
    let (weights, states) = (output.weights.into_data(), output.states.into_data());
    assert_close("weights", &weights, &file.data("weights"), TOLERANCE);
    assert_close("context", &states, &file.data("output"), TOLERANCE);
}

#[test]
fn self_attention_is_pytorchs() {
    on_every_device(|device| {
        let file = GoldenFile::open("mha_self");
        let config = SelfAttentionConfig::new(D_MODEL, N_HEADS).with_causal(true);
        let module = Layout::Attention.load(config.with_dropout(0.0).init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let input = SelfAttentionInput::new(inputs.read("x")).mask(inputs.mask("lengths"));
        check_weights(&file, module.forward_with_weights(input.clone()));
        inputs.check(Layout::Attention, &module, module.forward(input), TOLERANCE);
    });
}

#[test]
fn cross_attention_is_pytorchs() {
    on_every_device(|device| {
        let file = GoldenFile::open("mha_cross");
        let config = CrossAttentionConfig::new(D_MODEL, N_HEADS).with_dropout(0.0);
        let module = Layout::Attention.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let input = CrossAttentionInput::new(inputs.read("query"), inputs.read("memory"))
            .mask(inputs.mask("memory_lengths"));
        check_weights(&file, module.forward_with_weights(input.clone()));
        inputs.check(Layout::Attention, &module, module.forward(input), TOLERANCE);
    });
}

/// Checks a `MultiHeadAttention` on the input that `read` makes of the file.
fn check_multi_head(name: &str, read: impl Fn(&mut Inputs) -> MultiHeadAttentionInput) {
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let config = MultiHeadAttentionConfig::new(D_MODEL, N_HEADS).with_dropout(0.0);
        let module = Layout::Attention.load(config.init(device), &file);
        let mut inputs = Inputs::new(&file, device);
        let input = read(&mut inputs);
        check_weights(&file, module.forward_with_weights(input.clone()));
        inputs.check(Layout::Attention, &module, module.forward(input), TOLERANCE);
    });
}

#[test]
fn multi_head_attention_on_itself_is_pytorchs() {
    check_multi_head("mha_self", |inputs| {
        let mask = inputs.mask("lengths").and(AttentionMask::causal());
        MultiHeadAttentionInput::self_attention(inputs.read("x")).mask(mask)
    });
}

#[test]
fn multi_head_attention_on_a_memory_is_pytorchs() {
    check_multi_head("mha_cross", |inputs| {
        let mask = inputs.mask("memory_lengths");
        MultiHeadAttentionInput::cross_attention(inputs.read("query"), inputs.read("memory"))
            .mask(mask)
    });
}

#[test]
fn multi_head_attention_from_three_places_is_pytorchs() {
    check_multi_head("mha_general", |inputs| {
        MultiHeadAttentionInput::new(
            inputs.read("query"),
            inputs.read("key"),
            inputs.read("value"),
        )
    });
}
