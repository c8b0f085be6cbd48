//! Batches of sequences of about the same length.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// How much goes into a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchSize {
    /// This many samples.
    Samples(usize),
    /// At most this many tokens with the padding, those of all sequences of a sample together (Vaswani et al., 2017, section 5.1, count
    /// sources and targets apart: their 25,000 are 50,000 here). A sample that is longer is a batch alone.
    Tokens(usize),
}

/// Which samples go together in an epoch: indices into `lengths`, each once.
///
/// The samples are shuffled, sorted by length (a stable sort, so that equals stay shuffled), cut into batches, and the batches are
/// shuffled. So there is little padding, and the order differs in every epoch, but not the number of batches. It depends on nothing but the
/// arguments.
///
/// - `lengths`: the tokens of each sample's sequences: one number for a text, two for a source and its target. The first number is the first sort key.
///
/// # Panics
///
/// When the size is 0.
///
/// ```
/// use burn_attn_models::train::{BatchSize, batches_by_length};
///
/// let lengths = [[5], [1], [2], [6], [1]];
/// let mut batches = batches_by_length(&lengths, BatchSize::Tokens(6), 1, 0);
/// batches.iter_mut().for_each(|batch| batch.sort_unstable());
/// batches.sort_unstable();
/// // Three samples of at most two tokens are six with their padding.
/// assert_eq!(batches, [vec![0], vec![1, 2, 4], vec![3]]);
/// ```
pub fn batches_by_length<const N: usize>(
    lengths: &[[usize; N]],
    size: BatchSize,
    seed: u64,
    epoch: u64,
) -> Vec<Vec<usize>> {
    let (BatchSize::Samples(limit) | BatchSize::Tokens(limit)) = size;
    assert!(
        limit > 0,
        "batches_by_length: the size must be at least 1, got {size:?}"
    );
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(epoch);
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.shuffle(&mut random);
    order.sort_by_key(|&index| lengths[index]);
    let mut batches: Vec<Vec<usize>> = match size {
        BatchSize::Samples(samples) => order.chunks(samples).map(<[usize]>::to_vec).collect(),
        BatchSize::Tokens(tokens) => cut(&order, lengths, tokens),
    };
    batches.shuffle(&mut random);
    batches
}

/// Cuts the samples in this order into batches of at most `tokens` tokens.
fn cut<const N: usize>(order: &[usize], lengths: &[[usize; N]], tokens: usize) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut longest = [0; N];
    for &index in order {
        let with = std::array::from_fn(|part| longest[part].max(lengths[index][part]));
        let padded = with.iter().sum::<usize>();
        match batches.last_mut() {
            Some(batch) if (batch.len() + 1) * padded <= tokens => {
                batch.push(index);
                longest = with;
            }
            _ => {
                batches.push(vec![index]);
                longest = lengths[index];
            }
        }
    }
    batches
}

/// Divides a batch into at most `count` shards of about as many tokens, none of them empty. If `together`, there are `count` of them, or one where there
/// are fewer samples.
pub(super) fn shards(
    samples: &[usize],
    count: usize,
    together: bool,
    tokens: impl Fn(usize) -> usize,
) -> Vec<&[usize]> {
    if together && samples.len() < count {
        return samples.chunks(count).collect();
    }
    let total: usize = samples.iter().map(|&sample| tokens(sample)).sum();
    let mut shards = Vec::new();
    let (mut rest, mut before) = (samples, 0);
    for shard in 1..=count {
        let mut end = 0;
        while let Some(&sample) = rest.get(end) {
            let after = before + tokens(sample);
            // The sample whose middle is beyond the shard's end belongs to the next.
            let is_beyond = shard < count && (before + after) * count > 2 * total * shard;
            let is_needed_later = rest.len() - end == count - shard;
            let ends = match together {
                true => is_needed_later || (end > 0 && is_beyond),
                false => is_beyond,
            };
            if ends {
                break;
            }
            before = after;
            end += 1;
        }
        let (head, tail) = rest.split_at(end);
        if !head.is_empty() {
            shards.push(head);
        }
        rest = tail;
    }
    shards
}

#[cfg(test)]
mod tests;
