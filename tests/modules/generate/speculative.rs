//! A draft that guesses ahead changes how long it takes, and nothing else.

use burn_attn_models::{
    generate::{GenerateError, GenerateOptions, Sampling, Speculation, generate, speculate},
    language_model::{LanguageModel, LanguageModelConfig},
};
use burn_attn_tests::{devices, numbers::filled};

use super::{Scripted, VOCABULARY, arbitrary, clock, prompts};

fn with_draft(
    model: &Scripted<impl Fn(&[u32]) -> Vec<f32>>,
    draft: &Scripted<impl Fn(&[u32]) -> Vec<f32>>,
    options: &GenerateOptions,
    guesses: usize,
) -> Speculation {
    let states = (model.start(&prompts()), draft.start(&prompts()));
    speculate(
        (model, states.0),
        (draft, states.1),
        &prompts(),
        options,
        guesses,
    )
    .unwrap()
}

type Rule = Box<dyn Fn(&[u32]) -> Vec<f32>>;

/// Rules of drafts that are right never, sometimes and always.
fn rules() -> [Rule; 4] {
    let often = |tokens: &[u32]| match tokens.len() % 3 {
        0 => clock(tokens),
        _ => arbitrary(7, 3.0)(tokens),
    };
    let backwards = |tokens: &[u32]| arbitrary(7, -3.0)(tokens);
    [
        Box::new(backwards),
        Box::new(clock),
        Box::new(often),
        Box::new(arbitrary(7, 3.0)),
    ]
}

#[test]
fn tokens_are_those_of_the_model_alone() {
    let model = Scripted::new(arbitrary(7, 3.0));
    let greedy = GenerateOptions::new(23);
    let drawn = greedy
        .clone()
        .sampling(Sampling::temperature(0.9).top_k(5))
        .seed(3);
    for options in [
        greedy.clone(),
        greedy.clone().repetition_penalty(1.3),
        greedy.stop_tokens([2, 5]),
        drawn.clone(),
        drawn.clone().repetition_penalty(0.8),
        drawn.stop_tokens([0]),
    ] {
        let expected = model.generate(&prompts(), &options);
        for rule in rules() {
            let draft = Scripted::new(rule);
            for guesses in [0, 1, 2, 5, 40] {
                let found = with_draft(&model, &draft, &options, guesses);
                assert_eq!(
                    found.generations, expected,
                    "{guesses} guesses, {options:?}"
                );
                assert!(found.accepted <= found.guessed);
            }
        }
    }
}

#[test]
fn a_draft_that_is_right_saves_steps() {
    let (model, draft) = (Scripted::new(clock), Scripted::new(clock));
    let found = with_draft(&model, &draft, &GenerateOptions::new(20), 4);
    // Five tokens a step: four guesses, and the one that follows them.
    assert_eq!(*model.steps.borrow(), [4; 4]);
    assert_eq!((found.guessed, found.accepted), (64, 64));
    // And one that is wrong costs none.
    let wrong = Scripted::new(|tokens: &[u32]| clock(&[tokens[tokens.len() - 1] + 1]));
    let model = Scripted::new(clock);
    let found = with_draft(&model, &wrong, &GenerateOptions::new(6), 4);
    assert_eq!(*model.steps.borrow(), [4; 6]);
    assert_eq!(found.accepted, 0);
}

#[test]
fn the_room_is_that_of_both() {
    let options = GenerateOptions::new(30);
    for (of_model, of_draft) in [(12, 30), (30, 12)] {
        let model = Scripted::new(arbitrary(7, 3.0)).with_max_len(of_model);
        let draft = Scripted::new(arbitrary(7, 3.0)).with_max_len(of_draft);
        let expected = Scripted::new(arbitrary(7, 3.0)).with_max_len(12);
        let found = with_draft(&model, &draft, &options, 4);
        assert_eq!(found.generations, expected.generate(&prompts(), &options));
    }
}

#[test]
fn states_may_have_read_something_before() {
    let model = Scripted::new(arbitrary(7, 3.0));
    let draft = Scripted::new(clock);
    let options = GenerateOptions::new(9);
    let read = || vec![vec![1, 2, 3]; 4];
    let expected = generate(&model, read(), &prompts(), &options);
    // The draft need not have.
    let states = (read(), draft.start(&prompts()));
    let found = speculate(
        (&model, states.0),
        (&draft, states.1),
        &prompts(),
        &options,
        3,
    );
    assert_eq!(found.unwrap().generations, expected);
}

#[test]
fn other_vocabularies_and_prompts_are_refused() {
    let language_model = |vocabulary: usize| -> LanguageModel {
        LanguageModelConfig::new(vocabulary)
            .with_d_model(8)
            .with_n_heads(2)
            .init(&devices::any())
    };
    let (model, draft) = (language_model(9), language_model(11));
    let speculate = |prompts: &[Vec<u32>], draft: &LanguageModel| {
        let rows = prompts.len();
        let options = GenerateOptions::new(3);
        speculate(
            (&model, model.start(rows)),
            (draft, draft.start(rows)),
            prompts,
            &options,
            2,
        )
    };
    let refused = speculate(&[vec![1]], &draft).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "generate: the model knows 9 tokens, but its draft 11"
    );
    let refused = speculate(&[vec![1], vec![]], &model);
    assert_eq!(refused, Err(GenerateError::EmptyPrompt { row: 1 }));
}

#[test]
fn a_language_model_forgets_wrong_guesses() {
    let device = devices::any();
    let config = LanguageModelConfig::new(VOCABULARY)
        .with_d_model(16)
        .with_n_heads(2)
        .with_d_ff(24)
        .with_max_len(40);
    let model: LanguageModel = filled(config.init(&device), 3);
    let draft: LanguageModel = filled(config.clone().with_d_ff(8).init(&device), 4);
    let options = GenerateOptions::new(20)
        .sampling(Sampling::temperature(1.0))
        .seed(5);
    let expected = generate(&model, model.start(4), &prompts(), &options);
    let states = (model.start(4), draft.start(4));
    let found = speculate(
        (&model, states.0),
        (&draft, states.1),
        &prompts(),
        &options,
        3,
    )
    .unwrap();
    assert!(
        0 < found.accepted && found.accepted < found.guessed,
        "{found:?}"
    );
    for (found, expected) in found.generations.iter().zip(&expected) {
        assert_eq!(found.tokens, expected.tokens);
    }
}
