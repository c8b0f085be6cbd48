//! Generation, over models whose probabilities are written down.

mod bad_input;
mod beam;
mod common;
mod penalty;
mod processor;
mod rows;
mod sampling;
mod speculative;
mod speculative_caches;
mod turns;

use std::cell::RefCell;

use burn::tensor::{Device, Tensor, TensorData};
use burn_attn_models::generate::{
    Autoregressive, BeamOptions, GenerateOptions, Generation, Hypothesis, Speculative, beam_search,
    generate,
};
use burn_attn_tests::{devices, numbers::uniform};

const VOCABULARY: usize = 7;

/// A model whose logits follow from all tokens of a row by a rule; its state is these tokens.
struct Scripted<F> {
    rule: F,
    max_len: Option<usize>,
    device: Device,
    /// Number of rows of every step so far.
    steps: RefCell<Vec<usize>>,
    /// The lengths of the rows when room was made the last time, and for how many more tokens, as long as nothing was truncated since.
    reserved: RefCell<Option<(Vec<usize>, usize)>>,
}

impl<F: Fn(&[u32]) -> Vec<f32>> Scripted<F> {
    fn new(rule: F) -> Self {
        Self {
            rule,
            max_len: None,
            device: devices::any(),
            steps: RefCell::new(Vec::new()),
            reserved: RefCell::new(None),
        }
    }

    fn with_max_len(mut self, max_len: usize) -> Self {
        self.max_len = Some(max_len);
        self
    }

    fn generate(&self, prompts: &[Vec<u32>], options: &GenerateOptions) -> Vec<Generation> {
        generate(self, self.start(prompts), prompts, options)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn search(&self, prompts: &[Vec<u32>], options: &BeamOptions) -> Vec<Vec<Hypothesis>> {
        beam_search(self, self.start(prompts), prompts, options)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn start(&self, prompts: &[Vec<u32>]) -> Vec<Vec<u32>> {
        *self.reserved.borrow_mut() = None;
        vec![Vec::new(); prompts.len()]
    }

    /// Makes sure that there was room for what the rows have read.
    fn check_room(&self, state: &[Vec<u32>]) {
        for row in state {
            assert!(self.max_len.is_none_or(|max_len| row.len() <= max_len));
        }
        if let Some((lengths, new)) = &*self.reserved.borrow() {
            for (row, length) in state.iter().zip(lengths) {
                assert!(row.len() <= length + new, "room for {new} tokens");
            }
        }
    }

    /// Log-probability of each of `tokens` after `prompt`, in f64.
    fn log_probabilities(&self, prompt: &[u32], tokens: &[u32]) -> Vec<f64> {
        let mut so_far = prompt.to_vec();
        let mut log_probabilities = Vec::new();
        for &token in tokens {
            let logits = (self.rule)(&so_far);
            let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
            log_probabilities.push(f64::from(logits[token as usize]) - sum.ln());
            so_far.push(token);
        }
        log_probabilities
    }
}

impl<F: Fn(&[u32]) -> Vec<f32>> Autoregressive for Scripted<F> {
    type State = Vec<Vec<u32>>;

    fn vocab_size(&self) -> usize {
        VOCABULARY
    }

    fn max_len(&self) -> Option<usize> {
        self.max_len
    }

    fn lengths(&self, state: &Self::State) -> Vec<usize> {
        state.iter().map(Vec::len).collect()
    }

    fn advance(&self, state: &mut Self::State, tokens: &[&[u32]]) -> Tensor<2> {
        assert_eq!(state.len(), tokens.len());
        self.steps.borrow_mut().push(tokens.len());
        let mut logits = Vec::new();
        for (row, new) in state.iter_mut().zip(tokens) {
            assert!(!new.is_empty());
            row.extend_from_slice(new);
            logits.extend((self.rule)(row));
        }
        self.check_room(state);
        let width = logits.len() / tokens.len();
        Tensor::from_data(TensorData::new(logits, [tokens.len(), width]), &self.device)
    }

    fn reorder(&self, state: &mut Self::State, rows: &[usize]) {
        *state = rows.iter().map(|&row| state[row].clone()).collect();
        if let Some((lengths, _)) = &mut *self.reserved.borrow_mut() {
            *lengths = rows.iter().map(|&row| lengths[row]).collect();
        }
    }

    fn join(&self, state: &mut Self::State, other: Self::State) {
        state.extend(other);
    }
}

impl<F: Fn(&[u32]) -> Vec<f32>> Speculative for Scripted<F> {
    fn advance_last(
        &self,
        state: &mut Self::State,
        tokens: &[&[u32]],
        counts: &[usize],
    ) -> Tensor<2> {
        assert_eq!((state.len(), counts.len()), (tokens.len(), tokens.len()));
        self.steps.borrow_mut().push(tokens.len());
        let mut logits = Vec::new();
        for ((row, new), count) in state.iter_mut().zip(tokens).zip(counts) {
            for (at, &token) in new.iter().enumerate() {
                row.push(token);
                if at + count >= new.len() {
                    logits.extend((self.rule)(row));
                }
            }
        }
        self.check_room(state);
        let rows: usize = counts.iter().sum();
        let width = logits.len() / rows;
        Tensor::from_data(TensorData::new(logits, [rows, width]), &self.device)
    }

    fn reserve(&self, state: &mut Self::State, new: usize) {
        let lengths = state.iter().map(Vec::len).collect();
        *self.reserved.borrow_mut() = Some((lengths, new));
    }

    fn truncate(&self, state: &mut Self::State, lengths: &[usize]) {
        assert_eq!(state.len(), lengths.len());
        let (kept, _) = self.reserved.take().expect("room was made before");
        for ((row, &length), kept) in state.iter_mut().zip(lengths).zip(kept) {
            assert!(kept <= length && length <= row.len());
            row.truncate(length);
        }
    }
}

/// Logits that depend on every token so far, in `[-scale, scale)`.
fn arbitrary(seed: u64, scale: f32) -> impl Fn(&[u32]) -> Vec<f32> {
    move |tokens| {
        let history = tokens.iter().fold(seed + 1, |hash, &token| {
            hash.wrapping_mul(31).wrapping_add(u64::from(token) + 1)
        });
        let logits = uniform(history, VOCABULARY);
        logits.into_iter().map(|logit| logit * scale).collect()
    }
}

/// After token `t` comes `t + 1`, and after the last one 0.
fn clock(tokens: &[u32]) -> Vec<f32> {
    let mut logits = vec![0.0; VOCABULARY];
    logits[(tokens[tokens.len() - 1] as usize + 1) % VOCABULARY] = 5.0;
    logits
}

/// Logits of these probabilities.
fn logits_of(probabilities: [f32; VOCABULARY]) -> Vec<f32> {
    probabilities.map(f32::ln).to_vec()
}

/// Prompts of different lengths.
fn prompts() -> Vec<Vec<u32>> {
    vec![vec![3], vec![5, 1, 2], vec![2, 4], vec![6, 6, 0, 1, 3]]
}
