//! Generation with a smaller model that guesses ahead.

use burn::tensor::Tensor;

use super::{
    Autoregressive,
    GenerateError::{self, Draft, NoLogits, Rows, Vocabularies},
    GenerateOptions, Generation,
    logits::NextLogits,
    row::Row,
    stream::rows,
};

/// A model that can check guesses: it reads several tokens at once, says what it would have chosen after each, and forgets the wrong ones.
pub trait Speculative: Autoregressive {
    /// As [`advance`](Autoregressive::advance), with the logits after each of the last `counts[r]` tokens of every row `r`.
    ///
    /// # Shapes
    ///
    /// - `tokens`: one slice per row, of at least `counts[r]` tokens; `counts[r]` is at least 1
    /// - output: `[Σ counts, vocab_size]`, row after row
    fn advance_last(
        &self,
        state: &mut Self::State,
        tokens: &[&[u32]],
        counts: &[usize],
    ) -> Tensor<2>;

    /// Makes room for `new` more tokens of every row, so that [`truncate`](Self::truncate) can forget any of them, in however many calls they are read.
    /// `new` may be more than a row can take.
    ///
    /// A cache with a window drops the tokens behind it here, and not while it reads these tokens. A state that keeps everything has nothing to do.
    fn reserve(&self, state: &mut Self::State, new: usize);

    /// Forgets all but the first `lengths[r]` tokens of each row `r`. Every forgotten token was
    /// appended after the last [`reserve`](Self::reserve).
    ///
    /// # Panics
    ///
    /// For the models of this crate, as [`KvCache::truncate`](burn_attn::KvCache::truncate): never for tokens after [`reserve`](Self::reserve).
    fn truncate(&self, state: &mut Self::State, lengths: &[usize]);
}

/// The result of speculative decoding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speculation {
    /// The continuations, as [`generate`](super::generate()) returns them.
    pub generations: Vec<Generation>,
    /// Tokens that the draft guessed. Includes guesses after the first rejected one, or after a stop token, which were never checked.
    pub guessed: usize,
    /// Guesses that were kept: those before the first that the model would not have chosen.
    pub accepted: usize,
}

/// [`generate`](super::generate()) by a model and a faster one, the draft: the draft guesses the next `guesses` tokens one by one, and the model reads all
/// of them at once.
///
/// The tokens are those of the model alone, also if they are drawn at random: the model chooses each token itself, with the same random numbers, and the
/// guesses after the first wrong one are forgotten. Only rounding may differ, because it depends on the number of tokens read at once.
/// A draft with a shorter [`max_len`](Autoregressive::max_len) than the model guesses as long as it can, and the model goes on alone.
///
/// There is no [`logits_processor`](super::Stream::logits_processor) and no [`stream`](super::stream()), and the states are not given back.
/// [`Seq2Seq`](crate::seq2seq::Seq2Seq) is not [`Speculative`], nor is a model whose state cannot forget single tokens, such as [`qwen3_next`](crate::qwen3_next)'s.
///
/// # Arguments
///
/// - `model` and `draft`, each with its state: one row for each prompt, which has not read the prompt yet
/// - `guesses`: how many tokens the draft guesses at a time. With a draft that is a tenth as expensive and right four times out of five, about 6, if the
///   model reads these in the time of one (theorem 3.8 of the paper); less if it does not
///
/// # Errors
///
/// As [`generate`](super::generate()) for the model. Of the draft, a state with another number of rows, missing logits, an autodiff device and logits that
/// are NaN are a [`GenerateError::Draft`]. The vocabularies have to be the same; only their sizes are checked.
///
/// # Cost
///
/// For each step of the model, `guesses` steps of the draft. A step of the model adds up to `guesses + 1` tokens to a row. It reads the logits
/// `[rows · (guesses + 1), vocab_size]` from the device, and each step of the draft `[rows, vocab_size]`.
///
/// All rows get the same number of guesses: less than any row still needs, and no more than the draft has room for in any row, so a row near its
/// end limits all. Rows that keep different numbers of guesses have unequal lengths, and their caches are then written row by row.
///
/// # Source
///
/// "Fast inference from transformers via speculative decoding" (arXiv:2211.17192). Its rule keeps the distribution of the tokens; this rule keeps the
/// tokens.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn_models::{generate::{GenerateOptions, generate, speculate}, language_model::LanguageModelConfig};
///
/// let device = Device::default();
/// burn_attn::seed(&device, 1);
/// let model = LanguageModelConfig::new(100).with_d_model(64).with_n_heads(4).init(&device);
/// let draft = LanguageModelConfig::new(100).with_d_model(16).with_n_heads(2).init(&device);
/// let prompts = [vec![5, 6, 7], vec![8]];
/// let options = GenerateOptions::new(20);
///
/// let found = speculate((&model, model.start(2)), (&draft, draft.start(2)), &prompts, &options, 4)?;
/// let alone = generate(&model, model.start(2), &prompts, &options)?;
/// assert_eq!(found.generations[0].tokens, alone[0].tokens);
/// # Ok::<(), burn_attn_models::generate::GenerateError>(())
/// ```
pub fn speculate<M: Speculative, D: Speculative>(
    (model, mut state): (&M, M::State),
    (draft, mut draft_state): (&D, D::State),
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
    guesses: usize,
) -> Result<Speculation, GenerateError> {
    let mut pairs = pairs((model, &state), (draft, &draft_state), prompts, options)?;
    let mut found = Speculation {
        generations: vec![Generation::default(); prompts.len()],
        ..Speculation::default()
    };
    // How many tokens were guessed the last time.
    let mut count = 0;
    loop {
        let live = (0..pairs.len()).filter(|&at| pairs[at].row.budget > 0);
        let live: Vec<usize> = live.collect();
        if live.is_empty() {
            return Ok(found);
        }
        if live.len() < pairs.len() {
            model.reorder(&mut state, &live);
            draft.reorder(&mut draft_state, &live);
            pairs.retain(|pair| pair.row.budget > 0);
        }
        if count > 0 {
            let read = pairs.iter().map(|pair| pair.before + pair.row.read);
            model.truncate(&mut state, &read.collect::<Vec<_>>());
            let read = pairs
                .iter()
                .map(|pair| pair.before_of_draft + pair.guessed.read);
            draft.truncate(&mut draft_state, &read.collect::<Vec<_>>());
        }

        let budgets = pairs.iter().map(|pair| pair.budget(draft.max_len()));
        count = guesses.min(budgets.min().unwrap_or(0));
        guess(draft, &mut draft_state, &mut pairs, options, count)
            .map_err(|error| Draft(Box::new(error)))?;

        let unread: Vec<&[u32]> = pairs
            .iter()
            .map(|pair| &pair.guessed.tokens[pair.row.read..])
            .collect();
        model.reserve(&mut state, longest(&unread));
        let logits = model.advance_last(&mut state, &unread, &vec![count + 1; pairs.len()]);
        let logits = NextLogits::of(model, logits, pairs.len() * (count + 1))?;
        let mut logits = logits.rows();
        for pair in &mut pairs {
            let known = pair.row.tokens.len();
            let mut of_row = logits.by_ref().take(count + 1);
            let mut accepted = 0;
            for logits in of_row.by_ref() {
                let chosen = pair.row.choose(logits, options, &mut None)?;
                found.generations[chosen.row].push(&chosen);
                let guess = pair.guessed.tokens.get(known + accepted);
                let is_guessed = guess == Some(&chosen.token);
                accepted += usize::from(is_guessed);
                if chosen.finish_reason.is_some() || !is_guessed {
                    break;
                }
            }
            of_row.for_each(drop);
            found.guessed += count;
            found.accepted += accepted;
            pair.guessed.follow(&pair.row, known + accepted);
        }
    }
}

/// A row of both models.
struct Pair {
    row: Row,
    /// The row with the guesses of the draft; its `read` is what the draft has read.
    guessed: Row,
    /// Tokens that the model's state had read before.
    before: usize,
    /// Tokens that the draft's state had read before.
    before_of_draft: usize,
}

impl Pair {
    /// How many tokens may be guessed, if the draft holds at most `max_len`.
    fn budget(&self, max_len: Option<usize>) -> usize {
        // The draft reads the row and all of its guesses but the last.
        let of_draft = max_len.map_or(usize::MAX, |max_len| {
            let read = self.before_of_draft + self.row.tokens.len();
            max_len.saturating_add(1).saturating_sub(read)
        });
        // The last token of a row is chosen, never guessed.
        of_draft.min(self.row.budget - 1)
    }
}

fn pairs<M: Speculative, D: Speculative>(
    (model, state): (&M, &M::State),
    (draft, draft_state): (&D, &D::State),
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
) -> Result<Vec<Pair>, GenerateError> {
    let [known, known_to_draft] = [model.vocab_size(), draft.vocab_size()];
    if known != known_to_draft {
        return Err(Vocabularies {
            model: known,
            draft: known_to_draft,
        });
    }
    if !draft.has_logits() {
        return Err(Draft(Box::new(NoLogits)));
    }
    let rows = rows(model, state, prompts, options, 0)?;
    let [before, before_of_draft] = [model.lengths(state), draft.lengths(draft_state)];
    let [prompts, rows_of_draft] = [prompts.len(), before_of_draft.len()];
    if rows_of_draft != prompts {
        let rows = rows_of_draft;
        return Err(Draft(Box::new(Rows { prompts, rows })));
    }
    let rows = rows.into_iter().zip(before).zip(before_of_draft);
    Ok(rows
        .map(|((row, before), before_of_draft)| Pair {
            guessed: row.clone(),
            row,
            before,
            before_of_draft,
        })
        .collect())
}

fn guess<D: Speculative>(
    draft: &D,
    state: &mut D::State,
    pairs: &mut [Pair],
    options: &GenerateOptions,
    count: usize,
) -> Result<(), GenerateError> {
    for at in 0..count {
        let unread: Vec<&[u32]> = pairs.iter().map(|pair| pair.guessed.unread()).collect();
        if at == 0 {
            // After the unread tokens, the draft reads its guesses but the last.
            draft.reserve(state, longest(&unread) + count - 1);
        }
        let logits = NextLogits::read(draft, state, &unread)?;
        for (pair, logits) in pairs.iter_mut().zip(logits.rows()) {
            pair.guessed.guess(logits, options)?;
        }
    }
    Ok(())
}

fn longest(rows: &[&[u32]]) -> usize {
    rows.iter().map(|tokens| tokens.len()).max().unwrap_or(0)
}
