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
/// - `lengths`: the tokens of each sample's sequences: one of a text, two of a source and its target. The first one is sorted by first.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths() -> Vec<[usize; 2]> {
        (0..101).map(|i| [1 + i % 7, 1 + i % 5]).collect()
    }

    #[test]
    fn every_sample_comes_once_and_batches_have_about_one_length() {
        let lengths = lengths();
        for size in [BatchSize::Samples(7), BatchSize::Tokens(60)] {
            let batches = batches_by_length(&lengths, size, 1, 3);
            let mut seen: Vec<usize> = batches.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..101).collect::<Vec<_>>());
            for batch in &batches {
                let firsts = batch.iter().map(|&index| lengths[index][0]);
                let [low, high] = [firsts.clone().min().unwrap(), firsts.max().unwrap()];
                assert!(high - low <= 1, "{low} to {high} in one batch of {size:?}");
            }
        }
    }

    #[test]
    fn no_batch_has_more_tokens_than_it_may_and_few_have_far_less() {
        let lengths = lengths();
        let batches = batches_by_length(&lengths, BatchSize::Tokens(40), 1, 0);
        let padded = |batch: &Vec<usize>| {
            let longest = |part: usize| batch.iter().map(|&i| lengths[i][part]).max().unwrap();
            batch.len() * (longest(0) + longest(1))
        };
        assert!(batches.iter().all(|batch| padded(batch) <= 40));
        let total: usize = batches.iter().map(padded).sum();
        assert!(total > 30 * batches.len(), "{total} in {}", batches.len());
        // One that is too long is not lost.
        assert_eq!(
            batches_by_length(&[[9, 9]], BatchSize::Tokens(4), 1, 0),
            [[0]]
        );
    }

    #[test]
    fn the_order_depends_on_seed_and_epoch_only_and_their_number_on_neither() {
        let lengths = lengths();
        for size in [BatchSize::Samples(7), BatchSize::Tokens(40)] {
            let batches = |seed, epoch| batches_by_length(&lengths, size, seed, epoch);
            assert_eq!(batches(1, 3), batches(1, 3));
            assert_ne!(batches(1, 3), batches(1, 4));
            assert_ne!(batches(1, 3), batches(2, 3));
            assert_eq!(batches(1, 3).len(), batches(2, 4).len());
        }
    }

    #[test]
    #[should_panic(expected = "the size must be at least 1, got Tokens(0)")]
    fn a_size_of_nothing_is_refused() {
        batches_by_length(&[[1]], BatchSize::Tokens(0), 1, 0);
    }
}
