//! From a text to batches: a vocabulary, tokens, windows of equal length.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::train::{BatchSize, LanguageModelBatch, TrainingData, batches_by_length};
use example_common::{
    error::{Error, tokenizer_failed},
    files::FileError,
    fnv::Fnv,
    input,
    vocabulary::{BYTES, byte_level_bpe},
};
use tokenizers::Tokenizer;

use crate::cli::Recipe;

/// The text's end is held out: one byte of this many.
const HELD_OUT: usize = 20;

/// A text as tokens.
pub struct Text {
    /// The vocabulary.
    pub tokenizer: Tokenizer,
    /// What the model is trained on.
    pub train: Windows,
    /// The end of the text, which the model is not trained on.
    pub held_out: Windows,
    /// Tells texts apart.
    pub fingerprint: String,
    /// Windows of a step.
    batch: usize,
    /// The seed of their order.
    seed: u64,
}

impl Text {
    /// Reads a text. `tokenizer` is its vocabulary if it has one already.
    pub fn read(path: &Path, recipe: &Recipe, tokenizer: Option<Tokenizer>) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(FileError::of("read", path))?;
        let unfit = |problem: String| format!("cannot train on {}: {problem}", path.display());
        let text = input::utf8(&bytes).map_err(unfit)?;
        let text = input::without_mark(text);
        let fingerprint = fingerprint(text);
        let mut end = text.len() - text.len() / HELD_OUT;
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let (of_training, of_held_out) = text.split_at(end);
        let tokenizer = match tokenizer {
            Some(tokenizer) => tokenizer,
            // The held-out part adds nothing to the vocabulary.
            None => vocabulary(of_training, recipe)?,
        };
        let tokens = |text: &str| -> Result<Vec<u32>, Error> {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let lines = tokenizer.encode_batch(lines, false);
            let lines = lines.map_err(tokenizer_failed)?;
            let tokens = lines.iter().flat_map(|line| line.get_ids().to_vec());
            Ok(tokens.collect())
        };
        let (train, held_out) = (tokens(of_training)?, tokens(of_held_out)?);
        let count = train.len() + held_out.len();
        let train = Windows::new(train, recipe.len).whole(recipe.batch);
        let held_out = Windows::new(held_out, recipe.len);
        if train.count == 0 || held_out.count == 0 {
            // A window has one token more than it predicts. The part that needs the longer text decides.
            let of_all = |part: usize| part.saturating_add(1).saturating_mul(HELD_OUT);
            let needed = of_all(recipe.len)
                .max(of_all(recipe.len.saturating_mul(recipe.batch)) / (HELD_OUT - 1));
            return Err(unfit(format!(
                "it has {count} tokens, but --len {} and --batch {} need about {needed}",
                recipe.len, recipe.batch
            ))
            .into());
        }
        Ok(Self {
            tokenizer,
            train,
            held_out,
            fingerprint,
            batch: recipe.batch,
            seed: recipe.seed,
        })
    }
}

impl TrainingData for Text {
    type Batch = LanguageModelBatch;

    fn steps(&self, epoch: usize) -> Vec<Vec<usize>> {
        let lengths = vec![[self.train.width]; self.train.count];
        batches_by_length(
            &lengths,
            BatchSize::Samples(self.batch),
            self.seed,
            epoch as u64,
        )
    }

    fn tokens(&self, _: usize) -> usize {
        self.train.width
    }

    fn batch(&self, windows: &[usize], device: &Device) -> LanguageModelBatch {
        self.train.batch(windows, device)
    }

    fn validation(&self, device: &Device) -> impl Iterator<Item = LanguageModelBatch> {
        let windows: Vec<usize> = (0..self.held_out.count).collect();
        let starts = (0..windows.len()).step_by(self.batch);
        starts.map(move |start| {
            let end = windows.len().min(start + self.batch);
            self.held_out.batch(&windows[start..end], device)
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
    let size = recipe.vocabulary;
    if size < BYTES {
        let problem =
            format!("--vocabulary must be at least {BYTES}, one token for every byte, got {size}");
        return Err(problem.into());
    }
    let lines = text.split_inclusive('\n');
    byte_level_bpe(lines, size, &[], false).map_err(tokenizer_failed)
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    fn window(&self, index: usize) -> &[u32] {
        let start = index * self.width;
        &self.tokens[start..=start + self.width]
    }

    fn batch(&self, windows: &[usize], device: &Device) -> LanguageModelBatch {
        let windows: Vec<&[u32]> = windows.iter().map(|&index| self.window(index)).collect();
        LanguageModelBatch::new(&windows, device)
    }

    /// The first `count` tokens.
    pub fn beginning(&self, count: usize) -> &[u32] {
        &self.tokens[..count.min(self.tokens.len())]
    }
}

#[cfg(test)]
mod tests;
