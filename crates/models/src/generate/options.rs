//! Options: when to stop, what to discourage, how wide to search.

use super::Sampling;

/// Options of [`generate`](super::generate()) and [`stream`](super::stream).
///
/// ```
/// use burn_attn_models::generate::{GenerateOptions, Sampling};
///
/// let options = GenerateOptions::new(256)
///     .stop_tokens([2, 3])
///     .sampling(Sampling::temperature(0.7).min_p(0.1))
///     .repetition_penalty(1.2)
///     .seed(42);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    pub(super) max_new_tokens: usize,
    pub(crate) stop_tokens: Vec<u32>,
    pub(super) sampling: Sampling,
    pub(super) repetition_penalty: Option<f64>,
    pub(crate) seed: u64,
}

impl GenerateOptions {
    /// Greedy choice of at most `max_new_tokens` tokens per row, stop token included, and no more than the model holds.
    ///
    /// The `generation_config.json` of a published model is not read, except for its end tokens, by `pretrained::end_tokens`. To generate as
    /// `transformers` does with the model, set here what the file says: `temperature`, `top_k`, `top_p` and `min_p` by
    /// [`sampling`](Self::sampling), if `do_sample` is true, with [`top_k(50)`](Sampling::top_k) where the file has none, and
    /// [`repetition_penalty`](Self::repetition_penalty). Others, such as `no_repeat_ngram_size`, are for [`Stream::logits_processor`](super::Stream::logits_processor).
    pub fn new(max_new_tokens: usize) -> Self {
        Self {
            max_new_tokens,
            stop_tokens: Vec::new(),
            sampling: Sampling::greedy(),
            repetition_penalty: None,
            seed: 0,
        }
    }

    /// Tokens that end a row. Default: none.
    pub fn stop_tokens(mut self, tokens: impl IntoIterator<Item = u32>) -> Self {
        self.stop_tokens = tokens.into_iter().collect();
        self
    }

    /// How a token is chosen. Default: [`Sampling::greedy`].
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Makes the tokens that the row already has, prompt included, less probable (above 1) or more probable (below 1). Default: 1.
    ///
    /// The logit `l` of each becomes `l / penalty` if it is positive and `l · penalty` if it is negative, once, however often the
    /// token occurred. Tokens that the state had read before this call are not known, and not penalised.
    ///
    /// # Panics
    ///
    /// Unless `penalty` is positive and finite.
    ///
    /// # Source
    ///
    /// CTRL (arXiv:1909.05858), section 4.1, which always divides and so would favour repeated tokens with negative logits; the
    /// distinction by sign is that of Hugging Face's transformers.
    pub fn repetition_penalty(mut self, penalty: f64) -> Self {
        assert!(
            penalty > 0.0 && penalty.is_finite(),
            "GenerateOptions: repetition_penalty must be positive and finite, got {penalty}"
        );
        self.repetition_penalty = (penalty != 1.0).then_some(penalty);
        self
    }

    /// The seed of all random choices. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// Options of [`beam_search`](super::beam_search).
///
/// ```
/// use burn_attn_models::generate::BeamOptions;
///
/// let options = BeamOptions::new(4, 256).stop_tokens([2]).length_penalty(0.6).n_best(2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BeamOptions {
    pub(super) beam: usize,
    pub(super) max_new_tokens: usize,
    pub(super) stop_tokens: Vec<u32>,
    pub(super) length_penalty: f64,
    pub(super) n_best: usize,
}

impl BeamOptions {
    /// Keeps `beam` hypotheses side by side (1 is greedy search), each of at most `max_new_tokens` tokens, stop token included, and no
    /// more than the model holds.
    ///
    /// # Panics
    ///
    /// When `beam` is 0.
    pub fn new(beam: usize, max_new_tokens: usize) -> Self {
        assert!(beam >= 1, "BeamOptions: beam must be at least 1, got 0");
        Self {
            beam,
            max_new_tokens,
            stop_tokens: Vec::new(),
            length_penalty: 0.0,
            n_best: 1,
        }
    }

    /// Tokens that end a hypothesis. Default: none.
    pub fn stop_tokens(mut self, tokens: impl IntoIterator<Item = u32>) -> Self {
        self.stop_tokens = tokens.into_iter().collect();
        self
    }

    /// How much longer outputs are favoured. Default: 0, not at all: the score is the log-probability itself, which favours short
    /// outputs, because every further token lowers it. The default of Hugging Face's transformers is 1.
    ///
    /// The score of a hypothesis is its log-probability divided by `((5 + len) / 6)^length_penalty`, where `len` counts its tokens
    /// and its stop token.
    ///
    /// # Panics
    ///
    /// When it is not finite.
    ///
    /// # Source
    ///
    /// "Google's neural machine translation system" (arXiv:1609.08144), equation 14. Hugging Face's transformers divide by
    /// `len^length_penalty` instead.
    pub fn length_penalty(mut self, length_penalty: f64) -> Self {
        assert!(
            length_penalty.is_finite(),
            "BeamOptions: length_penalty must be finite, got {length_penalty}"
        );
        self.length_penalty = length_penalty;
        self
    }

    /// The most hypotheses to return for each prompt. Default: 1.
    ///
    /// # Panics
    ///
    /// When it is 0 or more than the beam.
    pub fn n_best(mut self, n_best: usize) -> Self {
        assert!(
            (1..=self.beam).contains(&n_best),
            "BeamOptions: n_best must be between 1 and the beam of {}, got {n_best}",
            self.beam
        );
        self.n_best = n_best;
        self
    }
}
