//! The limits of a generation, and the sentences for what is beyond.

use burn::{
    module::Module,
    tensor::{Device, Int, Tensor},
};
use burn_attn_models::{
    generate::{
        Autoregressive, BeamOptions, FinishReason, GenerateError, GenerateOptions, generate,
    },
    seq2seq::{Seq2Seq, Seq2SeqConfig},
};
use burn_attn_tests::{
    devices,
    numbers::{alone, filled},
    sentence,
};

use super::{BOS, LIMIT, MAX_LEN, VOCABULARY, batch, model, options, search, sources};

#[test]
fn outputs_end_where_the_model_does() {
    let device = devices::any();
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    // The begin token takes one position, and the last token needs none. No end stops them.
    let endless = BeamOptions::new(2, 99);
    for generation in search(&model(1, &device), tokens, &lengths, &endless) {
        assert_eq!(generation.tokens.len(), MAX_LEN);
        assert_eq!(generation.finish_reason, FinishReason::Length);
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
fn new_tokens_that_do_not_fit_the_state() {
    let device = devices::any();
    let model = model(1, &device);
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    let mut state = model.start(tokens, &lengths);
    let mut refused = |tokens: &[&[u32]]| sentence(|| model.advance(&mut state, tokens));
    assert_eq!(
        refused(&[&[0], &[0]]),
        "Seq2Seq: tokens of 2 rows for a state of 3"
    );
    assert_eq!(
        refused(&[&[0], &[], &[0]]),
        "Seq2Seq: row 1 has no new token"
    );
    for token in [13, u32::MAX] {
        assert_eq!(
            refused(&[&[0], &[12, token], &[0]]),
            format!("Seq2Seq: token {token} of row 1 is outside the vocabulary of 13 tokens")
        );
    }
    assert_eq!(model.lengths(&state), [0; 3]);
}

#[test]
fn tokens_outside_the_vocabulary() {
    for (name, device) in devices::with_and_without_autodiff() {
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
        let greedy = GenerateOptions::new(LIMIT);
        let run = |model: &Seq2Seq, device: &Device| {
            let (tokens, lengths) = batch(&sources(), 0, 5, device);
            generate(model, model.start(tokens, &lengths), &prompts, &greedy)
        };
        let refused = run(&model, &device.clone().autodiff());
        assert_eq!(refused, Err(GenerateError::Autodiff));
        let model = model.valid();
        let first = run(&model, &device).unwrap();
        assert_eq!(first, run(&model, &device).unwrap());
    }
}
