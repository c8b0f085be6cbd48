//! The limits of a generation, and the sentences for what is beyond.

use burn::{
    module::Module,
    tensor::{Device, Int, Tensor},
};
use burn_attn_models::{
    generate::{
        Autoregressive, BeamOptions, FinishReason, GenerateError, GenerateOptions, Generation,
        beam_search, generate, stream,
    },
    seq2seq::{Seq2Seq, Seq2SeqConfig},
};
use burn_attn_tests::{
    devices,
    numbers::{alone, filled},
    sentence,
};

use super::{BOS, EOS, LIMIT, MAX_LEN, VOCABULARY, batch, model, options, search, sources};

fn run(options: &BeamOptions) -> Vec<Generation> {
    let device = devices::any();
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    search(&model(1, &device), tokens, &lengths, options)
}

#[test]
fn a_beam_wider_than_the_vocabulary() {
    let too_wide = options(VOCABULARY + 1);
    assert_eq!(
        sentence(|| run(&too_wide)),
        "generate: a beam of 14 is wider than the vocabulary of 13 tokens"
    );
    assert_eq!(run(&options(VOCABULARY)).len(), 3);
}

#[test]
fn outputs_end_where_the_model_does() {
    // The begin token takes one position, and the last token needs none. No end stops them.
    let endless = run(&BeamOptions::new(2, 99));
    for generation in endless {
        assert_eq!(generation.tokens.len(), MAX_LEN);
        assert_eq!(generation.finish_reason, FinishReason::Length);
    }
}

#[test]
fn outputs_of_no_length() {
    assert_eq!(run(&BeamOptions::new(2, 0)), vec![Generation::default(); 3]);
}

#[test]
fn no_output_is_longer_than_asked_or_has_an_end_in_it() {
    for beam in [1, 4, VOCABULARY] {
        for generation in run(&options(beam)) {
            assert!(generation.tokens.len() <= LIMIT);
            assert!(!generation.tokens.contains(&EOS));
        }
    }
}

#[test]
fn a_batch_of_none() {
    for (_, device) in devices::cpu() {
        let (tokens, lengths) = batch(&[], 0, 5, &device);
        assert_eq!(
            search(&model(1, &device), tokens, &lengths, &options(2)),
            []
        );
    }
}

#[test]
fn tokens_for_another_number_of_rows() {
    let device = devices::any();
    let model = model(1, &device);
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    let mut state = model.start(tokens, &lengths);
    assert_eq!(
        sentence(|| model.advance(&mut state, &[&[0], &[0]])),
        "Seq2Seq: tokens of 2 rows for a state of 3"
    );
}

#[test]
fn a_row_without_a_token() {
    let device = devices::any();
    let model = model(1, &device);
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    let mut state = model.start(tokens, &lengths);
    assert_eq!(
        sentence(|| model.advance(&mut state, &[&[0], &[], &[0]])),
        "Seq2Seq: row 1 has no new token"
    );
}

#[test]
fn tokens_outside_the_vocabulary() {
    for (name, device) in devices::cpu() {
        for device in [device.clone(), device.autodiff()] {
            println!("on {name}");
            let model = model(1, &device);
            let of = |token: i32| Tensor::<2, Int>::from_data([[5, token]], &device);
            for token in [13, -1] {
                let said = format!("Seq2Seq: token {token} is outside the vocabulary of 13 tokens");
                let said = said.as_str();
                let source = sentence(|| model.forward(of(token), &[2], of(3)));
                assert_eq!(source, said);
                let target = sentence(|| model.forward(of(3), &[2], of(token)));
                assert_eq!(target, said);
                let seen = sentence(|| model.attention(of(token), &[2], of(3)));
                assert_eq!(seen, said);
                let start = sentence(|| model.start(of(token), &[2]));
                assert_eq!(start, said);
            }
            model.forward(of(12), &[2], of(0));
        }
    }
}

#[test]
fn new_tokens_outside_the_vocabulary() {
    let device = devices::any();
    let model = model(1, &device);
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    let mut state = model.start(tokens, &lengths);
    for token in [13, u32::MAX] {
        assert_eq!(
            sentence(|| model.advance(&mut state, &[&[0], &[12, token], &[0]])),
            format!("Seq2Seq: token {token} of row 1 is outside the vocabulary of 13 tokens")
        );
    }
    assert_eq!(model.lengths(&state), [0; 3]);
}

#[test]
fn a_model_in_training() {
    // Dropout draws seeds.
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let config = Seq2SeqConfig::new(VOCABULARY)
            .with_d_model(15)
            .with_n_heads(3)
            .with_dropout(0.5)
            .with_max_len(MAX_LEN);
        let model = filled(config.init(&device.clone().autodiff()), 1);
        let prompts = vec![vec![BOS]; 3];
        let (greedy, beam) = (GenerateOptions::new(LIMIT), options(2));
        let start_of = |model: &Seq2Seq, device: &Device| {
            let (tokens, lengths) = batch(&sources(), 0, 5, device);
            model.start(tokens, &lengths)
        };
        let start = || start_of(&model, &device.clone().autodiff());
        let refused = GenerateError::Autodiff;
        assert_eq!(
            generate(&model, start(), &prompts, &greedy),
            Err(refused.clone())
        );
        let mut steps = stream(&model, start(), &prompts, &greedy).unwrap();
        assert_eq!(steps.next(), Some(Err(refused.clone())));
        assert_eq!(beam_search(&model, start(), &prompts, &beam), Err(refused));

        let model = model.valid();
        let start = || start_of(&model, &device);
        let first = generate(&model, start(), &prompts, &greedy).unwrap();
        assert_eq!(first, generate(&model, start(), &prompts, &greedy).unwrap());
    }
}
