//! From a text to batches: a vocabulary, tokens, windows of equal length.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError},
    },
    tensor::Device,
};
use burn_attn_models::train::LanguageModelBatch;
use example_common::{
    files::FileError,
    fnv::Fnv,
    vocabulary::{BYTES, byte_level_bpe},
};
use tokenizers::Tokenizer;

use crate::{cli::Recipe, error::Error};

/// One byte of so many is held out, at the end of the text.
const HELD_OUT: usize = 20;

/// A text as tokens.
pub struct Text {
    /// The vocabulary.
    pub tokenizer: Tokenizer,
    /// What the model is trained on.
    pub train: Windows,
    /// What it never sees, the end of the text.
    pub held_out: Windows,
    /// Tells texts apart.
    pub fingerprint: String,
}

impl Text {
    /// Reads a text. `tokenizer` is its vocabulary if it has one already.
    pub fn read(path: &Path, recipe: &Recipe, tokenizer: Option<Tokenizer>) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(FileError::of("read", path))?;
        let unfit = |problem: String| Error::Text {
            path: path.into(),
            problem,
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to() + 1;
            unfit(format!("byte {at} is not UTF-8"))
        })?;
        // A byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let fingerprint = fingerprint(text);
        let mut end = text.len() - text.len() / HELD_OUT;
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let (of_training, of_held_out) = text.split_at(end);
        let tokenizer = match tokenizer {
            Some(tokenizer) => tokenizer,
            // Not from what is held out.
            None => vocabulary(of_training, recipe)?,
        };
        let tokens = |text: &str| -> Result<Vec<u32>, Error> {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let lines = tokenizer.encode_batch(lines, false)?;
            Ok(lines
                .iter()
                .flat_map(|line| line.get_ids().to_vec())
                .collect())
        };
        let (train, held_out) = (tokens(of_training)?, tokens(of_held_out)?);
        let count = train.len() + held_out.len();
        let train = Windows::new(train, recipe.len).whole(recipe.batch);
        let held_out = Windows::new(held_out, recipe.len);
        // The learner takes the mean over batches: whole ones, or a single one, count alike.
        let held_out = match held_out.len() < recipe.batch {
            true => held_out,
            false => held_out.whole(recipe.batch),
        };
        if train.is_empty() || held_out.is_empty() {
            // A window has one token more than it predicts; the larger need is the training part's or the held-out one's.
            let of_all = |part: usize| part.saturating_add(1).saturating_mul(HELD_OUT);
            let needed = of_all(recipe.len)
                .max(of_all(recipe.len.saturating_mul(recipe.batch)) / (HELD_OUT - 1));
            return Err(unfit(format!(
                "it has {count} tokens, but --len {} and --batch {} need about {needed}",
                recipe.len, recipe.batch
            )));
        }
        Ok(Self {
            tokenizer,
            train,
            held_out,
            fingerprint,
        })
    }
}

/// 64 bits of FNV-1a of the text, and its length.
fn fingerprint(text: &str) -> String {
    let mut hash = Fnv::default();
    hash.write(text.as_bytes());
    format!("{}-{}", hash.to_hex(), text.len())
}

/// A vocabulary of this text.
fn vocabulary(text: &str, recipe: &Recipe) -> Result<Tokenizer, Error> {
    if recipe.vocabulary < BYTES {
        return Err(Error::Option(format!(
            "--vocabulary must be at least {BYTES}, one token for every byte, got {}",
            recipe.vocabulary
        )));
    }
    let lines = text.split_inclusive('\n');
    Ok(byte_level_bpe(lines, recipe.vocabulary, &[], false)?)
}

/// Windows of a text, each `width` tokens and the one that follows.
#[derive(Clone)]
pub struct Windows {
    tokens: Vec<u32>,
    /// Tokens to predict in each.
    width: usize,
    count: usize,
}

impl Windows {
    fn new(tokens: Vec<u32>, width: usize) -> Self {
        let count = tokens.len().saturating_sub(1) / width;
        Self {
            tokens,
            width,
            count,
        }
    }

    /// Leaves out the last windows that would not make a whole batch: on several devices, every batch then has as many tokens on each.
    fn whole(mut self, batch: usize) -> Self {
        self.count -= self.count % batch;
        self
    }

    /// The first `count` tokens.
    pub fn beginning(&self, count: usize) -> &[u32] {
        &self.tokens[..count.min(self.tokens.len())]
    }
}

impl Dataset<Vec<u32>> for Windows {
    fn get(&self, index: usize) -> Result<Vec<u32>, DatasetError> {
        let start = index * self.width;
        Ok(self.tokens[start..=start + self.width].to_vec())
    }

    fn len(&self) -> usize {
        self.count
    }
}

/// Makes batches of windows.
#[derive(Clone)]
pub struct WindowBatcher {
    /// What the losses of a batch are divided by; `None` is its own number of tokens.
    tokens: Option<usize>,
    seed: u64,
    /// Batches so far: each drops other numbers, even if it has the windows of an earlier one.
    count: Arc<AtomicU64>,
}

impl WindowBatcher {
    /// Batches whose losses are divided by so many tokens, or by their own number, and whose dropout begins with `seed`.
    pub fn new(tokens: Option<usize>, seed: u64) -> Self {
        Self {
            tokens,
            seed,
            count: Arc::default(),
        }
    }
}

impl Batcher<Vec<u32>, LanguageModelBatch> for WindowBatcher {
    fn batch(&self, windows: Vec<Vec<u32>>, device: &Device) -> LanguageModelBatch {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number);
        let batch = LanguageModelBatch::new(&windows, device).seed(seed);
        match self.tokens {
            Some(tokens) => batch.divided_by(tokens),
            None => batch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap_in_the_token_that_one_predicts_and_the_next_reads() {
        let windows = Windows::new((0..11).collect(), 3);
        assert_eq!(windows.len(), 3);
        assert_eq!(windows.get(1).unwrap(), [3, 4, 5, 6]);
        assert_eq!(windows.get(2).unwrap(), [6, 7, 8, 9]);
        assert_eq!(windows.clone().whole(2).len(), 2);
        assert_eq!(Windows::new(vec![1, 2, 3], 3).len(), 0);
    }
}
