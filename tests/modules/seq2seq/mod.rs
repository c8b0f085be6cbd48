//! The translation model and its search.

mod embedding;
mod options;
mod parts;
mod search;

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_models::{
    generate::{BeamOptions, Generation, Hypothesis, beam_search},
    seq2seq::{Seq2Seq, Seq2SeqConfig},
};
use burn_attn_tests::{numbers::filled, parameters};

const VOCABULARY: usize = 13;
const MAX_LEN: usize = 11;
/// Begins every output.
const BOS: u32 = 0;
/// Ends every output, where a test does not say otherwise.
const EOS: u32 = 1;
/// Longest output.
const LIMIT: usize = 8;

/// A tiny model that nobody trained.
fn model(seed: u64, device: &Device) -> Seq2Seq {
    let config = Seq2SeqConfig::new(VOCABULARY)
        .with_d_model(15)
        .with_n_heads(3)
        .with_d_ff(29)
        .with_dropout(0.0)
        .with_max_len(MAX_LEN);
    let model = filled(config.init(device), seed);
    // An untrained model with tied embeddings repeats its input. Loud sublayers drown the input, and sharp logits make
    // up their mind, so that outputs differ and end at different lengths.
    let values = parameters::values(&model);
    parameters::replace(model, |path, _| {
        let loud = ["output.weight", "linear_outer.weight", "decoder.norm.gamma"];
        let factor = if loud.iter().any(|end| path.ends_with(end)) {
            4.0
        } else {
            1.0
        };
        values[path]
            .iter::<f32>()
            .map(|value| value * factor)
            .collect()
    })
}

fn options(beam: usize) -> BeamOptions {
    BeamOptions::new(beam, LIMIT).stop_tokens([EOS])
}

/// The best output for every source.
fn search(
    model: &Seq2Seq,
    source: Tensor<2, Int>,
    source_lengths: &[usize],
    options: &BeamOptions,
) -> Vec<Generation> {
    let prompts = vec![vec![BOS]; source.dims()[0]];
    let start = model.start(source, source_lengths);
    let found =
        beam_search(model, start, &prompts, options).unwrap_or_else(|error| panic!("{error}"));
    let best = |mut found: Vec<Hypothesis>| found.swap_remove(0).generation;
    found.into_iter().map(best).collect()
}

/// Sources padded with `padding` to a common length, and their own lengths.
fn batch(
    sources: &[Vec<i32>],
    padding: i32,
    len: usize,
    device: &Device,
) -> (Tensor<2, Int>, Vec<usize>) {
    let tokens: Vec<i32> = sources
        .iter()
        .flat_map(|source| (0..len).map(|at| source.get(at).copied().unwrap_or(padding)))
        .collect();
    let count = sources.len();
    (
        Tensor::from_data(TensorData::new(tokens, [count, len]), device),
        sources.iter().map(Vec::len).collect(),
    )
}

/// Three sources of different lengths.
fn sources() -> Vec<Vec<i32>> {
    vec![vec![5, 6, 7, 8, 2], vec![9, 10], vec![3, 12, 4]]
}
