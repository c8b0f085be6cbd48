//! From a text to batches: a vocabulary, tokens, windows of equal length.

use std::path::Path;

use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError},
    },
    tensor::Device,
};
use burn_attn_models::train::LanguageModelBatch;
use tokenizers::{
    Tokenizer,
    models::{
        TrainerWrapper,
        bpe::{BPE, BpeTrainerBuilder},
    },
    pre_tokenizers::byte_level::ByteLevel,
};

use crate::{cli::Recipe, error::Error};

/// One token of so many is held out, at the end of the text.
const HELD_OUT: usize = 20;

/// Bytes, with which every text can be written.
const BYTES: usize = 256;

/// A text as tokens.
pub struct Text {
    /// The vocabulary.
    pub tokenizer: Tokenizer,
    /// What the model is trained on.
    pub train: Windows,
    /// What it never sees, the end of the text.
    pub held_out: Windows,
}

impl Text {
    /// Reads a text. `tokenizer` is its vocabulary if it has one already.
    pub fn read(path: &Path, recipe: &Recipe, tokenizer: Option<Tokenizer>) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(Error::file("read", path))?;
        let unfit = |problem: String| Error::Text {
            path: path.into(),
            problem,
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unfit(format!("byte {at} is not UTF-8"))
        })?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let tokenizer = match tokenizer {
            Some(tokenizer) => tokenizer,
            // Not from what is held out.
            None => vocabulary(&lines[..lines.len() - lines.len() / HELD_OUT], recipe)?,
        };
        let encodings = tokenizer.encode_batch(lines, false)?;
        let tokens = encodings.iter().flat_map(|line| line.get_ids().to_vec());
        let mut train: Vec<u32> = tokens.collect();
        let count = train.len();
        let held_out = train.split_off(count - count / HELD_OUT);
        let train = Windows::new(train, recipe.len).whole(recipe.batch);
        let held_out = Windows::new(held_out, recipe.len);
        if train.is_empty() || held_out.is_empty() {
            // A window has one token more to read than to predict; the larger need is the training part's or the held-out one's.
            let of_all = |part: usize| (part + 1) * HELD_OUT;
            let needed = of_all(recipe.len).max(of_all(recipe.len * recipe.batch) / (HELD_OUT - 1));
            return Err(unfit(format!(
                "it has {count} tokens, but --len {} and --batch {} need about {needed}",
                recipe.len, recipe.batch
            )));
        }
        Ok(Self {
            tokenizer,
            train,
            held_out,
        })
    }
}

/// Byte-level BPE, as in GPT-2.
fn vocabulary(lines: &[&str], recipe: &Recipe) -> Result<Tokenizer, Error> {
    if recipe.vocabulary < BYTES {
        return Err(Error::Option(format!(
            "--vocabulary must be at least {BYTES}, one token for every byte, got {}",
            recipe.vocabulary
        )));
    }
    let mut tokenizer = Tokenizer::new(BPE::default());
    let bytes = ByteLevel::default().add_prefix_space(false);
    tokenizer
        .with_pre_tokenizer(Some(bytes))
        .with_decoder(Some(bytes));
    let mut trainer: TrainerWrapper = BpeTrainerBuilder::new()
        .vocab_size(recipe.vocabulary)
        .min_frequency(2)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    tokenizer.train(&mut trainer, lines.iter())?;
    Ok(tokenizer)
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
    pub tokens: Option<usize>,
    /// Seed of dropout.
    pub seed: u64,
}

impl Batcher<Vec<u32>, LanguageModelBatch> for WindowBatcher {
    fn batch(&self, windows: Vec<Vec<u32>>, device: &Device) -> LanguageModelBatch {
        let batch = LanguageModelBatch::new(&windows, device).seed(self.seed);
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
