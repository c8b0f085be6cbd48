//! Self-attention step by step, and the module that computes it in one call: `cargo run --example by_hand`.

use burn::tensor::{Bool, Device, Distribution, Tensor, activation::softmax};
use burn_attn::{SelfAttentionConfig, seed};
use burn_attn_viz::{AttentionMap, TextOptions, render_text};

const TOKENS: [&str; 6] = ["the", "cat", "sees", "the", "big", "fish"];
const LEN: usize = TOKENS.len();
const D_MODEL: usize = 12;
const HEADS: usize = 3;
const D_HEAD: usize = D_MODEL / HEADS;

fn main() {
    let device = Device::default();
    seed(&device, 7);
    let config = SelfAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
    let module = config.init(&device);
    // In a model these are the embeddings of the tokens.
    let x = Tensor::<3>::random([1, LEN, D_MODEL], Distribution::Normal(0.0, 2.0), &device);
    shape("x", &x, "a vector per token: [batch, len, d_model]");

    // ANCHOR: by-hand-project
    let projected = module.query_key_value.forward(x.clone());
    // ANCHOR_END: by-hand-project
    shape("x · W + b", &projected, "q, k and v side by side");

    // ANCHOR: by-hand-split
    let heads = |part: usize| {
        let part = projected.clone().narrow(2, part * D_MODEL, D_MODEL);
        part.reshape([1, LEN, HEADS, D_HEAD]).swap_dims(1, 2)
    };
    let [query, key, value] = [heads(0), heads(1), heads(2)];
    // ANCHOR_END: by-hand-split
    shape("q, k, v", &query, "split: [batch, heads, len, d_head]");

    // ANCHOR: by-hand-scores
    let scores = query.matmul(key.transpose()) / (D_HEAD as f64).sqrt();
    // ANCHOR_END: by-hand-scores
    shape("q·kᵀ / √d_head", &scores, "how keys fit queries");

    // ANCHOR: by-hand-mask
    let future = Tensor::<2, Bool>::tril_mask([LEN, LEN], 0, &device).unsqueeze();
    let scores = scores.mask_fill(future, f32::NEG_INFINITY);
    // ANCHOR_END: by-hand-mask
    shape("mask", &scores, "−∞ for the keys after the query");

    // ANCHOR: by-hand-weights
    let weights = softmax(scores, 3);
    // ANCHOR_END: by-hand-weights
    shape("softmax", &weights, "each row sums to 1");

    // ANCHOR: by-hand-sum
    let mixed = weights.clone().matmul(value);
    // ANCHOR_END: by-hand-sum
    shape("weights · v", &mixed, "a weighted mean of values");

    let merged = mixed.swap_dims(1, 2).reshape([1, LEN, D_MODEL]);
    shape("merge", &merged, "the heads side by side again");

    // ANCHOR: by-hand-output
    let output = module.output.forward(merged);
    // ANCHOR_END: by-hand-output
    shape("· W + b", &output, "the output projection");

    let tokens = TOKENS.map(String::from).to_vec();
    let weights = weights.into_data().iter().collect();
    let map = AttentionMap::new("weights", tokens.clone(), tokens, weights).expect("are weights");
    for head in 0..HEADS {
        println!("\n{}", render_text(&map, head, &TextOptions::default()));
    }

    let difference = (output - module.forward(x)).abs().max();
    let difference = difference.into_scalar::<f32>();
    assert!(difference < 1e-5, "the module differs by {difference}");
    println!("SelfAttention::forward gives these numbers (largest difference {difference:.0e}).");
}

fn shape<const D: usize>(step: &str, tensor: &Tensor<D>, meaning: &str) {
    println!("{step:16}{:18}{meaning}", format!("{:?}", tensor.dims()));
}
