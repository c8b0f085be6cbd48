//! Batches of sentences of about the same length, in an order that depends on nothing but the seed and the epoch.

use burn::tensor::{Device, Int, Tensor};
use burn::train::SequenceOutput;
use burn_attn_models::tokens::padded;
use burn_attn_models::train::{BatchSize, Seq2SeqBatch, batches_by_length};
use example_common::exit::warn;

use crate::data::Pair;
use crate::error::Error;
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

impl Sample {
    /// Tokens read and predicted, with `<eos>` counted twice.
    pub fn tokens(&self) -> usize {
        self.source.len() + self.target.len() + 2
    }

    /// Tokens to predict, `<eos>` included.
    pub fn target_tokens(&self) -> usize {
        self.target.len() + 1
    }
}

/// The pairs as token ids. Those longer than the positions are left out, and their number is printed.
pub fn samples(
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
        return Err(Error::Corpus {
            corpus: config.data.name(),
            problem: format!(
                "all {skipped} {set} pairs are longer than the {limit} positions of --max-len"
            ),
        });
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
pub fn plan(samples: &[Sample], size: BatchSize, seed: u64, epoch: usize) -> Vec<Vec<usize>> {
    let lengths: Vec<[usize; 2]> = samples
        .iter()
        .map(|sample| [sample.target.len() + 1, sample.source.len() + 1])
        .collect();
    batches_by_length(&lengths, size, seed, epoch as u64)
}

/// The source sentences of a batch: padded ids `[batch, source]`, and lengths `[batch]`.
pub fn sources<'a>(
    sentences: impl Iterator<Item = &'a [u32]>,
    device: &Device,
) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let rows: Vec<Vec<u32>> = sentences.map(with_eos).collect();
    padded(&rows, device)
}

/// Samples to train on: sources and targets end in `<eos>`, and targets begin with `<bos>`.
pub fn batch(samples: &[&Sample], device: &Device) -> Seq2SeqBatch {
    let sources: Vec<Vec<u32>> = samples
        .iter()
        .map(|sample| with_eos(&sample.source))
        .collect();
    let targets: Vec<Vec<u32>> = samples
        .iter()
        .map(|sample| [&[BOS], sample.target.as_slice(), &[EOS]].concat())
        .collect();
    Seq2SeqBatch::new(&sources, &targets, device)
}

/// How many tokens a model predicted right, each after the right ones before it.
pub fn right(output: &SequenceOutput) -> usize {
    let predicted = output.logits.clone().argmax(2).squeeze_dim::<2>(2);
    // Padding is 0, which no sentence has.
    let targets = output.targets.clone();
    let right = predicted
        .equal(targets.clone())
        .bool_and(targets.not_equal_elem(0));
    right.int().sum().into_scalar::<i64>() as usize
}

/// Divides a batch into at most `count` shards of about as many tokens.
pub fn shards<'a>(samples: &'a [&'a Sample], count: usize) -> Vec<&'a [&'a Sample]> {
    let total: usize = samples.iter().map(|sample| sample.tokens()).sum();
    let mut shards = Vec::new();
    let (mut rest, mut tokens) = (samples, 0);
    for shard in 1..=count {
        let end = rest
            .iter()
            .take_while(|sample| {
                let before = tokens;
                tokens += sample.tokens();
                // The sample whose middle is beyond the shard's end belongs to the next.
                let is_in = (before + tokens) * count <= 2 * total * shard;
                if !is_in {
                    tokens = before;
                }
                is_in
            })
            .count();
        let end = if shard == count { rest.len() } else { end };
        let (head, tail) = rest.split_at(end);
        if !head.is_empty() {
            shards.push(head);
        }
        rest = tail;
    }
    shards
}

fn with_eos(sentence: &[u32]) -> Vec<u32> {
    [sentence, &[EOS]].concat()
}

#[cfg(test)]
mod tests;
