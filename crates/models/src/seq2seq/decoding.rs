//! How the translation model generates: it reads its own output again at every step.

use burn::tensor::{Int, Tensor, TensorData};

use super::{Memory, Seq2Seq};
use crate::generate::Autoregressive;

/// What [`Seq2Seq`] keeps while it generates: what the encoder made of the sources, and the tokens so far.
#[derive(Clone, Debug)]
pub struct Seq2SeqState {
    memory: Memory,
    tokens: Vec<Vec<u32>>,
}

impl Seq2Seq {
    /// Reads the sources and is ready to generate a target for each; a target starts with a begin token.
    ///
    /// # Shapes
    ///
    /// - `source`: `[batch, len_source]`, padded behind `source_lengths` with any token
    /// - `source_lengths`: `[batch]`
    ///
    /// # Panics
    ///
    /// When a source is longer than `max_len`.
    ///
    /// # Example
    ///
    /// See [`generate`](crate::generate#example).
    pub fn start(&self, source: Tensor<2, Int>, source_lengths: Tensor<1, Int>) -> Seq2SeqState {
        let [batch, _] = source.dims();
        Seq2SeqState {
            memory: self.encode(source, source_lengths),
            tokens: vec![Vec::new(); batch],
        }
    }
}

/// # Cost
///
/// A step runs the decoder over all tokens so far: O(len) positions.
impl Autoregressive for Seq2Seq {
    type State = Seq2SeqState;

    fn vocab_size(&self) -> usize {
        let [vocab_size, _] = self.embedding.weight.dims();
        vocab_size
    }

    fn max_len(&self) -> Option<usize> {
        Some(self.max_len())
    }

    fn lengths(&self, state: &Seq2SeqState) -> Vec<usize> {
        state.tokens.iter().map(Vec::len).collect()
    }

    fn advance(&self, state: &mut Seq2SeqState, tokens: &[&[u32]]) -> Tensor<2> {
        assert!(
            tokens.len() == state.tokens.len(),
            "Seq2Seq: tokens of {} rows for a state of {}",
            tokens.len(),
            state.tokens.len()
        );
        for (so_far, new) in state.tokens.iter_mut().zip(tokens) {
            so_far.extend_from_slice(new);
        }
        let lengths = self.lengths(state);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        // Any token fills a row up: the decoder is causal.
        let target: Vec<i32> = state
            .tokens
            .iter()
            .flat_map(|row| (0..longest).map(|at| row.get(at).map_or(0, |&token| token as i32)))
            .collect();
        let device = state.memory.states.device();
        let target = Tensor::from_data(TensorData::new(target, [tokens.len(), longest]), &device);
        self.next_token(target, &lengths, &state.memory)
    }

    fn reorder(&self, state: &mut Seq2SeqState, rows: &[usize]) {
        state.tokens = rows.iter().map(|&row| state.tokens[row].clone()).collect();
        let device = state.memory.states.device();
        let items: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let items = Tensor::from_data(TensorData::new(items, [rows.len()]), &device);
        state.memory = state.memory.select(items);
    }
}
