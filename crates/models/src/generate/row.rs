//! A row of a batch that is being continued.

use std::{borrow::Cow, collections::BTreeSet};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{GenerateError, GenerateOptions, logits::log_sum_exp};

/// Why a row ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// This stop token was chosen.
    Stop(u32),
    /// The row has all tokens that were asked for, or as many as the model holds.
    #[default]
    Length,
}

/// The token that one step chose for one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneratedToken {
    /// The number of the prompt that the token continues, from 0.
    pub row: usize,
    /// The token; if a stop token ended the row, that token.
    pub token: u32,
    /// Its log-probability by the model itself (nats).
    pub log_probability: f64,
    /// Why the row ended, if this was its last token.
    pub finish_reason: Option<FinishReason>,
}

/// Changes the logits of the next token of a row, given the row's number and its tokens so far.
pub(super) type Processor<'a> = Box<dyn FnMut(usize, &[u32], &mut [f32]) + 'a>;

#[derive(Clone)]
pub(super) struct Row {
    /// The number of its prompt.
    pub(super) index: usize,
    /// How many more tokens it may get; 0 once it has ended.
    pub(super) budget: usize,
    /// The prompt and what was chosen.
    pub(super) tokens: Vec<u32>,
    /// How many of `tokens` the model has read.
    pub(super) read: usize,
    random: ChaCha8Rng,
}

impl Row {
    pub(super) fn new(
        index: usize,
        prompt: &[u32],
        budget: usize,
        options: &GenerateOptions,
    ) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&options.seed.to_le_bytes());
        let mut random = ChaCha8Rng::from_seed(key);
        // Rows share no random numbers, so that the tokens of a row do not depend on other rows.
        random.set_stream(index as u64);
        Self {
            index,
            budget,
            tokens: prompt.to_vec(),
            read: 0,
            random,
        }
    }

    /// Puts tokens that the state had read before at the beginning.
    #[cfg(feature = "chat")]
    pub(super) fn prepend_read(&mut self, read: &[u32]) {
        self.tokens.splice(..0, read.iter().copied());
        self.read += read.len();
    }

    /// The tokens that the model has not read.
    pub(super) fn unread(&self) -> &[u32] {
        &self.tokens[self.read..]
    }

    /// Takes back all guesses but the first `agreed` tokens, which `row` has too, and goes on with the unread tokens of `row` and its random numbers.
    pub(super) fn follow(&mut self, row: &Self, agreed: usize) {
        self.tokens.truncate(agreed);
        self.tokens.extend(&row.tokens[agreed..]);
        self.read = self.read.min(agreed);
        self.random = row.random.clone();
    }

    /// Adds what a draft chooses, with the random number that the model would have.
    pub(super) fn guess(
        &mut self,
        logits: &[f32],
        options: &GenerateOptions,
    ) -> Result<(), GenerateError> {
        let token = self.draw(logits, options, &mut None)?;
        self.add(token);
        Ok(())
    }

    pub(super) fn choose(
        &mut self,
        logits: &[f32],
        options: &GenerateOptions,
        processor: &mut Option<Processor>,
    ) -> Result<GeneratedToken, GenerateError> {
        let normaliser = log_sum_exp(self.index, logits)?;
        let token = self.draw(logits, options, processor)?;
        self.add(token);
        self.budget -= 1;
        let mut finish_reason = (self.budget == 0).then_some(FinishReason::Length);
        if options.stop_tokens.contains(&token) {
            self.budget = 0;
            finish_reason = Some(FinishReason::Stop(token));
        }
        Ok(GeneratedToken {
            row: self.index,
            token,
            log_probability: f64::from(logits[token as usize]) - normaliser,
            finish_reason,
        })
    }

    /// The token that these logits lead to.
    fn draw(
        &mut self,
        logits: &[f32],
        options: &GenerateOptions,
        processor: &mut Option<Processor>,
    ) -> Result<u32, GenerateError> {
        // Copied only if they are changed.
        let mut logits = Cow::Borrowed(logits);
        if let Some(penalty) = options.repetition_penalty {
            self.penalise(logits.to_mut(), penalty);
        }
        if let Some(processor) = processor {
            processor(self.index, &self.tokens, logits.to_mut());
        }
        let sampling = &options.sampling;
        sampling.choose(self.index, &logits, &mut self.random)
    }

    /// Appends a token; all earlier ones are now in the cache.
    fn add(&mut self, token: u32) {
        self.read = self.tokens.len();
        self.tokens.push(token);
    }

    fn penalise(&self, logits: &mut [f32], penalty: f64) {
        // Once, however often a token is there.
        for token in self.tokens.iter().copied().collect::<BTreeSet<u32>>() {
            let logit = f64::from(logits[token as usize]);
            let moved = match logit < 0.0 {
                true => logit * penalty,
                false => logit / penalty,
            };
            logits[token as usize] = moved as f32;
        }
    }
}
