//! Batches of sentences of about the same length, in an order that depends on nothing but the seed and the epoch.

use burn::tensor::{Device, Int, Tensor};
use burn_attn_models::tokens::padded;
use burn_attn_models::train::{
    BatchSize, Seq2SeqBatch, TokenBatch, TrainingData, batches_by_length,
};
use example_common::error::Error;
use example_common::exit::warn;

use crate::data::{Pair, Split};
use crate::run_config::RunConfig;
use crate::vocabulary::{BOS, EOS, Vocabulary};

/// A sentence pair as token ids, without special tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The sentence to translate.
    pub source: Vec<u32>,
    /// Its translation.
    pub target: Vec<u32>,
}

/// The training and validation parts of a corpus as token ids.
pub struct Batches {
    train: Vec<Sample>,
    validation: Vec<Sample>,
    /// The configuration of the run.
    config: RunConfig,
}

impl Batches {
    /// Encodes the sentences of both parts.
    ///
    /// # Errors
    /// If all pairs of a part are longer than the positions.
    pub fn new(split: &Split, vocabulary: &Vocabulary, config: &RunConfig) -> Result<Self, Error> {
        Ok(Self {
            train: samples(&split.train, vocabulary, config, "training")?,
            validation: samples(&split.validation, vocabulary, config, "validation")?,
            config: config.clone(),
        })
    }
}

impl TrainingData for Batches {
    type Batch = Seq2SeqBatch;

    fn steps(&self, epoch: usize) -> Vec<Vec<usize>> {
        let (size, seed) = (self.config.batch_size(), self.config.recipe.seed);
        plan(&self.train, size, seed, epoch)
    }

    /// Source and target have an `<eos>` each.
    fn tokens(&self, sample: usize) -> usize {
        self.train[sample].source.len() + self.train[sample].target.len() + 2
    }

    fn batch(&self, samples: &[usize], device: &Device) -> Seq2SeqBatch {
        batch(&self.train, samples, device).smoothing(self.config.recipe.smoothing)
    }

    fn validation(&self, device: &Device) -> impl Iterator<Item = Seq2SeqBatch> {
        let size = BatchSize::Samples(self.config.recipe.batch);
        let steps = plan(&self.validation, size, 0, 0).into_iter();
        steps.map(move |step| batch(&self.validation, &step, device))
    }
}

/// The pairs as token ids. Those longer than the positions are left out, and their number is printed.
fn samples(
    pairs: &[Pair],
    vocabulary: &Vocabulary,
    config: &RunConfig,
    set: &str,
) -> Result<Vec<Sample>, Error> {
    let sources = vocabulary.encode_all(pairs.iter().map(|pair| pair.source.as_str()).collect())?;
    let targets = vocabulary.encode_all(pairs.iter().map(|pair| pair.target.as_str()).collect())?;
    let limit = config.model.max_len;
    let samples: Vec<Sample> = sources
        .into_iter()
        .zip(targets)
        .map(|(source, target)| Sample { source, target })
        .filter(|sample| config.fits(sample.source.len().max(sample.target.len())))
        .collect();
    let skipped = pairs.len() - samples.len();
    if samples.is_empty() {
        return Err(format!(
            "{}: all {skipped} {set} pairs are longer than the {limit} positions of --max-len",
            config.data.name()
        )
        .into());
    }
    if skipped > 0 {
        warn(&format!(
            "{skipped} of {} {set} pairs are longer than the {limit} positions of --max-len and left out",
            pairs.len()
        ));
    }
    Ok(samples)
}

/// Which samples go together in epoch `epoch`: indices into `samples`.
fn plan(samples: &[Sample], size: BatchSize, seed: u64, epoch: usize) -> Vec<Vec<usize>> {
    let lengths: Vec<[usize; 2]> = samples
        .iter()
        .map(|sample| [sample.target.len() + 1, sample.source.len() + 1])
        .collect();
    batches_by_length(&lengths, size, seed, epoch as u64)
}

/// The source sentences of a batch: padded ids `[batch, source]`, and the number of tokens of each.
pub fn sources<'a>(
    sentences: impl Iterator<Item = &'a [u32]>,
    device: &Device,
) -> (Tensor<2, Int>, Vec<usize>) {
    let rows: Vec<Vec<u32>> = sentences.map(with_eos).collect();
    padded(&rows, device)
}

/// The samples with these numbers: sources and targets end in `<eos>`, and targets begin with `<bos>`.
fn batch(samples: &[Sample], numbers: &[usize], device: &Device) -> Seq2SeqBatch {
    let samples = numbers.iter().map(|&number| &samples[number]);
    let targets = samples
        .clone()
        .map(|sample| [&[BOS], sample.target.as_slice(), &[EOS]].concat());
    let sources = samples.map(|sample| with_eos(&sample.source));
    let (sources, targets): (Vec<_>, Vec<_>) = (sources.collect(), targets.collect());
    Seq2SeqBatch::new(&sources, &targets, device)
}

fn with_eos(sentence: &[u32]) -> Vec<u32> {
    [sentence, &[EOS]].concat()
}

#[cfg(test)]
mod tests;
