//! Generation, step by step or to its end.

use super::{
    Autoregressive, GenerateError, GenerateOptions,
    logits::NextLogits,
    prompts::budgets,
    row::{FinishReason, GeneratedToken, Processor, Row},
};

/// The continuation of one prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generation {
    /// The new tokens, without the stop token.
    pub tokens: Vec<u32>,
    /// The log-probability of each by the model itself (nats); if a stop token ended the row, its own comes last.
    pub log_probabilities: Vec<f64>,
    /// Why the row ended.
    pub finish_reason: FinishReason,
}

impl Generation {
    /// Sum of the log-probabilities of the tokens and of the stop token, if there is one (nats).
    pub fn log_probability(&self) -> f64 {
        self.log_probabilities.iter().sum()
    }

    pub(super) fn push(&mut self, chosen: &GeneratedToken) {
        self.log_probabilities.push(chosen.log_probability);
        match chosen.finish_reason {
            Some(FinishReason::Stop(token)) => self.finish_reason = FinishReason::Stop(token),
            Some(FinishReason::Length) | None => self.tokens.push(chosen.token),
        }
    }
}

/// Continues every prompt to its end, and returns one [`Generation`] per prompt; see [`stream`].
///
/// Errors and cost are those of [`stream`] and its steps.
///
/// # Example
///
/// See [the module](super#example).
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn_models::{generate::{GenerateError, GenerateOptions, generate}, language_model::LanguageModelConfig};
///
/// let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
/// let refused = generate(&model, model.start(1), &[vec![]], &GenerateOptions::new(4)).unwrap_err();
/// assert_eq!(refused, GenerateError::EmptyPrompt { row: 0 });
/// ```
pub fn generate<M: Autoregressive>(
    model: &M,
    state: M::State,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
) -> Result<Vec<Generation>, GenerateError> {
    let mut generations = vec![Generation::default(); prompts.len()];
    for step in stream(model, state, prompts, options)? {
        for chosen in step? {
            generations[chosen.row].push(&chosen);
        }
    }
    Ok(generations)
}

/// Continues every prompt: an iterator whose every step yields one token per row, or the error that ends it.
///
/// The model runs only when the next step is asked for, so dropping the iterator stops it. Rows that ended are dropped from the state,
/// and the others go on.
///
/// # Arguments
///
/// - `state`: one row for each prompt, which has not read the prompt yet
/// - `prompts`: the tokens that each row continues; their lengths may differ; for an encoder–decoder, the begin token
///
/// # Errors
///
/// When the model has no logits head, the number of prompts is not the number of the state's rows, a prompt is empty or too long for the
/// model, or a token of a prompt or a stop token is outside the vocabulary. In a step, when the model is on an autodiff device, where
/// dropout would act and the graph of all steps would be kept (generate with `model.valid()`), and when a logit is NaN or the largest is
/// not finite.
///
/// # Cost
///
/// A step reads the logits `[rows, vocab_size]` from the device once; choosing is O(rows · vocab_size) on the host, see
/// [`Sampling::distribution`](super::Sampling::distribution). What a step of the model costs is said by its implementation of
/// [`Autoregressive`].
///
/// # Example
///
/// See [the module](super#streaming).
pub fn stream<'a, M: Autoregressive>(
    model: &'a M,
    state: M::State,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
) -> Result<Stream<'a, M>, GenerateError> {
    Ok(Stream {
        model,
        rows: rows(model, &state, prompts, options, 0)?,
        state,
        options: options.clone(),
        processor: None,
        given: prompts.len(),
    })
}

/// Rows that continue `prompts`, numbered from `first` on.
pub(super) fn rows<M: Autoregressive>(
    model: &M,
    state: &M::State,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
    first: usize,
) -> Result<Vec<Row>, GenerateError> {
    let budgets = budgets(
        model,
        state,
        prompts,
        &options.stop_tokens,
        options.max_new_tokens,
    )?;
    let rows = (first..).zip(prompts.iter().zip(budgets));
    Ok(rows
        .map(|(index, (prompt, budget))| Row::new(index, prompt, budget, options))
        .collect())
}

/// The steps of a generation; see [`stream`].
///
/// Each item has one [`GeneratedToken`] for every row that had not ended before, in the order of the prompts, or is an error, with which all rows
/// end. Once all rows have ended, `next` returns `None` until others [`join`](Self::join).
pub struct Stream<'a, M: Autoregressive> {
    model: &'a M,
    state: M::State,
    options: GenerateOptions,
    processor: Option<Processor<'a>>,
    /// The rows of the state, in its order.
    rows: Vec<Row>,
    /// How many prompts it has been given so far.
    given: usize,
}

impl<M: Autoregressive> Iterator for Stream<'_, M> {
    type Item = Result<Vec<GeneratedToken>, GenerateError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.drop_ended();
        if self.is_over() {
            return None;
        }
        let step = step(
            self.model,
            &mut self.state,
            &mut self.rows,
            &self.options,
            &mut self.processor,
        );
        if step.is_err() {
            // The state may have read the tokens of the step, so it cannot be repeated.
            self.rows.iter_mut().for_each(|row| row.budget = 0);
        }
        Some(step)
    }
}

/// One more token for each row of `state`.
fn step<M: Autoregressive>(
    model: &M,
    state: &mut M::State,
    rows: &mut [Row],
    options: &GenerateOptions,
    processor: &mut Option<Processor>,
) -> Result<Vec<GeneratedToken>, GenerateError> {
    let unread: Vec<&[u32]> = rows.iter().map(Row::unread).collect();
    let logits = NextLogits::read(model, state, &unread)?;
    let rows = rows.iter_mut().zip(logits.rows());
    rows.map(|(row, logits)| row.choose(logits, options, processor))
        .collect()
}

/// A row of a state that a [`Stream`] gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The number of the prompt.
    pub row: usize,
    /// What the row has not read yet: its last token, or the prompt if there was no step.
    pub unread: Vec<u32>,
}

impl<'a, M: Autoregressive> Stream<'a, M> {
    /// Changes the logits before a token is chosen, in every step and for every row: what a grammar forbids becomes `-inf`, for one.
    ///
    /// `processor` is given the number of the row, its tokens so far (the prompt, and what was chosen), and the logits of the next one, after
    /// the repetition penalty. Log-probabilities remain those of the model itself.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_attn_models::{generate::{GenerateOptions, stream}, language_model::LanguageModelConfig};
    ///
    /// let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
    /// // Never the same token twice.
    /// let steps = stream(&model, model.start(1), &[vec![5, 6]], &GenerateOptions::new(20))?
    ///     .logits_processor(|_row, tokens, logits| tokens.iter().for_each(|&token| logits[token as usize] = f32::NEG_INFINITY));
    /// let mut tokens = Vec::new();
    /// for step in steps {
    ///     tokens.push(step?[0].token);
    /// }
    /// tokens.sort_unstable();
    /// tokens.dedup();
    /// assert_eq!(tokens.len(), 20);
    /// # Ok::<(), burn_attn_models::generate::GenerateError>(())
    /// ```
    pub fn logits_processor(
        mut self,
        processor: impl FnMut(usize, &[u32], &mut [f32]) + 'a,
    ) -> Self {
        self.processor = Some(Box::new(processor));
        self
    }

    /// Says which tokens the state of the only row has read before the prompt, so that the repetition penalty is about them too.
    #[cfg(feature = "chat")]
    pub(crate) fn after(mut self, read: &[u32]) -> Self {
        self.rows[0].prepend_read(read);
        self
    }

    /// Adds new prompts to a running batch: the rows of `state` continue `prompts` beside the rows that are there. Returns the first
    /// token of each new row.
    ///
    /// If the stream has been given `n` prompts before, new row `r` is row `n + r`, with the tokens of a row `n + r` that was there from the start.
    /// If all rows that are there have ended, they are dropped, and [`into_state`](Self::into_state) no longer returns them.
    ///
    /// # Errors
    ///
    /// As [`stream`] and its steps. The rows that are there are not affected. A [`logits_processor`](Self::logits_processor) may already have
    /// been called for some of the new rows: if it keeps something for each row, it has to forget it, because the next rows to join get the
    /// same numbers.
    ///
    /// # Panics
    ///
    /// As the model's [`join`](Autoregressive::join).
    ///
    /// # Cost
    ///
    /// The new rows read their prompts by themselves, while the others wait. The caches of all rows are copied once.
    ///
    /// # Example
    ///
    /// See [the module](super#joining-a-running-batch).
    pub fn join(
        &mut self,
        mut state: M::State,
        prompts: &[Vec<u32>],
    ) -> Result<Vec<GeneratedToken>, GenerateError> {
        let (model, options) = (self.model, &self.options);
        let mut rows = rows(model, &state, prompts, options, self.given)?;
        let first = match rows.iter().any(|row| row.budget > 0) {
            true => step(model, &mut state, &mut rows, options, &mut self.processor)?,
            false => Vec::new(),
        };
        self.given += prompts.len();
        self.drop_ended();
        if self.is_over() {
            (self.state, self.rows) = (state, rows);
        } else {
            self.model.join(&mut self.state, state);
            self.rows.append(&mut rows);
        }
        Ok(first)
    }

    /// Ends the generation: the state, and for each of its rows what it has not read yet.
    ///
    /// A row that ended before another one is no longer there, but those that ended in the last step are. After a step with an error, the state may
    /// have read what is returned as unread.
    ///
    /// See [the module](super#several-turns).
    pub fn into_state(self) -> (M::State, Vec<Unfinished>) {
        let rows = self.rows.into_iter().map(|row| Unfinished {
            row: row.index,
            unread: row.unread().to_vec(),
        });
        (self.state, rows.collect())
    }

    fn is_over(&self) -> bool {
        self.rows.iter().all(|row| row.budget == 0)
    }

    fn drop_ended(&mut self) {
        let live = (0..self.rows.len()).filter(|&at| self.rows[at].budget > 0);
        let live: Vec<usize> = live.collect();
        // If all have ended, they stay for `into_state`.
        if !live.is_empty() && live.len() < self.rows.len() {
            self.model.reorder(&mut self.state, &live);
            self.rows.retain(|row| row.budget > 0);
        }
    }
}
