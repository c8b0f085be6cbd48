//! The repetition penalty moves positive logits down by division, negative ones by multiplication.

use burn_attn_models::generate::{GenerateOptions, Sampling};

use super::{Scripted, VOCABULARY};

/// The greedy token after `prompt`, where the logits are always those given, and all others lower.
fn choice(logits: [(u32, f32); 2], prompt: &[u32], penalty: f64) -> u32 {
    let rule = |_: &[u32]| {
        let mut all = vec![-50.0; VOCABULARY];
        for (token, logit) in logits {
            all[token as usize] = logit;
        }
        all
    };
    let options = GenerateOptions::new(1).repetition_penalty(penalty);
    let generations = Scripted::new(rule).generate(&[prompt.to_vec()], &options);
    generations[0].tokens[0]
}

#[test]
fn positive_logits_are_divided() {
    let logits = [(2, 2.0), (5, 1.5)];
    // 2 / 1.3 ≈ 1.54 still leads, 2 / 1.4 ≈ 1.43 does not.
    assert_eq!(choice(logits, &[2], 1.3), 2);
    assert_eq!(choice(logits, &[2], 1.4), 5);
    // Once, however often the token occurred: 2 / 1.3² ≈ 1.18 would not lead.
    assert_eq!(choice(logits, &[2, 2, 0, 2], 1.3), 2);
    // A tie goes to the smaller token.
    assert_eq!(choice([(2, 2.0), (5, 1.0)], &[2], 2.0), 2);
}

#[test]
fn negative_logits_are_multiplied() {
    let logits = [(2, -1.0), (5, -1.25)];
    assert_eq!(choice(logits, &[2], 1.2), 2);
    assert_eq!(choice(logits, &[2], 1.3), 5);
}

#[test]
fn below_one_repetition_is_favoured() {
    assert_eq!(choice([(2, 2.0), (5, 1.5)], &[5], 0.8), 2);
    assert_eq!(choice([(2, 2.0), (5, 1.5)], &[5], 0.7), 5);
    assert_eq!(choice([(2, -1.0), (5, -1.25)], &[5], 0.7), 5);
}

#[test]
fn zeros_and_impossible_tokens_stay() {
    assert_eq!(choice([(2, 0.0), (5, -0.1)], &[2], 9.0), 2);
    let impossible = [(2, f32::NEG_INFINITY), (5, -0.1)];
    assert_eq!(choice(impossible, &[2], 0.1), 5);
}

#[test]
fn new_tokens_count_as_much_as_the_prompt() {
    // Without a penalty always 4; with one, each token once, in the order of their logits.
    let rule = |_: &[u32]| vec![1.0, 1.1, 1.2, 1.3, 1.4, 1.05, 1.15];
    let model = Scripted::new(rule);
    let run = |penalty| {
        let options = GenerateOptions::new(6).repetition_penalty(penalty);
        model.generate(&[vec![5]], &options)[0].tokens.clone()
    };
    assert_eq!(run(1.0), [4; 6]);
    assert_eq!(run(2.0), [4, 3, 2, 6, 1, 0]);
}

#[test]
fn what_was_likely_is_said_of_the_model_itself() {
    let model = Scripted::new(super::arbitrary(4, 2.0));
    let options = GenerateOptions::new(11)
        .sampling(Sampling::temperature(0.6).top_k(3))
        .repetition_penalty(1.7);
    for (prompt, generation) in super::prompts()
        .iter()
        .zip(model.generate(&super::prompts(), &options))
    {
        let expected = model.log_probabilities(prompt, &generation.tokens);
        assert_eq!(generation.log_probabilities.len(), 11);
        for (actual, expected) in generation.log_probabilities.iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-12);
        }
    }
}
