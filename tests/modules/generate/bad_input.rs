//! Every mistake has its sentence.

use burn_attn_models::generate::{
    BeamOptions, GenerateError, GenerateOptions, Sampling, beam_search, generate, stream,
};
use burn_attn_tests::sentence;

use super::{Scripted, clock, prompts};

#[test]
fn temperatures() {
    for (temperature, said) in [
        (0.0, "0"),
        (-0.5, "-0.5"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
    ] {
        assert_eq!(
            sentence(|| Sampling::temperature(temperature)),
            format!(
                "Sampling: temperature must be positive and finite, got {said}; always the most probable token is \
                 Sampling::greedy()"
            )
        );
    }
}

#[test]
fn sampling_filters_out_of_range_are_refused() {
    assert_eq!(
        sentence(|| Sampling::greedy().top_k(0)),
        "Sampling: top_k must be at least 1, got 0"
    );
    for (top_p, said) in [(0.0, "0"), (1.5, "1.5"), (-0.1, "-0.1"), (f64::NAN, "NaN")] {
        assert_eq!(
            sentence(|| Sampling::greedy().top_p(top_p)),
            format!("Sampling: top_p must be in (0, 1], got {said}")
        );
    }
    for (min_p, said) in [(1.01, "1.01"), (-0.1, "-0.1"), (f64::NAN, "NaN")] {
        assert_eq!(
            sentence(|| Sampling::greedy().min_p(min_p)),
            format!("Sampling: min_p must be in [0, 1], got {said}")
        );
    }
}

#[test]
fn penalties() {
    for (penalty, said) in [
        (0.0, "0"),
        (-1.2, "-1.2"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
    ] {
        assert_eq!(
            sentence(|| GenerateOptions::new(5).repetition_penalty(penalty)),
            format!("GenerateOptions: repetition_penalty must be positive and finite, got {said}")
        );
    }
    assert_eq!(
        sentence(|| BeamOptions::new(2, 5).length_penalty(f64::NAN)),
        "BeamOptions: length_penalty must be finite, got NaN"
    );
}

#[test]
fn beams() {
    assert_eq!(
        sentence(|| BeamOptions::new(0, 5)),
        "BeamOptions: beam must be at least 1, got 0"
    );
    for n_best in [0, 4] {
        assert_eq!(
            sentence(|| BeamOptions::new(3, 5).n_best(n_best)),
            format!("BeamOptions: n_best must be between 1 and the beam of 3, got {n_best}")
        );
    }
    let model = Scripted::new(clock);
    assert_eq!(
        sentence(|| model.search(&prompts(), &BeamOptions::new(8, 5))),
        "generate: a beam of 8 is wider than the vocabulary of 7 tokens"
    );
    assert_eq!(model.search(&prompts(), &BeamOptions::new(7, 5)).len(), 4);
}

/// The one sentence that all three ways to generate say.
#[track_caller]
fn refused(max_len: usize, rows: usize, prompts: &[Vec<u32>], stop_tokens: [u32; 2]) -> String {
    let model = Scripted::new(clock).with_max_len(max_len);
    let options = GenerateOptions::new(5).stop_tokens(stop_tokens);
    let state = || vec![vec![2, 3]; rows];
    let error = generate(&model, state(), prompts, &options).unwrap_err();
    // Before the first step.
    assert_eq!(
        stream(&model, state(), prompts, &options).err(),
        Some(error.clone())
    );
    let options = BeamOptions::new(2, 5).stop_tokens(stop_tokens);
    assert_eq!(
        beam_search(&model, state(), prompts, &options),
        Err(error.clone())
    );
    assert_eq!(model.steps.borrow().len(), 0);
    error.to_string()
}

#[test]
fn prompts_that_do_not_fit() {
    let prompts = [vec![1, 2], vec![3, 4, 5, 6, 0]];
    assert_eq!(
        refused(9, 3, &prompts, [0, 1]),
        "generate: 2 prompts for a state of 3 rows"
    );
    // The state has read two tokens before.
    assert_eq!(
        refused(6, 2, &prompts, [0, 1]),
        "generate: prompt 1 brings its row to 7 tokens, but the model holds at most 6"
    );
    assert_eq!(
        refused(9, 2, &[vec![1, 2], vec![]], [0, 1]),
        "generate: prompt 1 is empty; it needs at least one token, such as the begin token"
    );
}

#[test]
fn tokens_outside_the_vocabulary() {
    assert_eq!(
        refused(9, 2, &[vec![1], vec![6, 7]], [0, 1]),
        "generate: token 7 of prompt 1 is outside the vocabulary of 7 tokens"
    );
    assert_eq!(
        refused(9, 2, &[vec![1], vec![6]], [6, 7]),
        "generate: stop token 7 is outside the vocabulary of 7 tokens"
    );
}

/// What both ways to generate say to a model with these logits.
#[track_caller]
fn of_model(logits: &[f32]) -> String {
    let model = Scripted::new(|_: &[u32]| logits.to_vec());
    let sampled = GenerateOptions::new(5).sampling(Sampling::temperature(1.0));
    let (prompts, state) = ([vec![1]], || vec![vec![]]);
    let error = generate(&model, state(), &prompts, &GenerateOptions::new(5)).unwrap_err();
    let said = error.to_string();
    let error = generate(&model, state(), &prompts, &sampled).unwrap_err();
    assert_eq!(error.to_string(), said);
    let searched = beam_search(&model, state(), &prompts, &BeamOptions::new(2, 5));
    assert_eq!(searched.unwrap_err().to_string(), said);
    // A stream ends with its error.
    let mut steps = stream(&model, state(), &prompts, &sampled).unwrap();
    let step = steps.next().unwrap();
    assert_eq!(step.unwrap_err().to_string(), said);
    assert_eq!(steps.next(), None);
    said
}

#[test]
fn models_that_say_nonsense() {
    assert_eq!(
        of_model(&[0.0, 1.0, f32::NAN, 2.0, 0.0, 0.0, 0.0]),
        "generate: in row 0, the logit of token 2 is NaN, and the largest must be finite"
    );
    assert_eq!(
        of_model(&[f32::NEG_INFINITY; 7]),
        "generate: in row 0, the logit of token 0 is -inf, and the largest must be finite"
    );
    assert_eq!(
        of_model(&[0.0, 1.0, 2.0, f32::INFINITY, 0.0, 0.0, 0.0]),
        "generate: in row 0, the logit of token 3 is inf, and the largest must be finite"
    );
    assert_eq!(
        of_model(&[0.0; 5]),
        "generate: the model gave logits [1, 5] instead of [1, 7]"
    );
    assert_eq!(
        sentence(|| Sampling::temperature(1.0).distribution(&[])),
        "generate: there are no logits"
    );
}

#[test]
fn models_in_training() {
    let mut model = Scripted::new(clock);
    model.device = model.device.autodiff();
    let prompts = [vec![1, 2], vec![3]];
    let options = GenerateOptions::new(5);
    let state = || model.start(&prompts);
    let error = generate(&model, state(), &prompts, &options).unwrap_err();
    assert_eq!(error, GenerateError::Autodiff);
    assert_eq!(
        error.to_string(),
        "generate: the model is on an autodiff device, where dropout acts and every step is kept for gradients; generate with \
         model.valid()"
    );
    let mut steps = stream(&model, state(), &prompts, &options).unwrap();
    assert_eq!(steps.next(), Some(Err(GenerateError::Autodiff)));
    assert_eq!(
        beam_search(&model, state(), &prompts, &BeamOptions::new(2, 5)),
        Err(GenerateError::Autodiff)
    );
}

#[test]
fn nonsense_is_said_of_its_row() {
    let model = Scripted::new(|row: &[u32]| vec![if row[0] == 3 { f32::NAN } else { 0.0 }; 7]);
    let prompts = [vec![1], vec![3]];
    let said = "generate: in row 1, the logit of token 0 is NaN, and the largest must be finite";
    let options = GenerateOptions::new(5);
    let error = generate(&model, model.start(&prompts), &prompts, &options);
    assert_eq!(error.unwrap_err().to_string(), said);
    let options = BeamOptions::new(2, 5);
    let error = beam_search(&model, model.start(&prompts), &prompts, &options);
    assert_eq!(error.unwrap_err().to_string(), said);
}
