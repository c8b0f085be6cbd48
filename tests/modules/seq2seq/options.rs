//! The limits of a search, and the sentences for what is beyond.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_attn_models::generate::{Generation, SearchOptions, search};

use super::{MAX_LEN, VOCABULARY, batch, model, options, sources};
use crate::devices;

fn run(options: &SearchOptions) -> Result<Vec<Generation>, String> {
    let device = devices::any();
    let model = model(1, &device);
    let (tokens, lengths) = batch(&sources(), 0, 5, &device);
    catch_unwind(AssertUnwindSafe(|| {
        search(&model, tokens, lengths, options)
    }))
    .map_err(|panic| *panic.downcast::<String>().expect("a sentence with values"))
}

#[test]
fn a_beam_of_none_or_wider_than_the_vocabulary() {
    for beam in [0, VOCABULARY + 1] {
        assert_eq!(
            run(&options(beam)),
            Err(format!(
                "search: beam must be between 1 and the vocabulary's 13 tokens, got {beam}"
            ))
        );
    }
    assert!(run(&options(VOCABULARY)).is_ok());
}

#[test]
fn outputs_longer_than_the_model() {
    let longest = SearchOptions {
        max_len: MAX_LEN,
        ..options(2)
    };
    assert!(run(&longest).is_ok());
    let too_long = SearchOptions {
        max_len: MAX_LEN + 1,
        ..options(2)
    };
    assert_eq!(
        run(&too_long),
        Err("search: max_len 12 exceeds the model's 11 positions".to_owned())
    );
}

#[test]
fn outputs_of_no_length() {
    let nothing = SearchOptions {
        max_len: 0,
        ..options(2)
    };
    let expected = Generation {
        tokens: Vec::new(),
        log_probability: 0.0,
    };
    assert_eq!(run(&nothing), Ok(vec![expected; 3]));
}

#[test]
fn no_output_is_longer_than_asked_or_has_an_end_in_it() {
    for beam in [1, 4, VOCABULARY] {
        let options = options(beam);
        for generation in run(&options).expect("a sound search") {
            assert!(generation.tokens.len() <= options.max_len);
            assert!(!generation.tokens.contains(&options.eos));
        }
    }
}

#[test]
fn a_batch_of_none() {
    let device = devices::any();
    let (tokens, lengths) = batch(&[], 0, 5, &device);
    assert_eq!(search(&model(1, &device), tokens, lengths, &options(2)), []);
}
