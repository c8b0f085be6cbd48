//! Batches of sentences of about the same length, in an order that depends on nothing but the seed and the epoch.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::Pair;
use crate::error::Error;
use crate::run_config::RunConfig;
use crate::vocabulary::{BOS, EOS, PAD, Vocabulary};

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

/// A batch on a device.
pub struct Batch {
    /// `[batch, source]`, ending in `<eos>`, padded.
    pub source: Tensor<2, Int>,
    /// `[batch]`: tokens of each source, `<eos>` included.
    pub source_lengths: Tensor<1, Int>,
    /// `[batch, target]`: what the decoder reads, beginning with `<bos>`.
    pub input: Tensor<2, Int>,
    /// `[batch, target]`: what it should predict next, ending in `<eos>`.
    pub expected: Tensor<2, Int>,
    /// `[batch, target]`: 1 for a token, 0 for padding.
    pub weights: Tensor<2>,
    /// Tokens to predict.
    pub target_tokens: usize,
}

/// The pairs as token ids. Those longer than the positions are left out, and their number is printed.
pub fn samples(
    pairs: &[Pair],
    vocabulary: &Vocabulary,
    config: &RunConfig,
    part: &str,
) -> Result<Vec<Sample>, Error> {
    let sources = vocabulary.encode_all(pairs.iter().map(|pair| pair.source.as_str()).collect())?;
    let targets = vocabulary.encode_all(pairs.iter().map(|pair| pair.target.as_str()).collect())?;
    // One position is for `<bos>` or `<eos>`.
    let limit = config.model.max_len;
    let samples: Vec<Sample> = sources
        .into_iter()
        .zip(targets)
        .map(|(source, target)| Sample { source, target })
        .filter(|sample| sample.source.len().max(sample.target.len()) < limit)
        .collect();
    let skipped = pairs.len() - samples.len();
    if samples.is_empty() {
        return Err(Error::Corpus {
            corpus: config.data.name(),
            problem: format!(
                "all {skipped} {part} pairs are longer than the {limit} positions of --max-len"
            ),
        });
    }
    if skipped > 0 {
        eprintln!(
            "{skipped} of {} {part} pairs are longer than the {limit} positions of --max-len and left out",
            pairs.len()
        );
    }
    Ok(samples)
}

/// Which samples go together in epoch `epoch`: indices into `samples`, in batches of at most `size`.
///
/// The samples are shuffled, sorted by length (a stable sort, so that equals stay shuffled) and cut into batches, and the
/// batches are shuffled. So there is little padding, and the order differs in every epoch.
pub fn plan(samples: &[Sample], size: usize, seed: u64, epoch: usize) -> Vec<Vec<usize>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(epoch as u64);
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.shuffle(&mut random);
    order.sort_by_key(|&index| (samples[index].target.len(), samples[index].source.len()));
    let mut batches: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
    batches.shuffle(&mut random);
    batches
}

/// The source sentences of a batch: padded ids `[batch, source]`, and lengths `[batch]`.
pub fn sources<'a>(
    sentences: impl Iterator<Item = &'a [u32]>,
    device: &Device,
) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let rows: Vec<Vec<u32>> = sentences.map(with_eos).collect();
    let lengths: Vec<i64> = rows.iter().map(|row| row.len() as i64).collect();
    let count = lengths.len();
    let ids = padded(rows, device);
    (
        ids,
        Tensor::from_data(TensorData::new(lengths, [count]), device),
    )
}

impl Batch {
    /// Puts samples on a device.
    pub fn new(samples: &[&Sample], device: &Device) -> Self {
        let (source, source_lengths) = sources(
            samples.iter().map(|sample| sample.source.as_slice()),
            device,
        );
        let expected: Vec<Vec<u32>> = samples
            .iter()
            .map(|sample| with_eos(&sample.target))
            .collect();
        let input = samples
            .iter()
            .map(|sample| [&[BOS], sample.target.as_slice()].concat())
            .collect();
        let target_tokens = samples.iter().map(|sample| sample.target_tokens()).sum();
        let width = expected.iter().map(Vec::len).max().unwrap_or(0);
        let weights: Vec<f32> = expected
            .iter()
            .flat_map(|row| (0..width).map(|column| if column < row.len() { 1.0 } else { 0.0 }))
            .collect();
        Self {
            source,
            source_lengths,
            input: padded(input, device),
            expected: padded(expected, device),
            weights: Tensor::from_data(TensorData::new(weights, [samples.len(), width]), device),
            target_tokens,
        }
    }
}

fn with_eos(sentence: &[u32]) -> Vec<u32> {
    [sentence, &[EOS]].concat()
}

/// Rows of ids as one tensor, filled up with `<pad>`.
fn padded(rows: Vec<Vec<u32>>, device: &Device) -> Tensor<2, Int> {
    let (count, width) = (rows.len(), rows.iter().map(Vec::len).max().unwrap_or(0));
    let mut ids = vec![i64::from(PAD); count * width];
    for (row, place) in rows.iter().zip(ids.chunks_mut(width)) {
        place
            .iter_mut()
            .zip(row)
            .for_each(|(place, &id)| *place = i64::from(id));
    }
    Tensor::from_data(TensorData::new(ids, [count, width]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        (0..101u32)
            .map(|i| Sample {
                source: vec![4; 1 + (i % 5) as usize],
                target: vec![5; 1 + (i % 7) as usize],
            })
            .collect()
    }

    #[test]
    fn every_sample_comes_once_and_batches_have_one_length_or_two() {
        let samples = samples();
        let batches = plan(&samples, 7, 1, 3);
        let mut seen: Vec<usize> = batches.concat();
        seen.sort_unstable();
        assert_eq!(seen, (0..101).collect::<Vec<_>>());
        for batch in &batches {
            let lengths = batch.iter().map(|&index| samples[index].target.len());
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }
    }

    #[test]
    fn the_order_depends_on_seed_and_epoch_only() {
        let samples = samples();
        assert_eq!(plan(&samples, 7, 1, 3), plan(&samples, 7, 1, 3));
        assert_ne!(plan(&samples, 7, 1, 3), plan(&samples, 7, 1, 4));
        assert_ne!(plan(&samples, 7, 1, 3), plan(&samples, 7, 2, 3));
    }

    #[test]
    fn a_batch_is_shifted_and_padded() {
        let device = Device::default();
        let [long, short] = [
            Sample {
                source: vec![7, 8],
                target: vec![9, 10, 11],
            },
            Sample {
                source: vec![6],
                target: vec![12],
            },
        ];
        let batch = Batch::new(&[&long, &short], &device);
        let ids = |tensor: Tensor<2, Int>| tensor.try_into_vec_as::<i64>().unwrap();
        assert_eq!(ids(batch.source), [7, 8, 2, 6, 2, 0]);
        assert_eq!(
            batch.source_lengths.try_into_vec_as::<i64>().unwrap(),
            [3, 2]
        );
        assert_eq!(ids(batch.input), [1, 9, 10, 11, 1, 12, 0, 0]);
        assert_eq!(ids(batch.expected), [9, 10, 11, 2, 12, 2, 0, 0]);
        assert_eq!(
            batch.weights.try_into_vec_as::<f32>().unwrap(),
            [1., 1., 1., 1., 1., 1., 0., 0.]
        );
        assert_eq!(
            (batch.target_tokens, long.tokens() + short.tokens()),
            (6, 11)
        );
    }
}
