//! Greedy and beam search, against the model's own probabilities.

use std::cell::Cell;

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};
use burn_attn_models::{
    generate::{Generation, SearchOptions, search},
    seq2seq::Seq2Seq,
};

use super::{VOCABULARY, batch, model, options, sources};
use crate::{compare::numbers, devices};

fn generate(
    model: &Seq2Seq,
    sources: &[Vec<i32>],
    options: &SearchOptions,
    device: &Device,
) -> Vec<Generation> {
    let (tokens, lengths) = batch(sources, 0, 5, device);
    search(model, tokens, lengths, options)
}

/// Log-probabilities of the next token after each prefix of `target`, row after row, for one source.
fn log_probabilities(
    model: &Seq2Seq,
    source: &[i32],
    target: &[i32],
    device: &Device,
) -> Vec<Vec<f32>> {
    let (tokens, lengths) = batch(&[source.to_vec()], 0, source.len(), device);
    let memory = model.encode(tokens, lengths);
    let target = TensorData::new(target.to_vec(), [1, target.len()]);
    let logits = model.decode(Tensor::<2, Int>::from_data(target, device), &memory);
    let rows = numbers(&log_softmax(logits, 2));
    rows.chunks(VOCABULARY).map(<[f32]>::to_vec).collect()
}

/// The log-probability of `generation` from one run of the decoder over all of it.
fn log_probability(
    model: &Seq2Seq,
    source: &[i32],
    generation: &Generation,
    options: &SearchOptions,
) -> f64 {
    let device = devices::any();
    let mut target = vec![options.bos as i32];
    target.extend(generation.tokens.iter().map(|&token| token as i32));
    let rows = log_probabilities(model, source, &target, &device);
    let mut next = target[1..].to_vec();
    // An output cut off at the limit has no end whose probability counts.
    if generation.tokens.len() < options.max_len {
        next.push(options.eos as i32);
    }
    let of_tokens = next.iter().zip(&rows);
    of_tokens
        .map(|(&token, row)| f64::from(row[token as usize]))
        .sum()
}

/// The most probable token, one after the other.
fn greedy_by_hand(
    model: &Seq2Seq,
    source: &[i32],
    options: &SearchOptions,
    device: &Device,
) -> Vec<u32> {
    let mut target = vec![options.bos as i32];
    while target.len() <= options.max_len {
        let rows = log_probabilities(model, source, &target, device);
        let last = rows.last().expect("a row for the last token");
        let best = (0..VOCABULARY).reduce(|best, token| {
            if last[token] > last[best] {
                token
            } else {
                best
            }
        });
        let best = best.expect("a vocabulary") as i32;
        if best == options.eos as i32 {
            break;
        }
        target.push(best);
    }
    target[1..].iter().map(|&token| token as u32).collect()
}

/// Runs `check` with every token as the end: some outputs stop at once, some late and some never.
fn with_every_end(beam: usize, check: impl Fn(&Seq2Seq, SearchOptions)) {
    let device = devices::any();
    for seed in 1..4 {
        let model = model(seed, &device);
        for eos in 1..VOCABULARY as u32 {
            check(
                &model,
                SearchOptions {
                    eos,
                    ..options(beam)
                },
            );
        }
    }
}

#[test]
fn a_beam_of_one_is_greedy() {
    let device = devices::any();
    with_every_end(1, |model, options| {
        let generations = generate(model, &sources(), &options, &device);
        for (source, generation) in sources().iter().zip(generations) {
            assert_eq!(
                generation.tokens,
                greedy_by_hand(model, source, &options, &device)
            );
        }
    });
}

#[test]
fn the_log_probability_is_the_models() {
    let device = devices::any();
    for beam in [1, 2, 4, VOCABULARY] {
        with_every_end(beam, |model, options| {
            let generations = generate(model, &sources(), &options, &device);
            for (source, generation) in sources().iter().zip(generations) {
                let expected = log_probability(model, source, &generation, &options);
                assert!(
                    (generation.log_probability - expected).abs() < 1e-4,
                    "{options:?}: {generation:?} against {expected}"
                );
            }
        });
    }
}

#[test]
fn a_wide_beam_finds_something_at_least_as_probable_as_greedy() {
    let device = devices::any();
    let (ended, better) = (Cell::new(0), Cell::new(0));
    with_every_end(1, |model, options| {
        let greedy = generate(model, &sources(), &options, &device);
        let wide = SearchOptions {
            beam: VOCABULARY,
            ..options.clone()
        };
        let wide = generate(model, &sources(), &wide, &device);
        for (greedy, wide) in greedy.iter().zip(&wide) {
            // An output that ended is preferred to a more probable one that did not: only ended ones compare.
            if greedy.tokens.len() == options.max_len {
                continue;
            }
            assert!(
                wide.log_probability >= greedy.log_probability - 1e-6,
                "{options:?}: {wide:?} against {greedy:?}"
            );
            ended.set(ended.get() + 1);
            better.set(better.get() + usize::from(wide.tokens != greedy.tokens));
        }
    });
    println!(
        "{} greedy outputs ended, the beam found better ones for {}",
        ended.get(),
        better.get()
    );
    assert!(better.get() > 0 && ended.get() > better.get());
}

#[test]
fn a_length_penalty_favours_longer_outputs() {
    let device = devices::any();
    let tokens = |length_penalty| {
        let count = Cell::new(0);
        with_every_end(4, |model, options| {
            let options = SearchOptions {
                length_penalty,
                ..options
            };
            for generation in generate(model, &sources(), &options, &device) {
                count.set(count.get() + generation.tokens.len());
            }
        });
        count.get()
    };
    assert!(tokens(2.0) > tokens(0.0));
}

#[test]
fn padding_changes_nothing() {
    for (_, device) in devices::cpu() {
        let model = model(1, &device);
        for beam in [1, 4] {
            let run = |padding, len| {
                let (tokens, lengths) = batch(&sources(), padding, len, &device);
                search(&model, tokens, lengths, &options(beam))
            };
            let expected = run(0, 5);
            // The same shape with other padding gives the same bits.
            assert_eq!(run(12, 5), expected);
            for (longer, expected) in run(3, 9).iter().zip(&expected) {
                assert_eq!(longer.tokens, expected.tokens);
                assert!((longer.log_probability - expected.log_probability).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn the_order_of_a_batch_does_not_matter() {
    for (_, device) in devices::cpu() {
        let model = model(1, &device);
        for beam in [1, 4] {
            let expected = generate(&model, &sources(), &options(beam), &device);
            let reversed: Vec<_> = sources().into_iter().rev().collect();
            let reversed = generate(&model, &reversed, &options(beam), &device);
            for (one, expected) in reversed.iter().rev().zip(&expected) {
                assert_eq!(one.tokens, expected.tokens);
                assert!((one.log_probability - expected.log_probability).abs() < 1e-5);
            }
            // Nor does the company.
            for (source, expected) in sources().iter().zip(&expected) {
                let alone = generate(
                    &model,
                    std::slice::from_ref(source),
                    &options(beam),
                    &device,
                );
                assert_eq!(alone[0].tokens, expected.tokens);
                assert!((alone[0].log_probability - expected.log_probability).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_search_repeats() {
    let device = devices::any();
    let model = model(1, &device);
    let first = generate(&model, &sources(), &options(4), &device);
    assert_eq!(generate(&model, &sources(), &options(4), &device), first);
}
