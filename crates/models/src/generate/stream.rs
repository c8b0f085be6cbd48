//! Generation, step by step or to its end.

use std::collections::BTreeSet;

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{
    Autoregressive, GenerateOptions,
    logits::{NextLogits, log_sum_exp},
    prompts::room,
};

/// Why a row ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// This stop token was chosen.
    Stop(u32),
    /// The row is as long as was asked for, or as the model has room for.
    #[default]
    Length,
}

/// The token that one step chose for one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The number of the prompt that the token continues, from 0.
    pub row: usize,
    /// The token; if a stop token ended the row, that token.
    pub token: u32,
    /// Its log-probability by the model itself (nats).
    pub log_probability: f64,
    /// Why the row ended, if this was its last token.
    pub finish: Option<Finish>,
}

/// The continuation of one prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generation {
    /// The new tokens, without the stop token.
    pub tokens: Vec<u32>,
    /// The log-probability of each by the model itself (nats); if a stop token ended the row, its own comes last.
    pub log_probabilities: Vec<f64>,
    /// Why the row ended.
    pub finish: Finish,
}

impl Generation {
    /// Sum of the log-probabilities of the tokens and of the stop token, if there is one (nats).
    pub fn log_probability(&self) -> f64 {
        self.log_probabilities.iter().sum()
    }

    fn push(&mut self, choice: &Choice) {
        self.log_probabilities.push(choice.log_probability);
        match choice.finish {
            Some(Finish::Stop(token)) => self.finish = Finish::Stop(token),
            Some(Finish::Length) | None => self.tokens.push(choice.token),
        }
    }
}

/// Continues every prompt to its end, and returns one [`Generation`] per prompt; see [`stream`].
///
/// # Panics
///
/// As [`stream`].
///
/// # Cost
///
/// As [`stream`].
///
/// # Example
///
/// See [the module](super#example).
pub fn generate<M: Autoregressive>(
    model: &M,
    state: M::State,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
) -> Vec<Generation> {
    let mut generations = vec![Generation::default(); prompts.len()];
    for choice in stream(model, state, prompts, options).flatten() {
        generations[choice.row].push(&choice);
    }
    generations
}

/// Continues every prompt: an iterator whose every step yields one token per row.
///
/// The model runs only when the next step is asked for, so dropping the iterator stops it. Rows that ended are dropped from the state,
/// and the others go on.
///
/// # Arguments
///
/// - `state`: one row for each prompt, which has not read the prompt yet
/// - `prompts`: the tokens that each row continues; their lengths may differ; for an encoder–decoder, the begin token
///
/// # Panics
///
/// When the number of prompts is not the number of the state's rows, a prompt is empty or too long for the model, or a token of a
/// prompt or a stop token is outside the vocabulary. At the first step, when the model is on an autodiff device, where dropout would act
/// and the graph of all steps would be kept: generate with `model.valid()`.
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
) -> Stream<'a, M> {
    Stream {
        model,
        rows: rows(model, &state, prompts, options, 0),
        state,
        options: options.clone(),
        given: prompts.len(),
    }
}

/// Rows that continue `prompts`, numbered from `first` on.
fn rows<M: Autoregressive>(
    model: &M,
    state: &M::State,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
    first: usize,
) -> Vec<Row> {
    let room = room(
        model,
        state,
        prompts,
        &options.stop_tokens,
        options.max_new_tokens,
    );
    let rows = (first..).zip(prompts.iter().zip(room));
    rows.map(|(index, (prompt, room))| Row::new(index, prompt, room, options))
        .collect()
}

/// The steps of a generation; see [`stream`].
///
/// Each item has one [`Choice`] for every row that had not ended before, in the order of the prompts. Once all rows have ended, `next` returns
/// `None` until others [`join`](Self::join).
pub struct Stream<'a, M: Autoregressive> {
    model: &'a M,
    state: M::State,
    options: GenerateOptions,
    /// The rows of the state, in its order.
    rows: Vec<Row>,
    /// How many prompts it has been given so far.
    given: usize,
}

impl<M: Autoregressive> Iterator for Stream<'_, M> {
    type Item = Vec<Choice>;

    fn next(&mut self) -> Option<Vec<Choice>> {
        self.drop_ended();
        if self.rows.is_empty() {
            return None;
        }
        Some(step(
            self.model,
            &mut self.state,
            &mut self.rows,
            &self.options,
        ))
    }
}

/// One more token for each row of `state`.
fn step<M: Autoregressive>(
    model: &M,
    state: &mut M::State,
    rows: &mut [Row],
    options: &GenerateOptions,
) -> Vec<Choice> {
    let unread: Vec<&[u32]> = rows.iter().map(|row| row.unread.as_slice()).collect();
    let logits = NextLogits::read(model, state, &unread);
    let rows = rows.iter_mut().zip(logits.rows());
    rows.map(|(row, logits)| row.choose(logits, options))
        .collect()
}

impl<M: Autoregressive> Stream<'_, M> {
    /// Adds new prompts to a running batch: the rows of `state` continue `prompts` beside the rows that are there. Returns the first
    /// choice of each new row.
    ///
    /// If the stream has been given `n` prompts before, new row `r` is row `n + r`. Its tokens are those that it would have had if it had been
    /// row `n + r` from the start.
    ///
    /// # Panics
    ///
    /// As [`stream`], and as the model's [`join`](Autoregressive::join).
    ///
    /// # Cost
    ///
    /// The new rows read their prompts by themselves, while the others wait. The caches of all rows are copied once.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_attn_models::{generate::{GenerateOptions, stream}, language_model::LanguageModelConfig};
    ///
    /// let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
    /// let mut running = stream(&model, model.start(2), &[vec![5, 6], vec![7]], &GenerateOptions::new(3));
    /// running.next();
    /// let first = running.join(model.start(1), &[vec![8, 9, 10]]);
    /// assert_eq!(first[0].row, 2);
    /// let rows: Vec<usize> = running.flatten().map(|choice| choice.row).collect();
    /// assert_eq!(rows, [0, 1, 2, 0, 1, 2]);
    /// ```
    pub fn join(&mut self, mut state: M::State, prompts: &[Vec<u32>]) -> Vec<Choice> {
        let mut rows = rows(self.model, &state, prompts, &self.options, self.given);
        self.given += prompts.len();
        let choices = match rows.iter().any(|row| row.room > 0) {
            true => step(self.model, &mut state, &mut rows, &self.options),
            false => Vec::new(),
        };
        self.drop_ended();
        match self.rows.is_empty() {
            true => self.state = state,
            false => self.model.join(&mut self.state, state),
        }
        self.rows.append(&mut rows);
        choices
    }

    fn drop_ended(&mut self) {
        let rows = self.rows.iter().enumerate();
        let live: Vec<usize> = rows
            .filter(|(_, row)| row.room > 0)
            .map(|(at, _)| at)
            .collect();
        if !live.is_empty() && live.len() < self.rows.len() {
            self.model.reorder(&mut self.state, &live);
        }
        self.rows.retain(|row| row.room > 0);
    }
}

/// A row that is being continued.
struct Row {
    index: usize,
    /// How many more tokens it may get; 0 once it has ended.
    room: usize,
    /// The tokens that the model has not read yet.
    unread: Vec<u32>,
    /// Its tokens so far, each once, if they are penalised.
    seen: BTreeSet<u32>,
    random: ChaCha8Rng,
}

impl Row {
    fn new(index: usize, prompt: &[u32], room: usize, options: &GenerateOptions) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&options.seed.to_le_bytes());
        let mut random = ChaCha8Rng::from_seed(key);
        // Rows share no random numbers, so that none depends on what another one does.
        random.set_stream(index as u64);
        let seen = options.repetition_penalty.map(|_| prompt.iter().copied());
        Self {
            index,
            room,
            unread: prompt.to_vec(),
            seen: seen.into_iter().flatten().collect(),
            random,
        }
    }

    fn choose(&mut self, logits: &[f32], options: &GenerateOptions) -> Choice {
        let token = match options.repetition_penalty {
            Some(penalty) => {
                let penalised = self.penalised(logits, penalty);
                options.sampling.choose(&penalised, &mut self.random)
            }
            None => options.sampling.choose(logits, &mut self.random),
        };
        if options.repetition_penalty.is_some() {
            self.seen.insert(token);
        }
        self.unread.clear();
        self.unread.push(token);
        self.room -= 1;
        let mut finish = (self.room == 0).then_some(Finish::Length);
        if options.stop_tokens.contains(&token) {
            self.room = 0;
            finish = Some(Finish::Stop(token));
        }
        Choice {
            row: self.index,
            token,
            log_probability: f64::from(logits[token as usize]) - log_sum_exp(logits),
            finish,
        }
    }

    /// The logits, with those of the tokens so far made smaller or larger.
    fn penalised(&self, logits: &[f32], penalty: f64) -> Vec<f32> {
        let mut logits = logits.to_vec();
        for &token in &self.seen {
            let logit = f64::from(logits[token as usize]);
            let moved = if logit < 0.0 {
                logit * penalty
            } else {
                logit / penalty
            };
            logits[token as usize] = moved as f32;
        }
        logits
    }
}
