//! Every sample once, in batches and shards that are about as large.

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

#[test]
fn shards_have_about_as_many_tokens() {
    let tokens = [3, 3, 3, 9, 9, 1];
    let samples: Vec<usize> = (0..tokens.len()).collect();
    let lens = |count| -> Vec<usize> {
        let shards = shards(&samples, count, false, |sample| tokens[sample]);
        shards.iter().map(|shard| shard.len()).collect()
    };
    assert_eq!(lens(1), [6]);
    assert_eq!(lens(2), [4, 2]);
    assert_eq!(lens(3), [3, 1, 2]);
    // Never an empty one.
    assert_eq!(lens(60), [1; 6]);
}

/// Devices that exchange gradients wait for each other, so a batch that has fewer samples than devices goes to the first.
#[test]
fn all_devices_have_a_shard_or_one_device_has() {
    let lens = |tokens: &[usize]| -> Vec<usize> {
        let samples: Vec<usize> = (0..tokens.len()).collect();
        let shards = shards(&samples, 3, true, |sample| tokens[sample]);
        shards.iter().map(|shard| shard.len()).collect()
    };
    assert_eq!(lens(&[5, 5, 5]), [1; 3]);
    assert_eq!(lens(&[5, 5]), [2]);
    // One sample outweighs the others.
    assert_eq!(lens(&[100, 1, 1]), [1; 3]);
    assert_eq!(lens(&[1, 1, 100]), [1; 3]);
    assert_eq!(lens(&[1, 100, 1, 1, 1]), [1, 1, 3]);
    assert!(lens(&[]).is_empty());
}
