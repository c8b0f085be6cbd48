//! What is in a batch.

use super::*;

#[test]
fn a_batch_is_shifted_and_padded() {
    let device = Device::default();
    let samples = [
        Sample {
            source: vec![7, 8],
            target: vec![9, 10, 11],
        },
        Sample {
            source: vec![6],
            target: vec![12],
        },
    ];
    let batch = batch(&samples, &[0, 1], &device);
    let ids = |tensor: Tensor<2, Int>| tensor.try_into_vec_as::<i64>().unwrap();
    assert_eq!(ids(batch.source), [7, 8, 2, 6, 2, 0]);
    assert_eq!(batch.source_lengths, [3, 2]);
    assert_eq!(ids(batch.input), [1, 9, 10, 11, 1, 12, 0, 0]);
    assert_eq!(ids(batch.targets.tokens), [9, 10, 11, 2, 12, 2, 0, 0]);
    assert_eq!(
        batch.targets.weights.try_into_vec_as::<f32>().unwrap(),
        [1., 1., 1., 1., 1., 1., 0., 0.]
    );
    assert_eq!(batch.targets.count, 6);
}
