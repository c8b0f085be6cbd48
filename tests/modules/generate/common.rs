//! Prompts with a common beginning, which a language model reads once.

use burn_attn::{BlockConfig, positions::PositionEncoding};
use burn_attn_models::{
    generate::{
        Autoregressive, BeamOptions, GenerateOptions, Sampling, beam_search, generate, stream,
    },
    language_model::{LanguageModel, LanguageModelConfig},
};
use burn_attn_tests::{devices, numbers::filled};

const VOCABULARY: usize = 31;

fn model(position: PositionEncoding) -> LanguageModel {
    let block = BlockConfig::new().with_position(position);
    let config = LanguageModelConfig::new(VOCABULARY)
        .with_d_model(32)
        .with_n_heads(4)
        .with_n_layers(2)
        .with_d_ff(48)
        .with_max_len(90)
        .with_block(block);
    filled(config.init(&devices::any()), 1)
}

/// Four prompts that begin with the same `common` tokens; one of them has no more than one other.
fn prompts(common: u32) -> Vec<Vec<u32>> {
    let beginning = || (0..common).map(|token| token * 7 % 29);
    let ends: [&[u32]; 4] = [&[30, 1, 2, 3], &[5], &[6, 7], &[30, 1, 9]];
    let prompts = ends
        .iter()
        .map(|end| beginning().chain(end.iter().copied()).collect());
    prompts.collect()
}

#[test]
fn the_tokens_are_those_of_each_prompt_alone() {
    for position in [PositionEncoding::None, PositionEncoding::alibi()] {
        let model = model(position);
        for common in [15, 16, 40] {
            let prompts = prompts(common);
            let greedy = GenerateOptions::new(12);
            let drawn = GenerateOptions::new(12).sampling(Sampling::temperature(1.0));
            // Seeds are by row: only the first is the same alone.
            for (options, rows) in [(greedy, 4), (drawn.seed(7), 1)] {
                let run = |prompts: &[Vec<u32>]| {
                    let start = model.start(prompts.len());
                    generate(&model, start, prompts, &options).expect("prompts")
                };
                let together = run(&prompts);
                for (row, prompt) in prompts.iter().enumerate().take(rows) {
                    let alone = run(std::slice::from_ref(prompt));
                    assert_eq!(together[row].tokens, alone[0].tokens, "{common}, row {row}");
                }
            }
            let best = |prompts: &[Vec<u32>]| -> Vec<Vec<u32>> {
                let start = model.start(prompts.len());
                let found = beam_search(&model, start, prompts, &BeamOptions::new(3, 6));
                let best = found.expect("prompts").into_iter();
                best.map(|found| found[0].generation.tokens.clone())
                    .collect()
            };
            let alone = prompts.chunks(1).flat_map(best);
            assert_eq!(best(&prompts), alone.collect::<Vec<_>>(), "{common}");
        }
    }
}

#[test]
fn a_beginning_is_held_once() {
    let model = model(PositionEncoding::rotary());
    let bytes = |common| {
        let prompts = prompts(common);
        let options = GenerateOptions::new(3);
        let mut steps = stream(&model, model.start(4), &prompts, &options).expect("prompts");
        steps.next().expect("a step").expect("tokens");
        let (state, unread) = steps.into_state();
        assert_eq!(unread.len(), 4);
        let lengths = prompts.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(model.lengths(&state), lengths);
        let mut copied = model.start(4);
        let tokens: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        model.advance(&mut copied, &tokens);
        (state.bytes(), copied.bytes())
    };
    let (few, copied) = bytes(15);
    assert_eq!(few, copied);
    let (held, copied) = bytes(80);
    // Keys and values of 80 tokens of width 32 in f32, in two layers.
    let once = 2 * 2 * 80 * 32 * 4;
    // Behind them, room for what is left of the longest sequence.
    let room = 4 * 2 * 2 * (90 - 80) * 32 * 4;
    assert_eq!(held, once + room);
    assert!(copied >= 4 * once, "{copied}");
}
