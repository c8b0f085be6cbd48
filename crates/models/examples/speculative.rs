//! How much faster a model generates with a draft that guesses ahead.
//!
//! ```sh
//! cargo run --release -p burn-attn-models --example speculative
//! ```
//!
//! The pair is made to agree: the draft is the first two of the model's twelve layers, and the other ten change little. Real pairs agree as
//! far as they have learnt the same. How many guesses were kept is printed, and whether rounding has led to other tokens.

use std::time::{Duration, Instant};

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use burn_attn_models::{
    generate::{GenerateOptions, generate, speculate},
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
};

const LAYERS: usize = 12;
const LAYERS_OF_DRAFT: usize = 2;
const TOKENS: usize = 128;
const GUESSES: usize = 4;
/// Measurements of each, in turn.
const ROUNDS: usize = 5;

fn main() {
    let device = Device::default();
    burn_attn::seed(&device, 1);
    let config = |layers| {
        LanguageModelConfig::new(4_000)
            .with_d_model(384)
            .with_n_heads(6)
            .with_d_ff(1536)
            .with_n_layers(layers)
            .with_max_len(256)
            .with_absolute_position(AbsolutePosition::Sinusoidal)
    };
    let mut model: LanguageModel = config(LAYERS).init(&device);
    for layer in &mut model.transformer.layers[LAYERS_OF_DRAFT..] {
        quieten(&mut layer.self_attention.output.weight);
        if let Some(feed_forward) = &mut layer.feed_forward {
            quieten(&mut feed_forward.linear_outer.weight);
        }
    }
    let mut draft: LanguageModel = config(LAYERS_OF_DRAFT).init(&device);
    draft.embedding = model.embedding.clone();
    draft.transformer.layers = model.transformer.layers[..LAYERS_OF_DRAFT].to_vec();
    draft.transformer.norm = model.transformer.norm.clone();
    println!(
        "model: {} parameters, draft: {}",
        model.num_params(),
        draft.num_params()
    );

    let prompts = [(0..16)
        .map(|token| token * 97 % 4_000)
        .collect::<Vec<u32>>()];
    let options = GenerateOptions::new(TOKENS);
    let mut times = [Vec::new(), Vec::new()];
    let (mut kept, mut differ) = (0.0, None);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let alone = generate(&model, model.start(1), &prompts, &options)
            .expect("the prompt is one that the model can read");
        times[0].push(start.elapsed());

        let start = Instant::now();
        let pair = ((&model, model.start(1)), (&draft, draft.start(1)));
        let found = speculate(pair.0, pair.1, &prompts, &options, GUESSES)
            .expect("the prompt is one that both can read");
        times[1].push(start.elapsed());
        kept = found.accepted as f64 / found.guessed as f64;
        let mut both = found.generations[0].tokens.iter().zip(&alone[0].tokens);
        differ = differ.or(both.position(|(a, b)| a != b));
    }
    let [alone, together] = times.map(median);
    println!(
        "{TOKENS} tokens: {:.2} times as fast with {GUESSES} guesses, of which {:.0} % were kept",
        alone.as_secs_f64() / together.as_secs_f64(),
        100.0 * kept
    );
    if let Some(at) = differ {
        println!(
            "The tokens differ from number {at} on: the two most probable ones were too close for rounding."
        );
    }
}

/// Makes a projection into the residual stream add little.
fn quieten(weight: &mut Param<Tensor<2>>) {
    *weight = weight.clone().map(|weight| weight * 0.02);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
