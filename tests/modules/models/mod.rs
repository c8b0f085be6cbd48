//! Models that `transformers` saved: what they compute, and what is refused.

mod bare;
mod bert;
mod changed_configs;
mod changed_vision_and_speech;
mod chat;
mod clip;
mod conversation;
mod deepseek_v2;
mod detection;
mod detr;
mod gguf;
mod gpt2;
mod gpt_neox;
mod hub;
mod language_models;
mod llama;
mod load_options;
mod mixtures_of_experts;
mod published;
mod qwen3_next;
mod reach;
mod real;
mod refused;
mod segformer;
mod sentences;
mod t5;
mod tokenizer;
mod vision;
mod vision_refused;
mod vit;
mod wav2vec2;
mod whisper;

use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::{module::Module, tensor::Tensor};
use burn_attn::{SublayerConnection, TransformerLayer};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same, differs},
    devices,
    golden::{self, GoldenFile},
    numbers::tensor,
};
use serde_json::Value;

/// Largest difference, relative to the largest number of a tensor.
const TOLERANCE: f64 = 1e-4;

/// The activations that are supported, as the error about an unknown one lists them.
const ACTIVATIONS: &str = "gelu, gelu_python, gelu_new, gelu_fast, gelu_accurate, gelu_pytorch_tanh, \
     gelu_python_tanh, quick_gelu, relu, relu2, silu, swish";

/// The folder of a model.
fn folder(name: &str) -> PathBuf {
    golden::path("models").join(name)
}

/// What a file in JSON says.
fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("read");
    serde_json::from_str(&text).expect("JSON")
}

/// Changes a file in JSON.
fn change_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = read_json(path);
    change(&mut value);
    fs::write(path, value.to_string()).expect("written");
}

/// What the models compute.
fn values() -> GoldenFile {
    GoldenFile::open("models/values")
}

/// Compares where there are tokens: the reference has zeros where there is padding.
fn assert_states(what: &str, states: Tensor<3>, expected: Tensor<3>) {
    let is_padding = expected.clone().abs().sum_dim(2).equal_scalar(0.0);
    let states = states.mask_fill(is_padding.expand(expected.dims()), 0.0);
    assert_close_to_largest(
        what,
        &states.into_data(),
        &expected.into_data(),
        TOLERANCE,
        0.0,
    );
}

/// BERT, GPT-2, GPT-NeoX and ViT have no dropout inside the feed-forward networks; the residual sums have.
fn assert_feed_forward_without_dropout(layer: &TransformerLayer) {
    assert_dropout(layer, [true, true]);
}

/// There is no dropout inside the feed-forward network; the residual sums of attention and network have some, or not.
fn assert_dropout(layer: &TransformerLayer, in_sums: [bool; 2]) {
    let layer = layer.clone().train();
    let network = layer.feed_forward.as_ref().expect("a network");
    let [d_model, _] = network.linear_inner.weight.dims();
    let x: Tensor<3> = tensor([3, 7, d_model], 1, &devices::any().autodiff());
    assert_same(
        &network.forward(x.clone()),
        &network.clone().valid().forward(x.clone()),
    );
    let of_feed_forward = layer.feed_forward_residual.as_ref().expect("a sum");
    let zeros = x.zeros_like();
    let sum = |residual: &SublayerConnection| residual.sum(zeros.clone(), x.clone());
    let found = [&layer.self_attention_residual, of_feed_forward]
        .map(|residual| differs(&sum(residual), &sum(&residual.clone().valid())));
    assert_eq!(found, in_sums);
}
