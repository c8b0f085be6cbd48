//! Beam search, against what is known to be best.

use burn_attn_models::generate::{
    BeamOptions, FinishReason, GenerateOptions, Generation, Hypothesis,
};

use super::{Scripted, VOCABULARY, arbitrary, clock, logits_of, prompts};

/// Ends an output.
const END: u32 = 1;

/// The hypotheses for a prompt of one token, 0.
fn found(rule: impl Fn(&[u32]) -> Vec<f32>, options: &BeamOptions) -> Vec<Hypothesis> {
    Scripted::new(rule).search(&[vec![0]], options).remove(0)
}

/// What they are, and how they end.
fn outputs(found: Vec<Hypothesis>) -> Vec<(Vec<u32>, FinishReason)> {
    let generations = found.into_iter().map(|found| found.generation);
    generations
        .map(|output| (output.tokens, output.finish_reason))
        .collect()
}

fn ends(beam: usize, max_new_tokens: usize) -> BeamOptions {
    BeamOptions::new(beam, max_new_tokens).stop_tokens([END])
}

/// Token 2 looks better at first, but all that follows it is improbable; token 3 ends well.
fn a_trap(tokens: &[u32]) -> Vec<f32> {
    match tokens {
        [0] => logits_of([0.01, 0.01, 0.6, 0.35, 0.01, 0.01, 0.01]),
        [0, 2] => logits_of([0.16, 0.16, 0.04, 0.16, 0.16, 0.16, 0.16]),
        [0, 3] => logits_of([0.01, 0.9, 0.02, 0.02, 0.02, 0.02, 0.01]),
        _ => logits_of([0.02, 0.4, 0.02, 0.02, 0.02, 0.5, 0.02]),
    }
}

#[test]
fn a_beam_finds_what_greedy_misses() {
    let model = Scripted::new(a_trap);
    let prompts = [vec![0]];
    let greedy = model.generate(&prompts, &GenerateOptions::new(9).stop_tokens([END]));
    assert_eq!(greedy[0].tokens[0], 2);
    let narrow = model.search(&prompts, &ends(1, 9)).remove(0);
    assert_eq!(narrow[0].generation, greedy[0]);

    let wide = model.search(&prompts, &ends(2, 9)).remove(0);
    assert_eq!(wide.len(), 1);
    assert_eq!(wide[0].generation.tokens, [3]);
    assert_eq!(wide[0].generation.finish_reason, FinishReason::Stop(END));
    let expected = (0.35f64 * 0.9).ln();
    assert!((wide[0].score - expected).abs() < 1e-6);
    assert!(wide[0].score > greedy[0].log_probability());
}

#[test]
fn improbable_ends_do_not_stop_a_search() {
    // A confident first step: the end is in a beam of 2, but hardly probable, and so is it in the second.
    let rule = |tokens: &[u32]| match tokens {
        [0] => vec![-99.0, -8.0, 0.0, -9.0, -99.0, -99.0, -99.0],
        [0, 2] => vec![-99.0, -8.0, -9.0, 0.0, -99.0, -99.0, -99.0],
        _ => vec![-99.0, 0.0, -9.0, -9.0, -99.0, -99.0, -99.0],
    };
    let found = found(rule, &ends(2, 9));
    assert_eq!(found[0].generation.tokens, [2, 3]);
}

#[test]
fn improbable_ends_do_not_beat_outputs_that_were_cut_off() {
    // The end is the fourth of a beam of 4 after the first step, and impossible later.
    let rule = |tokens: &[u32]| match tokens {
        [0] => logits_of([0.002, 0.004, 0.97, 0.01, 0.008, 0.003, 0.003]),
        _ => logits_of([0.02, 0.0, 0.9, 0.02, 0.02, 0.02, 0.02]),
    };
    let cut_off = found(rule, &ends(4, 20));
    assert_eq!(cut_off[0].generation.tokens, [2; 20]);
    assert_eq!(cut_off[0].generation.finish_reason, FinishReason::Length);
    let expected = 0.97f64.ln() + 19.0 * 0.9f64.ln();
    assert!((cut_off[0].score - expected).abs() < 1e-5);
    assert!(cut_off[0].score > 0.004f64.ln() + 3.0, "by far");

    // A probable end still beats what is less probable than it.
    let rule = |tokens: &[u32]| match tokens {
        [0] => logits_of([0.01, 0.3, 0.6, 0.02, 0.02, 0.03, 0.02]),
        _ => logits_of([0.1, 0.0, 0.4, 0.1, 0.1, 0.2, 0.1]),
    };
    assert_eq!(
        outputs(found(rule, &ends(2, 3).n_best(2))),
        [
            (vec![], FinishReason::Stop(END)),
            (vec![2, 2, 2], FinishReason::Length)
        ]
    );
}

#[test]
fn a_beam_of_one_is_greedy() {
    let mut lengths = Vec::new();
    for seed in 0..7 {
        let model = Scripted::new(arbitrary(seed, 3.0)).with_max_len(13);
        for stop_tokens in [vec![], vec![END], vec![1, 4, 6]] {
            let options = GenerateOptions::new(11).stop_tokens(stop_tokens.clone());
            let greedy = model.generate(&prompts(), &options);
            for length_penalty in [-1.0, 0.0, 0.6, 2.0] {
                let options = BeamOptions::new(1, 11)
                    .stop_tokens(stop_tokens.clone())
                    .length_penalty(length_penalty);
                let found = model.search(&prompts(), &options);
                for (greedy, found) in greedy.iter().zip(found) {
                    assert_eq!(found.len(), 1);
                    assert_eq!(&found[0].generation, greedy);
                }
            }
            lengths.extend(greedy.iter().map(|output| output.tokens.len()));
        }
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(
        lengths.len() > 5,
        "outputs of different lengths: {lengths:?}"
    );
}

/// Every output that `END` ends within `left` steps, or, where there are none left, that is cut off.
fn every_output(so_far: &[u32], left: usize, outputs: &mut Vec<(Vec<u32>, bool)>) {
    if left == 0 {
        outputs.push((so_far.to_vec(), false));
        return;
    }
    for token in 0..VOCABULARY as u32 {
        if token == END {
            outputs.push((so_far.to_vec(), true));
        } else {
            every_output(&[so_far, &[token]].concat(), left - 1, outputs);
        }
    }
}

#[test]
fn the_n_best_are_the_best_of_all() {
    // Ends are probable enough that a beam as wide as the vocabulary loses none of the best.
    let mut endings = Vec::new();
    for seed in 0..12 {
        let rule = arbitrary(seed, 3.0);
        let model = Scripted::new(|tokens: &[u32]| {
            let mut logits = rule(tokens);
            logits[END as usize] += 2.0;
            logits
        });
        for length_penalty in [0.0, 1.0] {
            let options = ends(VOCABULARY, 3).n_best(3).length_penalty(length_penalty);
            let found = model.search(&[vec![0]], &options).remove(0);
            let mut outputs = Vec::new();
            every_output(&[], 3, &mut outputs);
            assert_eq!(outputs.len(), 1 + 6 + 36 + 216);
            let mut ranked: Vec<(f64, Vec<u32>, FinishReason)> = outputs
                .into_iter()
                .map(|(tokens, ended)| {
                    let (all, finish) = match ended {
                        true => (
                            [tokens.as_slice(), &[END]].concat(),
                            FinishReason::Stop(END),
                        ),
                        false => (tokens.clone(), FinishReason::Length),
                    };
                    let sum: f64 = model.log_probabilities(&[0], &all).iter().sum();
                    let penalty = ((5.0 + all.len() as f64) / 6.0).powf(length_penalty);
                    (sum / penalty, tokens, finish)
                })
                .collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (found, (score, tokens, finish)) in found.iter().zip(&ranked) {
                assert_eq!(&found.generation.tokens, tokens, "seed {seed}");
                assert!((found.score - score).abs() < 1e-9);
                assert_eq!(found.generation.finish_reason, *finish);
            }
            endings.extend(found.iter().map(|found| found.generation.tokens.len()));
        }
    }
    endings.sort_unstable();
    endings.dedup();
    assert_eq!(
        endings,
        [0, 1, 2, 3],
        "outputs of every length are among them"
    );
}

/// What holds of the hypotheses of every search.
fn check<F: Fn(&[u32]) -> Vec<f32>>(
    model: &Scripted<F>,
    prompt: &[u32],
    found: &[Hypothesis],
    length_penalty: f64,
) {
    for Hypothesis { generation, score } in found {
        let Generation {
            tokens,
            log_probabilities,
            finish_reason,
        } = generation;
        let mut all = tokens.clone();
        if let FinishReason::Stop(token) = finish_reason {
            all.push(*token);
        }
        let expected = model.log_probabilities(prompt, &all);
        assert_eq!(log_probabilities.len(), expected.len());
        for (actual, expected) in log_probabilities.iter().zip(&expected) {
            assert!((actual - expected).abs() < 1e-12);
        }
        let penalty = ((5.0 + all.len() as f64) / 6.0).powf(length_penalty);
        let expected = expected.iter().sum::<f64>() / penalty;
        assert!(
            (score - expected).abs() < 1e-9,
            "{score} against {expected}"
        );
    }
    for pair in found.windows(2) {
        assert_ne!(pair[0].generation.tokens, pair[1].generation.tokens);
        assert!(pair[0].score >= pair[1].score, "{pair:?}");
    }
}

#[test]
fn scores_are_the_models_and_sorted() {
    let (mut ended, mut cut_off) = (0, 0);
    for seed in 0..11 {
        let model = Scripted::new(arbitrary(seed, 2.0)).with_max_len(8);
        for length_penalty in [0.0, 0.6] {
            let options = ends(5, 6).n_best(5).length_penalty(length_penalty);
            for (prompt, found) in prompts().iter().zip(model.search(&prompts(), &options)) {
                assert_eq!(found.len(), 5);
                check(&model, prompt, &found, length_penalty);
                let ends = found
                    .iter()
                    .filter(|found| found.generation.finish_reason != FinishReason::Length);
                let ends = ends.count();
                (ended, cut_off) = (ended + ends, cut_off + found.len() - ends);
            }
        }
    }
    println!("{ended} ended, {cut_off} were cut off");
    assert!(ended > 100 && cut_off > 10);
}

#[test]
fn a_search_does_not_depend_on_its_batch() {
    let model = Scripted::new(arbitrary(3, 2.0)).with_max_len(8);
    let options = ends(3, 6).n_best(3).length_penalty(1.0);
    let expected = model.search(&prompts(), &options);
    for (prompt, expected) in prompts().into_iter().zip(&expected) {
        assert_eq!(&model.search(&[prompt], &options)[0], expected);
    }
    let reversed: Vec<_> = prompts().into_iter().rev().collect();
    let reversed = model.search(&reversed, &options);
    assert!(reversed.iter().rev().eq(&expected));
}

#[test]
fn a_prompt_ends_where_the_model_does() {
    let model = Scripted::new(clock).with_max_len(6);
    let found = model.search(&prompts(), &BeamOptions::new(2, 4).n_best(2));
    let lengths = |best: &Vec<Hypothesis>| -> Vec<usize> {
        best.iter()
            .map(|found| found.generation.tokens.len())
            .collect()
    };
    let lengths: Vec<_> = found.iter().map(lengths).collect();
    assert_eq!(lengths, [[4, 4], [4, 4], [4, 4], [2, 2]]);
    assert_eq!(found[3][0].generation.tokens, [4, 5]);
    // The first step has one hypothesis of each prompt, later ones two of each that goes on.
    assert_eq!(*model.steps.borrow(), [4, 8, 6, 6]);
}

#[test]
fn several_stop_tokens_leave_the_beam_full() {
    // Between the two tokens that go on lie two ends, and the second of the two leads to a good one.
    let rule = |tokens: &[u32]| match tokens {
        [0] => logits_of([0.01, 0.3, 0.19, 0.14, 0.25, 0.1, 0.01]),
        [0, 5] => logits_of([0.01, 0.01, 0.01, 0.94, 0.01, 0.01, 0.01]),
        _ => vec![0.0; VOCABULARY],
    };
    let options = BeamOptions::new(2, 9).stop_tokens([1, 2, 3]).n_best(2);
    assert_eq!(
        outputs(found(rule, &options)),
        [
            (vec![], FinishReason::Stop(1)),
            (vec![5], FinishReason::Stop(3))
        ]
    );
}

#[test]
fn ties_go_to_the_smaller_token() {
    let options = BeamOptions::new(3, 2).n_best(3);
    let found = found(|_: &[u32]| vec![0.0; VOCABULARY], &options);
    let tokens: Vec<_> = found.iter().map(|found| &found.generation.tokens).collect();
    assert_eq!(tokens, [&[0, 0], &[0, 1], &[0, 2]]);
}

#[test]
fn impossible_tokens_are_no_hypotheses() {
    let rule = |_: &[u32]| {
        let mut logits = vec![f32::NEG_INFINITY; VOCABULARY];
        logits[3] = 1.0;
        logits
    };
    let found = found(rule, &ends(4, 2).n_best(4));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].generation.tokens, [3, 3]);
    assert_eq!(found[0].score, 0.0);
}

#[test]
fn nothing_is_asked_for() {
    let model = Scripted::new(clock);
    let nothing = Hypothesis {
        generation: Generation::default(),
        score: 0.0,
    };
    let found = model.search(&prompts(), &BeamOptions::new(3, 0).n_best(2));
    assert_eq!(found, vec![vec![nothing]; 4]);
    assert_eq!(model.search(&[], &BeamOptions::new(3, 5)), [[]; 0]);
    assert_eq!(model.steps.borrow().len(), 0);
}
