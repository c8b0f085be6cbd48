//! What is in a batch, and in a shard of it.

use super::*;

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
    let batch = batch(&[&long, &short], &device);
    let ids = |tensor: Tensor<2, Int>| tensor.try_into_vec_as::<i64>().unwrap();
    assert_eq!(ids(batch.source), [7, 8, 2, 6, 2, 0]);
    assert_eq!(
        batch.source_lengths.try_into_vec_as::<i64>().unwrap(),
        [3, 2]
    );
    assert_eq!(ids(batch.input), [1, 9, 10, 11, 1, 12, 0, 0]);
    assert_eq!(ids(batch.targets.tokens), [9, 10, 11, 2, 12, 2, 0, 0]);
    assert_eq!(
        batch.targets.weights.try_into_vec_as::<f32>().unwrap(),
        [1., 1., 1., 1., 1., 1., 0., 0.]
    );
    assert_eq!(
        (batch.targets.count, long.tokens() + short.tokens()),
        (6, 11)
    );
}

#[test]
fn parts_have_about_as_many_tokens() {
    let samples: Vec<Sample> = [3, 3, 3, 9, 9, 1]
        .map(|len| Sample {
            source: vec![0; len],
            target: vec![0; len],
        })
        .into();
    let samples: Vec<&Sample> = samples.iter().collect();
    let lens = |count| -> Vec<usize> {
        let shards = shards(&samples, count);
        shards.iter().map(|shard| shard.len()).collect()
    };
    assert_eq!(lens(1), [6]);
    assert_eq!(lens(2), [4, 2]);
    assert_eq!(lens(3), [3, 1, 2]);
    // Never an empty one.
    assert_eq!(lens(60), [1; 6]);
}
