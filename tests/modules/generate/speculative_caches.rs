//! The caches of language models forget wrong guesses: those with windows, those in 8 bits, and those of rows that end one by one.

use burn::tensor::{Tensor, TensorData};
use burn_attn::{BlockConfig, CacheStorage, KvCacheConfig, positions::PositionEncoding};
use burn_attn_models::{
    generate::{
        Autoregressive, GenerateOptions, Generation, Sampling, Speculation, Speculative, generate,
        speculate,
    },
    language_model::{LanguageModel, LanguageModelConfig, LanguageModelState},
};
use burn_attn_tests::{devices, numbers::filled};

use super::{VOCABULARY, prompts};

const MAX_LEN: usize = 71;
const NEW_TOKENS: usize = 59;

/// A model of two layers that see so many tokens before each.
fn language_model(vocab_size: usize, window: Option<usize>, d_ff: usize) -> LanguageModel {
    let block = BlockConfig::new()
        .with_position(PositionEncoding::rotary())
        .with_window(window);
    let config = LanguageModelConfig::new(vocab_size)
        .with_d_model(16)
        .with_n_heads(2)
        .with_d_ff(d_ff)
        .with_max_len(MAX_LEN)
        .with_block(block)
        .with_tied(false);
    filled(config.init(&devices::any()), 3)
}

/// The windows of a model and its draft.
const WINDOWS: [[Option<usize>; 2]; 4] = [
    [None, None],
    [Some(4), None],
    [None, Some(4)],
    [Some(4), Some(4)],
];

/// Room for few tokens at first, so that caches with windows drop what these have passed again and again.
fn small() -> KvCacheConfig {
    KvCacheConfig::new(MAX_LEN).with_initial_capacity(2)
}

fn tokens(generations: &[Generation]) -> Vec<&[u32]> {
    let generations = generations.iter();
    generations.map(|row| row.tokens.as_slice()).collect()
}

/// A draft that reads with a language model, and always guesses one token.
struct Stubborn {
    model: LanguageModel,
    token: u32,
}

impl Stubborn {
    fn logits(&self, of_model: Tensor<2>) -> Tensor<2> {
        let [rows, vocab_size] = of_model.dims();
        let mut logits = vec![f32::NEG_INFINITY; rows * vocab_size];
        for row in logits.chunks_mut(vocab_size) {
            row[self.token as usize] = 0.0;
        }
        Tensor::from_data(
            TensorData::new(logits, [rows, vocab_size]),
            &of_model.device(),
        )
    }
}

impl Autoregressive for Stubborn {
    type State = LanguageModelState;

    fn vocab_size(&self) -> usize {
        Autoregressive::vocab_size(&self.model)
    }

    fn max_len(&self) -> Option<usize> {
        Autoregressive::max_len(&self.model)
    }

    fn lengths(&self, state: &LanguageModelState) -> Vec<usize> {
        self.model.lengths(state)
    }

    fn advance(&self, state: &mut LanguageModelState, tokens: &[&[u32]]) -> Tensor<2> {
        self.logits(self.model.advance(state, tokens))
    }

    fn reorder(&self, state: &mut LanguageModelState, rows: &[usize]) {
        self.model.reorder(state, rows);
    }

    fn join(&self, state: &mut LanguageModelState, other: LanguageModelState) {
        self.model.join(state, other);
    }
}

impl Speculative for Stubborn {
    fn advance_last(
        &self,
        state: &mut LanguageModelState,
        tokens: &[&[u32]],
        counts: &[usize],
    ) -> Tensor<2> {
        self.logits(self.model.advance_last(state, tokens, counts))
    }

    fn reserve(&self, state: &mut LanguageModelState, new: usize) {
        self.model.reserve(state, new);
    }

    fn truncate(&self, state: &mut LanguageModelState, lengths: &[usize]) {
        self.model.truncate(state, lengths);
    }
}

#[test]
fn windows_and_a_draft_that_is_never_right() {
    // More tokens than all rows together have, so there is one that none has.
    let vocab_size = 251;
    let options = GenerateOptions::new(NEW_TOKENS);
    for [of_model, of_draft] in WINDOWS {
        let model = language_model(vocab_size, of_model, 24);
        // Rows of unequal lengths, and of one length, which caches treat differently.
        for prompts in [prompts(), vec![vec![5, 1, 2]; 2]] {
            let start = |model: &LanguageModel| model.start_with(prompts.len(), &small());
            let expected = generate(&model, start(&model), &prompts, &options).unwrap();
            let is_free = |token: &u32| {
                let mut rows = expected.iter();
                rows.all(|row| !row.tokens.contains(token))
            };
            let token = (0..vocab_size as u32).find(is_free).unwrap();
            let draft = Stubborn {
                model: language_model(vocab_size, of_draft, 11),
                token,
            };
            let [of_target, of_guesses] = [&model, &draft.model].map(start);
            let (model, draft) = ((&model, of_target), (&draft, of_guesses));
            let found = speculate(model, draft, &prompts, &options, 5).unwrap();
            let what = format!("windows {of_model:?} and {of_draft:?}, {prompts:?}");
            assert_eq!(tokens(&found.generations), tokens(&expected), "{what}");
            assert!(found.accepted == 0 && found.guessed > 0, "{what}");
        }
    }
}

/// What a cache has dropped would change the guesses, and how many of them are right.
#[test]
fn windows_and_a_draft_that_is_sometimes_right() {
    let options = GenerateOptions::new(NEW_TOKENS)
        .sampling(Sampling::temperature(1.0))
        .seed(5);
    for [of_model, of_draft] in WINDOWS {
        let model = language_model(VOCABULARY, of_model, 24);
        let draft = language_model(VOCABULARY, of_draft, 11);
        let expected = generate(&model, model.start(4), &prompts(), &options).unwrap();
        // The second has room for everything.
        let found: [Speculation; 2] = [2, MAX_LEN].map(|initial_capacity| {
            let config = small().with_initial_capacity(initial_capacity);
            let start = |model| (model, LanguageModel::start_with(model, 4, &config));
            let [model, draft] = [&model, &draft].map(start);
            speculate(model, draft, &prompts(), &options, 5).unwrap()
        });
        let what = format!("windows {of_model:?} and {of_draft:?}");
        for found in &found {
            assert_eq!(tokens(&found.generations), tokens(&expected), "{what}");
            assert!(
                0 < found.accepted && found.accepted < found.guessed,
                "{what}: {} of {}",
                found.accepted,
                found.guessed
            );
        }
        let [tight, roomy] = found.map(|found| (found.guessed, found.accepted));
        assert_eq!(tight, roomy, "{what}");
    }
}

#[test]
fn stop_tokens_end_rows_one_by_one_also_in_8_bits() {
    let options = GenerateOptions::new(NEW_TOKENS)
        .sampling(Sampling::temperature(1.0))
        .repetition_penalty(1.1)
        .stop_tokens([4])
        .seed(7);
    let model = language_model(VOCABULARY, None, 24);
    let draft = language_model(VOCABULARY, Some(4), 11);
    for storage in [CacheStorage::Float, CacheStorage::Int8] {
        let config = small().with_storage(storage);
        let start = |model: &LanguageModel| model.start_with(4, &config);
        let expected = generate(&model, start(&model), &prompts(), &options).unwrap();
        let mut lengths: Vec<usize> = expected.iter().map(|row| row.tokens.len()).collect();
        lengths.sort_unstable();
        assert!(lengths[0] < lengths[3], "rows that end together");
        let [of_model, of_draft] = [&model, &draft].map(|model| (model, start(model)));
        let found = speculate(of_model, of_draft, &prompts(), &options, 3).unwrap();
        assert_eq!(tokens(&found.generations), tokens(&expected));
        for (found, expected) in found.generations.iter().zip(&expected) {
            assert_eq!(found.finish_reason, expected.finish_reason);
        }
    }
}
