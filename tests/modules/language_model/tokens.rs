//! Generation through the cache finds the tokens that reading the whole text for every new one finds.

use burn::tensor::{Device, activation::log_softmax};
use burn_attn_models::{
    generate::{BeamOptions, GenerateOptions, beam_search, generate},
    language_model::LanguageModel,
};
#[cfg(feature = "wgpu")]
use burn_attn_tests::compare::difference;
use burn_attn_tests::{compare::numbers, devices};

use super::{Case, PROMPTS, VOCABULARY, batch, cases, model, small, texts};

/// Log-probabilities of the token after `text`, without a cache.
fn next(model: &LanguageModel, text: &[u32], device: &Device) -> Vec<f32> {
    let logits = model.forward(batch(&[text.to_vec()], device));
    let last = logits.narrow(1, text.len() - 1, 1);
    numbers(&log_softmax(last, 2))
}

/// The tokens from the most probable one on, with their log-probabilities.
fn ranked(log_probabilities: Vec<f32>) -> Vec<(u32, f32)> {
    let mut ranked: Vec<(u32, f32)> = (0..).zip(log_probabilities).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// Prompts of these lengths.
fn prompts(lengths: [usize; 3]) -> Vec<Vec<u32>> {
    let texts = texts(3).into_iter().zip(lengths);
    texts.map(|(text, len)| text[..len].to_vec()).collect()
}

#[test]
fn greedy_tokens_are_the_uncached_ones() {
    let device = devices::any();
    let mut found = Vec::new();
    for Case { name, config, .. } in cases() {
        let model = model(&config, &device);
        for lengths in PROMPTS {
            let prompts = prompts(lengths);
            // The longest prompt goes as far as the model does.
            let start = model.start_with(3, &small());
            let outputs = generate(&model, start, &prompts, &GenerateOptions::new(7)).unwrap();
            for (prompt, output) in prompts.iter().zip(outputs) {
                let mut text = prompt.clone();
                for (&token, &log_probability) in
                    output.tokens.iter().zip(&output.log_probabilities)
                {
                    let (best, expected) = ranked(next(&model, &text, &device))[0];
                    assert_eq!(token, best, "{name}, after {text:?}");
                    assert!((log_probability - f64::from(expected)).abs() < 1e-4);
                    text.push(best);
                }
                assert_eq!(output.tokens.len(), 7);
                found.push(output.tokens);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    println!("{} different outputs", found.len());
    assert!(found.len() > 150, "{} different outputs", found.len());
}

/// The `beam` most probable continuations, best first, where none ends.
fn beam_by_hand(
    model: &LanguageModel,
    prompt: &[u32],
    beam: usize,
    steps: usize,
    device: &Device,
) -> Vec<(Vec<u32>, f64)> {
    let mut live = vec![(prompt.to_vec(), 0.0)];
    for _ in 0..steps {
        let mut all = Vec::with_capacity(live.len() * VOCABULARY);
        for (text, total) in live {
            for (token, log_probability) in ranked(next(model, &text, device)) {
                all.push((
                    [text.as_slice(), &[token]].concat(),
                    total + f64::from(log_probability),
                ));
            }
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(beam);
        live = all;
    }
    live
}

#[test]
fn a_beam_finds_what_an_uncached_one_finds() {
    const BEAM: usize = 3;
    let device = devices::any();
    let mut better = 0;
    for case in cases() {
        // The grouping that is neither all nor one.
        if case.config.block.heads.n_kv_heads != Some(2) {
            continue;
        }
        let model = model(&case.config, &device);
        let prompts = prompts(PROMPTS[1]);
        let options = BeamOptions::new(BEAM, 5).n_best(BEAM);
        let found = beam_search(&model, model.start_with(3, &small()), &prompts, &options).unwrap();
        for (prompt, found) in prompts.iter().zip(found) {
            let expected = beam_by_hand(&model, prompt, BEAM, 5, &device);
            assert_eq!(found.len(), BEAM);
            for (found, (text, total)) in found.iter().zip(&expected) {
                let what = format!("{}, after {prompt:?}", case.name);
                assert_eq!(found.generation.tokens, text[prompt.len()..], "{what}");
                assert!((found.score - total).abs() < 1e-4, "{what}");
            }
            let greedy = beam_by_hand(&model, prompt, 1, 5, &device);
            better += usize::from(expected[0].0 != greedy[0].0);
        }
    }
    println!("the beam beats greedy {better} times");
    assert!(better > 0);
}

#[cfg(feature = "wgpu")]
#[test]
fn wgpu_generates_what_the_cpu_generates() {
    let Some(wgpu) = devices::wgpu() else { return };
    for Case { name, config, .. } in cases() {
        // One grouping is enough: every one is compared on the CPU.
        if config.block.heads.n_kv_heads != Some(2) {
            continue;
        }
        for lengths in PROMPTS {
            let [expected, found] = [&devices::any(), &wgpu].map(|device| {
                let model = model(&config, device);
                let start = model.start_with(3, &small());
                generate(&model, start, &prompts(lengths), &GenerateOptions::new(7)).unwrap()
            });
            for (expected, found) in expected.iter().zip(found) {
                assert_eq!(
                    found.tokens, expected.tokens,
                    "{name}, prompts of {lengths:?}"
                );
                let off = difference(&found.log_probabilities, &expected.log_probabilities);
                assert!(off < 1e-3, "{name}: off by {off}");
            }
        }
    }
}
