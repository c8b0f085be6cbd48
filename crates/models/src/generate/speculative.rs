//! Generation with a smaller model that guesses ahead.

use burn::tensor::Tensor;

use super::{
    Autoregressive, GenerateError, GenerateOptions, Generation, logits::NextLogits, row::Row,
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

    /// Forgets all but the first `lengths[r]` tokens of each row `r`.
    ///
    /// # Panics
    ///
    /// For the models of this crate, as [`KvCache::truncate`](burn_attn::KvCache::truncate).
    fn truncate(&self, state: &mut Self::State, lengths: &[usize]);
}

/// What a generation with guesses came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speculation {
    /// As of [`generate`](super::generate()).
    pub generations: Vec<Generation>,
    /// Tokens that the draft guessed.
    pub guessed: usize,
    /// How many of them the model would have chosen too.
    pub accepted: usize,
}

/// [`generate`](super::generate()) by a model and a faster one, the draft: the draft guesses the next `guesses` tokens one by one, and the model reads all
/// of them at once.
///
/// The tokens are those of the model alone, also if they are drawn at random: the model chooses each of them itself, with the random numbers that it would
/// have had, and the guesses after the first wrong one are forgotten. Only rounding may differ, as it does with the number of tokens that are read
/// at once.
///
/// # Arguments
///
/// - `model` and `draft`, each with its state: one row for each prompt, which has not read the prompt yet
/// - `guesses`: how many tokens the draft guesses at a time. With a draft that is a tenth as expensive and right four times out of five, about 4
///
/// # Errors
///
/// As [`try_generate`](super::try_generate), for either of the models, and when their vocabularies are not of one size.
///
/// # Panics
///
/// As [`truncate`](Speculative::truncate). A cache of layers with a window drops what the window has left behind, and cannot forget a wrong guess
/// after that: a model with windows can speculate only as long as its rows fit into the smallest of them.
///
/// # Cost
///
/// For each step of the model, `guesses` steps of the draft. A step of the model adds up to `guesses + 1` tokens to a row; all rows guess as many, at
/// most one less than the row with the least room still needs.
///
/// # Source
///
/// "Fast inference from transformers via speculative decoding" (arXiv:2211.17192), whose rule keeps the distribution of the tokens; this one keeps the
/// tokens.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn_models::{generate::{GenerateOptions, generate, speculate}, language_model::LanguageModelConfig};
///
/// let device = Device::default();
/// let model = LanguageModelConfig::new(100).with_d_model(64).with_n_heads(4).init(&device);
/// let draft = LanguageModelConfig::new(100).with_d_model(16).with_n_heads(2).init(&device);
/// let prompts = [vec![5, 6, 7], vec![8]];
/// let options = GenerateOptions::new(20);
///
/// let found = speculate((&model, model.start(2)), (&draft, draft.start(2)), &prompts, &options, 4)?;
/// let alone = generate(&model, model.start(2), &prompts, &options);
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
    let (vocab_size, of_draft) = (model.vocab_size(), draft.vocab_size());
    if vocab_size != of_draft {
        return Err(GenerateError::Vocabularies {
            model: vocab_size,
            draft: of_draft,
        });
    }
    let of_draft = rows(draft, &draft_state, prompts, options, 0)?;
    let mut rows: Vec<Pair> = rows(model, &state, prompts, options, 0)?
        .into_iter()
        .zip(of_draft)
        .zip(
            model
                .lengths(&state)
                .into_iter()
                .zip(draft.lengths(&draft_state)),
        )
        .map(|((mut row, of_draft), (before, before_of_draft))| {
            row.room = row.room.min(of_draft.room);
            Pair {
                row,
                before,
                read_by_draft: 0,
                before_of_draft,
            }
        })
        .collect();
    let mut found = Speculation {
        generations: vec![Generation::default(); prompts.len()],
        ..Speculation::default()
    };
    loop {
        let live: Vec<usize> = (0..rows.len())
            .filter(|&at| rows[at].row.room > 0)
            .collect();
        if live.is_empty() {
            return Ok(found);
        }
        if live.len() < rows.len() {
            model.reorder(&mut state, &live);
            draft.reorder(&mut draft_state, &live);
            rows.retain(|pair| pair.row.room > 0);
        }
        // The last token of a row is chosen, never guessed.
        let room = rows.iter().map(|pair| pair.row.room - 1).min();
        let count = guesses.min(room.unwrap_or(0));

        let mut guessed: Vec<Row> = rows.iter().map(Pair::as_the_draft_sees_it).collect();
        for _ in 0..count {
            let unread: Vec<&[u32]> = guessed.iter().map(Row::unread).collect();
            let logits = NextLogits::read(draft, &mut draft_state, &unread)?;
            for (row, logits) in guessed.iter_mut().zip(logits.rows()) {
                row.guess(logits, options)?;
            }
        }

        let known: Vec<usize> = rows.iter().map(|pair| pair.row.tokens().len()).collect();
        let unread: Vec<Vec<u32>> = rows
            .iter()
            .zip(&guessed)
            .zip(&known)
            .map(|((pair, guessed), &known)| {
                [pair.row.unread(), &guessed.tokens()[known..]].concat()
            })
            .collect();
        let unread: Vec<&[u32]> = unread.iter().map(Vec::as_slice).collect();
        let logits = model.advance_last(&mut state, &unread, &vec![count + 1; rows.len()]);
        let logits = NextLogits::of(model, logits, rows.len() * (count + 1))?;
        let mut logits = logits.rows();
        for ((pair, guessed), known) in rows.iter_mut().zip(&guessed).zip(known) {
            let guesses = &guessed.tokens()[known..];
            let mut of_row = logits.by_ref().take(count + 1);
            let mut accepted = 0;
            for (at, logits) in of_row.by_ref().enumerate() {
                let choice = pair.row.choose(logits, options, &mut None)?;
                found.generations[choice.row].push(&choice);
                let is_guessed = guesses.get(at) == Some(&choice.token);
                accepted += usize::from(is_guessed);
                if choice.finish.is_some() || !is_guessed {
                    break;
                }
            }
            of_row.for_each(drop);
            found.guessed += count;
            found.accepted += accepted;
            // The draft has not read its own last guess.
            if count > 0 {
                pair.read_by_draft = (known + accepted).min(known + count - 1);
            }
        }
        let read = rows.iter().map(|pair| pair.before + pair.row.read());
        model.truncate(&mut state, &read.collect::<Vec<_>>());
        let read = rows
            .iter()
            .map(|pair| pair.before_of_draft + pair.read_by_draft);
        draft.truncate(&mut draft_state, &read.collect::<Vec<_>>());
    }
}

/// A row of both models.
struct Pair {
    row: Row,
    /// Tokens that the model's state had read before.
    before: usize,
    /// How many tokens of the row the draft has read.
    read_by_draft: usize,
    /// Tokens that the draft's state had read before.
    before_of_draft: usize,
}

impl Pair {
    fn as_the_draft_sees_it(&self) -> Row {
        self.row.clone().with_read(self.read_by_draft)
    }
}
