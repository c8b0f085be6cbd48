//! How the translation model generates: it reads each source and each token once.

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::{KvCacheConfig, TransformerDecoderCache};

use super::{Memory, Seq2Seq};
use crate::generate::Autoregressive;

/// What [`Seq2Seq`] keeps while it generates: the keys and values of the sources and of the tokens so far.
#[derive(Clone, Debug)]
pub struct Seq2SeqState {
    cache: TransformerDecoderCache,
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
        let Memory { states, lengths } = self.encode(source, source_lengths);
        let config = KvCacheConfig::new(self.max_len());
        Seq2SeqState {
            cache: self.transformer.decoder.cache(states, lengths, &config),
        }
    }
}

/// # Cost
///
/// A step runs the decoder over the new tokens only; its attention is O(len).
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
        state.cache.lengths()
    }

    fn advance(&self, state: &mut Seq2SeqState, tokens: &[&[u32]]) -> Tensor<2> {
        let so_far = state.cache.lengths();
        assert!(
            tokens.len() == so_far.len(),
            "Seq2Seq: tokens of {} rows for a state of {}",
            tokens.len(),
            so_far.len()
        );
        let batch = tokens.len();
        let lengths: Vec<usize> = tokens.iter().map(|row| row.len()).collect();
        if let Some(row) = lengths.iter().position(|&length| length == 0) {
            panic!("Seq2Seq: row {row} has no new token");
        }
        let vocab_size = self.vocab_size();
        for (row, tokens) in tokens.iter().enumerate() {
            if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocab_size) {
                panic!(
                    "Seq2Seq: token {token} of row {row} is outside the vocabulary of {vocab_size} tokens"
                );
            }
        }
        let longest = lengths.iter().copied().max().unwrap_or(0);
        // Any token fills a row up: the decoder is causal.
        let padded: Vec<i32> = tokens
            .iter()
            .flat_map(|row| (0..longest).map(|at| row.get(at).map_or(0, |&token| token as i32)))
            .collect();
        let device = self.embedding.weight.device();
        let target = Tensor::from_data(TensorData::new(padded, [batch, longest]), &device);
        let states = self.transformer.decoder.forward_cached(
            self.embed(target, so_far),
            &lengths,
            &mut state.cache,
        );
        let [_, _, d_model] = states.dims();
        let states = states.reshape([batch * longest, d_model]);
        if longest == 1 {
            return self.project(states);
        }
        let last = lengths.iter().enumerate();
        let last = last.map(|(row, &length)| (row * longest + length - 1) as i32);
        let last = TensorData::new(last.collect(), [batch]);
        let last = Tensor::<1, Int>::from_data(last, &device);
        self.project(states.select(0, last))
    }

    fn reorder(&self, state: &mut Seq2SeqState, rows: &[usize]) {
        state.cache.reorder(rows);
    }
}
