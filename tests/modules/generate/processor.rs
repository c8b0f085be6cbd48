//! Logits that the caller changes.

use std::cell::RefCell;

use burn_attn_models::generate::{GenerateError, GenerateOptions, Sampling, stream};

use super::{Scripted, arbitrary, clock, prompts};

#[test]
fn it_sees_every_row_and_all_of_its_tokens() {
    let model = Scripted::new(clock);
    let seen = RefCell::new(Vec::new());
    let options = GenerateOptions::new(2);
    let steps = stream(&model, model.start(&prompts()), &prompts(), &options).unwrap();
    let steps = steps.logits_processor(|row, tokens, logits| {
        assert_eq!(logits.len(), 7);
        seen.borrow_mut().push((row, tokens.to_vec()));
    });
    assert_eq!(steps.count(), 2);
    let mut expected: Vec<(usize, Vec<u32>)> = prompts().into_iter().enumerate().collect();
    for (row, mut tokens) in expected.clone() {
        tokens.push((tokens[tokens.len() - 1] + 1) % 7);
        expected.push((row, tokens));
    }
    assert_eq!(seen.into_inner(), expected);
}

#[test]
fn what_it_forbids_is_not_chosen_and_the_probabilities_stay_those_of_the_model() {
    let model = Scripted::new(arbitrary(3, 4.0));
    for sampling in [Sampling::greedy(), Sampling::temperature(1.5)] {
        let options = GenerateOptions::new(12).sampling(sampling);
        let steps = stream(&model, model.start(&prompts()), &prompts(), &options).unwrap();
        let steps = steps.logits_processor(|_, _, logits| {
            [0, 2, 5]
                .iter()
                .for_each(|&token: &usize| logits[token] = f32::NEG_INFINITY);
        });
        let mut histories = prompts();
        for choice in steps.flat_map(Result::unwrap) {
            assert!(![0, 2, 5].contains(&choice.token), "{choice:?}");
            let history = &mut histories[choice.row];
            let expected = model.log_probabilities(history, &[choice.token])[0];
            assert!((choice.log_probability - expected).abs() < 1e-5);
            history.push(choice.token);
        }
    }
}

#[test]
fn the_repetition_penalty_comes_before_it() {
    let model = Scripted::new(clock);
    let options = GenerateOptions::new(1).repetition_penalty(2.0);
    let mut steps = stream(&model, vec![vec![]], &[vec![4, 3]], &options)
        .unwrap()
        .logits_processor(|_, _, logits| {
            // The clock's 4 has a logit of 5, and is in the prompt.
            assert_eq!(logits[4], 2.5);
            logits[6] = 3.0;
        });
    assert_eq!(steps.next().unwrap().unwrap()[0].token, 6);
}

#[test]
fn forbidding_everything_is_an_error() {
    let model = Scripted::new(clock);
    let steps = stream(&model, vec![vec![]], &[vec![4]], &GenerateOptions::new(3)).unwrap();
    let refused = steps
        .logits_processor(|_, _, logits| logits.fill(f32::NEG_INFINITY))
        .next();
    let (row, token, logit) = (0, 0, f32::NEG_INFINITY);
    let expected = GenerateError::Logit { row, token, logit };
    assert_eq!(refused, Some(Err(expected)));
}
