//! The search for the most probable outputs.

use std::slice;

use super::{
    Autoregressive, BeamOptions, FinishReason, GenerateError, Generation,
    logits::{NextLogits, log_sum_exp},
    prompts::budgets,
};

/// One output that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// The output.
    pub generation: Generation,
    /// Its log-probability divided by the length penalty; see [`BeamOptions::length_penalty`].
    pub score: f64,
}

/// The best outputs for every prompt, best first, by beam search (greedy with a beam of 1).
///
/// Outputs that a stop token ended and outputs that the limit cut off are ranked together, by their [scores](Hypothesis::score).
/// A search ends when as many outputs have ended as the beam is wide and no live hypothesis scores better than the worst of
/// them, each judged at its length so far; this is `early_stopping=False` of Hugging Face's transformers. Ties go to the ended output,
/// then to the smaller token, so the result is repeatable. Tokens of probability zero are never chosen, so fewer outputs than
/// [`n_best`](BeamOptions::n_best) may be found, but always at least one.
///
/// Arguments are those of [`stream`](super::stream()).
///
/// # Errors
///
/// When the beam is wider than the vocabulary, and as [`stream`](super::stream()) and its steps.
///
/// # Cost
///
/// The state holds up to `beam` rows for each prompt. Each step reads the logits `[rows, vocab_size]` from the device once.
///
/// # Example
///
/// See [the module](super#example).
pub fn beam_search<M: Autoregressive>(
    model: &M,
    mut state: M::State,
    prompts: &[Vec<u32>],
    options: &BeamOptions,
) -> Result<Vec<Vec<Hypothesis>>, GenerateError> {
    let (beam, vocab_size) = (options.beam, model.vocab_size());
    if beam > vocab_size {
        return Err(GenerateError::Beam { beam, vocab_size });
    }
    let budgets = budgets(
        model,
        &state,
        prompts,
        &options.stop_tokens,
        options.max_new_tokens,
    )?;
    let rows = prompts.iter().zip(budgets).enumerate();
    let mut beams: Vec<Beam> = rows
        .map(|(row, (prompt, budget))| Beam::new(row, prompt, budget, options))
        .collect();
    loop {
        let unread: Vec<&[u32]> = beams.iter().flat_map(Beam::unread).collect();
        if unread.is_empty() {
            break;
        }
        let logits = NextLogits::read(model, &mut state, &unread)?;
        let mut logits = logits.rows();
        let (mut parents, mut row) = (Vec::new(), 0);
        for beam in beams.iter_mut().filter(|beam| !beam.live.is_empty()) {
            let count = beam.live.len();
            beam.advance(logits.by_ref().take(count), options)?;
            parents.extend(beam.live.iter().map(|live| row + live.parent));
            row += count;
        }
        if !parents.is_empty() {
            model.reorder(&mut state, &parents);
        }
    }
    Ok(beams.into_iter().map(|beam| beam.best(options)).collect())
}

/// The hypotheses that continue one prompt.
struct Beam<'a> {
    /// The number of the prompt.
    row: usize,
    prompt: &'a [u32],
    /// How many steps are left.
    budget: usize,
    /// The live hypotheses, most probable first: a row of the state each.
    live: Vec<Live>,
    /// The hypotheses that a stop token ended, best first; after the last step, also those that the limit ended.
    ended: Vec<Hypothesis>,
}

/// A hypothesis that has not ended.
#[derive(Default)]
struct Live {
    /// Which live hypothesis of the step before it continues.
    parent: usize,
    generation: Generation,
}

/// A live hypothesis with one more token.
struct Candidate {
    parent: usize,
    token: u32,
    log_probability: f64,
    /// Log-probability of all tokens.
    total: f64,
}

impl<'a> Beam<'a> {
    fn new(row: usize, prompt: &'a [u32], budget: usize, options: &BeamOptions) -> Self {
        let mut beam = Self {
            row,
            prompt,
            budget,
            live: vec![Live::default()],
            ended: Vec::new(),
        };
        beam.cut_off_where_full(options);
        beam
    }

    /// The tokens of each live hypothesis that the model has not read yet.
    fn unread(&self) -> impl Iterator<Item = &[u32]> {
        self.live.iter().map(|live| {
            let last = live.generation.tokens.last();
            last.map_or(self.prompt, slice::from_ref)
        })
    }

    /// Replaces the live hypotheses by their best continuations, given the logits of the next token of each.
    fn advance<'l>(
        &mut self,
        rows: impl Iterator<Item = &'l [f32]>,
        options: &BeamOptions,
    ) -> Result<(), GenerateError> {
        let mut live = Vec::with_capacity(options.beam);
        for (rank, candidate) in self.candidates(rows, options)?.into_iter().enumerate() {
            if live.len() == options.beam {
                break;
            }
            let Candidate { parent, token, .. } = candidate;
            let is_end = options.stop_tokens.contains(&token);
            // An end token ranked below the beam width is discarded, as a continuation would be.
            if is_end && rank >= options.beam {
                continue;
            }
            let mut generation = self.live[parent].generation.clone();
            generation.log_probabilities.push(candidate.log_probability);
            if is_end {
                generation.finish_reason = FinishReason::Stop(token);
                self.ended.push(Hypothesis::new(generation, options));
            } else {
                generation.tokens.push(token);
                live.push(Live { parent, generation });
            }
        }
        self.live = live;
        // Sorting is stable: of equal scores the earlier ending stays ahead.
        self.ended.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.ended.truncate(options.beam);
        self.budget -= 1;
        if self.is_done(options) {
            self.live.clear();
        }
        self.cut_off_where_full(options);
        Ok(())
    }

    /// The continuations that may matter, most probable first; among equals, those of the better parent, then of the smaller token.
    fn candidates<'l>(
        &self,
        rows: impl Iterator<Item = &'l [f32]>,
        options: &BeamOptions,
    ) -> Result<Vec<Candidate>, GenerateError> {
        // More continuations of one parent cannot matter, even if all stop tokens are among them.
        let count = options.beam + options.stop_tokens.len();
        let mut candidates = Vec::new();
        for (parent, (live, logits)) in self.live.iter().zip(rows).enumerate() {
            let so_far = live.generation.log_probability();
            let normaliser = log_sum_exp(self.row, logits)?;
            for token in best_tokens(logits, count) {
                let log_probability = f64::from(logits[token]) - normaliser;
                candidates.push(Candidate {
                    parent,
                    token: token as u32,
                    log_probability,
                    total: so_far + log_probability,
                });
            }
        }
        candidates.retain(|candidate| candidate.total > f64::NEG_INFINITY);
        // Sorting is stable, and the candidates come by parent and token.
        candidates.sort_by(|a, b| b.total.total_cmp(&a.total));
        Ok(candidates)
    }

    /// Whether as many hypotheses have ended as the beam is wide, and the best live hypothesis is no better than the worst of them.
    ///
    /// Counting endings alone would not do: after a confident step, improbable ends fill the beam.
    fn is_done(&self, options: &BeamOptions) -> bool {
        let (Some(worst), Some(live)) = (self.ended.last(), self.live.first()) else {
            return self.live.is_empty();
        };
        self.ended.len() == options.beam && score(&live.generation, options) <= worst.score
    }

    fn cut_off_where_full(&mut self, options: &BeamOptions) {
        if self.budget == 0 {
            let cut_off = self.live.drain(..).map(|live| live.generation);
            let cut_off = cut_off.map(|generation| Hypothesis::new(generation, options));
            self.ended.extend(cut_off);
        }
    }

    fn best(mut self, options: &BeamOptions) -> Vec<Hypothesis> {
        self.ended.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.ended.truncate(options.n_best);
        self.ended
    }
}

impl Hypothesis {
    fn new(generation: Generation, options: &BeamOptions) -> Self {
        Self {
            score: score(&generation, options),
            generation,
        }
    }
}

/// The log-probability divided by the length penalty. The stop token counts.
fn score(generation: &Generation, options: &BeamOptions) -> f64 {
    let len = generation.log_probabilities.len() as f64;
    generation.log_probability() / ((5.0 + len) / 6.0).powf(options.length_penalty)
}

/// Indices of the `count` largest numbers, largest first, smaller index first among equals.
fn best_tokens(row: &[f32], count: usize) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(count + 1);
    for (token, &value) in row.iter().enumerate() {
        if best.len() == count && best.last().is_some_and(|&last| value <= row[last]) {
            continue;
        }
        let at = best.partition_point(|&other| row[other] >= value);
        best.insert(at, token);
        best.truncate(count);
    }
    best
}
