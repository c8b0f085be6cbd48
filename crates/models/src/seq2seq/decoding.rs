//! Generation with the encoder–decoder model, which reads each source and each token once.

use burn::tensor::{Int, Tensor};
use burn_attn::{KvCacheConfig, LayerInput, TransformerCache};

use super::{Memory, Seq2Seq};
use crate::{generate::Autoregressive, new_tokens::NewTokens};

/// The state of [`Seq2Seq`] in generation: the keys and values of the sources and of the tokens so far.
#[derive(Clone, Debug)]
pub struct Seq2SeqState {
    cache: TransformerCache,
}

impl Seq2Seq {
    /// Reads the sources, and returns a state to generate a target for each. The prompt of a target is its begin token.
    ///
    /// Shapes and panics are those of [`encode`](Self::encode).
    ///
    /// # Example
    ///
    /// See [`generate`](crate::generate#streaming).
    pub fn start(&self, source: Tensor<2, Int>, source_lengths: &[usize]) -> Seq2SeqState {
        self.start_from(self.encode(source, source_lengths))
    }

    /// [`start`](Self::start) from what an encoder made of the sources: [`encode`](Self::encode), or another encoder, with states
    /// `[batch, len_source, d_model]`.
    ///
    /// # Panics
    ///
    /// When the states have another width, or a length is more than `len_source`.
    pub fn start_from(&self, memory: Memory) -> Seq2SeqState {
        let Memory { states, lengths } = memory;
        let [batch, _, _] = states.dims();
        let decoder = &self.transformer.decoder;
        let mut cache = decoder.cache(batch, &KvCacheConfig::new(self.max_len()));
        decoder.cache_memory(states, &lengths, &mut cache);
        Seq2SeqState { cache }
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
        let new = NewTokens::new("Seq2Seq", tokens, so_far.len(), self.vocab_size());
        let target = new.padded(&self.embedding.weight.device());
        let embedded = self.embed(target, new.positions(so_far));
        let states = self.transformer.decoder.forward_cached(
            LayerInput::new(embedded).lengths(&new.lengths),
            &mut state.cache,
        );
        self.logits(new.last(states))
    }

    fn reorder(&self, state: &mut Seq2SeqState, rows: &[usize]) {
        state.cache.reorder(rows);
    }

    fn join(&self, state: &mut Seq2SeqState, other: Seq2SeqState) {
        state.cache.join(other.cache);
    }
}
