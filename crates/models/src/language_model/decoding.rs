//! Generation with the language model, which reads each token once.

use burn::tensor::Tensor;
use burn_attn::{KvCache, KvCacheConfig, LayerInput, MixerState, TokenMixer, TransformerCache};

use super::LanguageModel;
use crate::{
    generate::{Autoregressive, Speculative},
    new_tokens::NewTokens,
};

/// The state of [`LanguageModel`] in generation: the keys and values of the tokens so far, or the states of its other mixers.
#[derive(Clone, Debug)]
pub struct LanguageModelState<S = KvCache> {
    cache: TransformerCache<S>,
}

impl<S: MixerState> LanguageModelState<S> {
    /// Memory held for the tokens (bytes): keys, values and position biases, or the states of other mixers.
    pub fn bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// Makes room for `new` more tokens of every row, so that [`truncate`](Self::truncate) can forget any of them, in however many calls they are read.
    /// Without windows and sink tokens, `truncate` always can. With layers whose mixer has no [`KvCache`], it can forget all tokens or none. The cost is that of
    /// [`KvCache::reserve`](burn_attn::KvCache::reserve) for every layer; [`generate`](crate::generate#rolling-back) has an example.
    pub fn reserve(&mut self, new: usize) {
        self.cache.reserve(new);
    }

    /// Whether [`truncate`](Self::truncate) to these lengths is possible: layers with a window may have dropped what the next token would see, and
    /// mixers without a [`KvCache`] may keep no token apart.
    pub fn can_truncate(&self, lengths: &[usize]) -> bool {
        self.cache.can_truncate(lengths)
    }

    /// Forgets all but the first `lengths[r]` tokens of each row `r`, for example after [wrong guesses](crate::generate#rolling-back).
    ///
    /// # Panics
    ///
    /// Unless [`can_truncate`](Self::can_truncate).
    pub fn truncate(&mut self, lengths: &[usize]) {
        self.cache.truncate(lengths);
    }
}

impl<M: TokenMixer> LanguageModel<M> {
    /// Lets every row read its tokens; returns their states, `[rows, longest, d_model]`.
    fn read<'a>(
        &self,
        state: &mut LanguageModelState<M::State>,
        tokens: &'a [&'a [u32]],
    ) -> (NewTokens<'a>, Tensor<3>) {
        let so_far = self.lengths(state);
        let new = NewTokens::new("LanguageModel", tokens, so_far.len(), self.vocab_size());
        let device = self.embedding.weight.device();
        let x = self.embed(new.padded(&device), new.positions(so_far));
        let states = self
            .transformer
            .forward_cached(LayerInput::new(x).lengths(&new.lengths), &mut state.cache);
        (new, states)
    }

    /// A state of `rows` rows that have read nothing yet, with room for [`max_len`](Self::max_len) tokens each;
    /// [`generate`](crate::generate#example) has an example.
    pub fn start(&self, rows: usize) -> LanguageModelState<M::State> {
        self.start_with(rows, &KvCacheConfig::new(self.max_len()))
    }

    /// [`start`](Self::start) with caches of another kind, such as 8-bit ones. With sink tokens too, generation ends at the
    /// [`max_len`](Self::max_len) of the model.
    ///
    /// # Panics
    ///
    /// When a size of `config` is zero, or its `max_len` is less than the model's or more than the positions of the rotary heads.
    pub fn start_with(&self, rows: usize, config: &KvCacheConfig) -> LanguageModelState<M::State> {
        assert!(
            config.max_len >= self.max_len(),
            "LanguageModel: a cache of max_len {} is too short for a model of max_len {}",
            config.max_len,
            self.max_len()
        );
        LanguageModelState {
            cache: self.transformer.cache(rows, config),
        }
    }
}

/// # Cost
///
/// A step runs the layers over the new tokens only; its attention is O(len).
impl<M: TokenMixer> Autoregressive for LanguageModel<M> {
    type State = LanguageModelState<M::State>;

    fn vocab_size(&self) -> usize {
        let [vocab_size, _] = self.embedding.weight.dims();
        vocab_size
    }

    fn has_logits(&self) -> bool {
        self.has_logits()
    }

    fn max_len(&self) -> Option<usize> {
        Some(self.max_len())
    }

    fn lengths(&self, state: &Self::State) -> Vec<usize> {
        state.cache.lengths()
    }

    fn advance(&self, state: &mut Self::State, tokens: &[&[u32]]) -> Tensor<2> {
        let (new, states) = self.read(state, tokens);
        self.logits(new.last(states))
    }

    fn read_in_common(&self, state: &mut Self::State, tokens: &[u32]) -> bool {
        let lengths = self.lengths(state);
        let rows = lengths.len();
        if rows < 2 || lengths.iter().any(|&length| length > 0) {
            return false;
        }
        state.cache.reorder(&[0]);
        self.read(state, &[tokens]);
        state.cache.fork(rows);
        true
    }

    fn reorder(&self, state: &mut Self::State, rows: &[usize]) {
        state.cache.reorder(rows);
    }

    fn join(&self, state: &mut Self::State, other: Self::State) {
        state.cache.join(other.cache);
    }
}

/// # Cost
///
/// Only the logits that are asked for are computed.
impl<M: TokenMixer<State = KvCache>> Speculative for LanguageModel<M> {
    fn advance_last(
        &self,
        state: &mut Self::State,
        tokens: &[&[u32]],
        counts: &[usize],
    ) -> Tensor<2> {
        let (new, states) = self.read(state, tokens);
        self.logits(new.last_of_each(states, counts))
    }

    fn reserve(&self, state: &mut Self::State, new: usize) {
        state.reserve(new);
    }

    fn truncate(&self, state: &mut Self::State, lengths: &[usize]) {
        state.truncate(lengths);
    }
}
