//! A draft that guesses ahead changes how long it takes, and nothing else.

use burn_attn_models::{
    generate::{
        FinishReason, GenerateError, GenerateOptions, Generation, Sampling, Speculation, generate,
        speculate,
    },
    language_model::{LanguageModel, LanguageModelConfig},
};
use burn_attn_tests::{devices, numbers::filled};

use super::{Scripted, VOCABULARY, arbitrary, clock, prompts};

/// Speculation from new states for [`prompts`].
fn with_draft(
    model: &Scripted<impl Fn(&[u32]) -> Vec<f32>>,
    draft: &Scripted<impl Fn(&[u32]) -> Vec<f32>>,
    options: &GenerateOptions,
    guesses: usize,
) -> Result<Speculation, GenerateError> {
    let model = (model, model.start(&prompts()));
    let draft = (draft, draft.start(&prompts()));
    speculate(model, draft, &prompts(), options, guesses)
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
    for (options, stops) in [
        (greedy.clone(), false),
        (greedy.clone().repetition_penalty(1.3), false),
        (greedy.clone().stop_tokens([2, 5]), true),
        (greedy.repetition_penalty(1.3).stop_tokens([4]), true),
        (drawn.clone(), false),
        (drawn.clone().repetition_penalty(0.8), false),
        (drawn.stop_tokens([0]), true),
    ] {
        let expected = model.generate(&prompts(), &options);
        for (rule, is_model) in rules().into_iter().zip([false, false, false, true]) {
            let draft = Scripted::new(rule);
            for guesses in [0, 1, 2, 5, 40] {
                let found = with_draft(&model, &draft, &options, guesses).unwrap();
                let what = format!("{guesses} guesses, {options:?}");
                assert_eq!(found.generations, expected, "{what}");
                assert!(found.accepted <= found.guessed, "{what}");
                // With the penalties and the random numbers of the model, its own logits lead to its own tokens.
                if is_model && !stops {
                    assert_eq!(found.accepted, found.guessed, "{what}");
                }
            }
        }
    }
}

#[test]
fn nothing_to_generate() {
    let (model, draft) = (Scripted::new(clock), Scripted::new(clock));
    let found = with_draft(&model, &draft, &GenerateOptions::new(0), 3).unwrap();
    let expected = model.generate(&prompts(), &GenerateOptions::new(0));
    assert_eq!(found.generations, expected);
    let nothing =
        |row: &Generation| row.tokens.is_empty() && row.finish_reason == FinishReason::Length;
    assert!(expected.len() == 4 && expected.iter().all(nothing));
    let options = GenerateOptions::new(5);
    let none = speculate((&model, vec![]), (&draft, vec![]), &[], &options, 3);
    assert_eq!(none, Ok(Speculation::default()));
    assert!(model.steps.borrow().is_empty() && draft.steps.borrow().is_empty());
}

#[test]
fn a_draft_that_is_right_saves_steps() {
    let (model, draft) = (Scripted::new(clock), Scripted::new(clock));
    let found = with_draft(&model, &draft, &GenerateOptions::new(20), 4).unwrap();
    // Five tokens a step: four guesses, and the one that follows them.
    assert_eq!(*model.steps.borrow(), [4; 4]);
    assert_eq!((found.guessed, found.accepted), (64, 64));
    // And one that is wrong costs none.
    let wrong = Scripted::new(|tokens: &[u32]| clock(&[tokens[tokens.len() - 1] + 1]));
    let model = Scripted::new(clock);
    let found = with_draft(&model, &wrong, &GenerateOptions::new(6), 4).unwrap();
    assert_eq!(*model.steps.borrow(), [4; 6]);
    assert_eq!(found.accepted, 0);
}

#[test]
fn a_short_draft_does_not_shorten_the_tokens() {
    let options = GenerateOptions::new(30);
    // The longest prompt has five tokens: the last three drafts cannot read it, nor guess anything as long as its row goes on.
    for (of_model, of_draft, guesses_at_all) in [
        (13, 31, true),
        (31, 13, true),
        (31, 6, true),
        (31, 5, true),
        (31, 4, false),
        (31, 3, false),
        (31, 0, false),
    ] {
        let model = Scripted::new(arbitrary(7, 3.0)).with_max_len(of_model);
        let expected = model.generate(&prompts(), &options);
        for (rule, is_model) in rules().into_iter().zip([false, false, false, true]) {
            let draft = Scripted::new(rule).with_max_len(of_draft);
            let found = with_draft(&model, &draft, &options, 4).unwrap();
            assert_eq!(found.generations, expected, "{of_model}, {of_draft}");
            assert_eq!(found.guessed > 0, guesses_at_all, "{of_draft}");
            assert!(!is_model || found.accepted == found.guessed);
        }
    }
}

#[test]
fn a_short_draft_guesses_again_once_long_rows_have_ended() {
    let model = Scripted::new(clock).with_max_len(31);
    let draft = Scripted::new(clock).with_max_len(19);
    // The second row is too long for the draft, and stops at once.
    let prompts = [vec![3], vec![1; 23]];
    let options = GenerateOptions::new(11).stop_tokens([2]);
    let expected = model.generate(&prompts, &options);
    let of_model = (&model, model.start(&prompts));
    let of_draft = (&draft, draft.start(&prompts));
    let found = speculate(of_model, of_draft, &prompts, &options, 3).unwrap();
    assert_eq!(found.generations, expected);
    // After 3: 4 alone, then 5, 6, 0 and 1, and 2, which ends the row before two more guesses are judged.
    assert_eq!(expected[0].tokens, [4, 5, 6, 0, 1]);
    assert_eq!(*draft.steps.borrow(), [1; 6]);
    assert_eq!((found.guessed, found.accepted), (6, 4));
}

#[test]
fn states_may_have_read_something_before() {
    let model = Scripted::new(arbitrary(7, 3.0));
    let draft = Scripted::new(clock);
    let options = GenerateOptions::new(9);
    let read = || vec![vec![1, 2, 3]; 4];
    let expected = generate(&model, read(), &prompts(), &options).unwrap();
    // The draft need not have.
    let of_draft = (&draft, draft.start(&prompts()));
    let found = speculate((&model, read()), of_draft, &prompts(), &options, 3);
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
        let [of_model, of_draft] = [&model, draft].map(|model| (model, model.start(prompts.len())));
        speculate(of_model, of_draft, prompts, &GenerateOptions::new(3), 2)
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
fn what_is_wrong_with_the_draft_is_said_of_it() {
    let model = Scripted::new(clock);
    let broken = Scripted::new(|_: &[u32]| vec![0.0, 1.0, f32::NAN, 2.0, 0.0, 0.0, 0.0]);
    let options = GenerateOptions::new(5);
    let refused = with_draft(&model, &broken, &options, 2).unwrap_err();
    assert!(matches!(refused, GenerateError::Draft(_)), "{refused:?}");
    let said = "generate: in row 0, the logit of token 2 is NaN, and the largest must be finite";
    assert_eq!(refused.to_string(), format!("the draft: {said}"));
    // Nobody asks it for no guesses.
    let found = with_draft(&model, &broken, &options, 0).unwrap();
    assert_eq!(found.generations, model.generate(&prompts(), &options));
    // What the model says is not the draft's.
    let refused = with_draft(&broken, &model, &options, 2);
    assert_eq!(refused.unwrap_err().to_string(), said);

    let of_model = (&model, model.start(&prompts()));
    let of_draft = (&model, vec![vec![]; 3]);
    let refused = speculate(of_model, of_draft, &prompts(), &options, 2);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the draft: generate: 4 prompts for a state of 3 rows"
    );
    let mut in_training = Scripted::new(clock);
    in_training.device = in_training.device.autodiff();
    assert_eq!(
        with_draft(&model, &in_training, &options, 2),
        Err(GenerateError::Draft(Box::new(GenerateError::Autodiff)))
    );
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
    let expected = generate(&model, model.start(4), &prompts(), &options).unwrap();
    let [of_model, of_draft] = [&model, &draft].map(|model| (model, model.start(4)));
    let found = speculate(of_model, of_draft, &prompts(), &options, 3).unwrap();
    assert!(
        0 < found.accepted && found.accepted < found.guessed,
        "{found:?}"
    );
    for (found, expected) in found.generations.iter().zip(&expected) {
        assert_eq!(found.tokens, expected.tokens);
    }
}
