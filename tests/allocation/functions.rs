//! Training with functions takes memory that is linear in the lengths, and so does what reads scores beside it.

use burn::tensor::{Distribution, FloatDType, Tensor, TensorData};
use burn_attn::{
    AttentionMask, AttentionOptions, Captured, MaskFunction, ScoreFunction, StatisticsOptions, ops,
};
use burn_attn_tests::{
    devices,
    numbers::{alone, uniform},
};

use super::peak;

/// Bytes in use at once during a step with functions of tensors, for queries and keys of this length.
fn bytes(len: usize) -> usize {
    let device = devices::any().autodiff();
    let numbers = |seed, shape: [usize; 4]| {
        let data = TensorData::new(uniform(seed, shape.iter().product()), shape);
        Tensor::<4>::from_data(data, &device).require_grad()
    };
    let [query, key, value] = [1, 2, 3].map(|seed| numbers(seed, [1, 1, len, 64]));
    let slopes = numbers(4, [1, 1, 1, 1]);
    let table = numbers(5, [1, 1, 1, 2 * len - 1]);
    peak(move || {
        let score = ScoreFunction::new("penalty and table", |scores, pairs| {
            let [slopes, entries] = pairs.floats();
            let dtype: FloatDType = scores.dtype().into();
            scores - pairs.distances().abs().cast(dtype) * slopes + entries
        });
        let score = score
            .capture(Captured::per_head(slopes.clone().reshape([1])))
            .capture(Captured::by_distance(
                table.clone().reshape([1, 2 * len - 1]),
            ));
        let mask = MaskFunction::new("causal", |pairs| pairs.distances().greater_equal_elem(0));
        let options = AttentionOptions::default()
            .score_function(score)
            .mask(AttentionMask::function(mask));
        let output = ops::attention(query.clone(), key.clone(), value.clone(), options);
        let gradients = output.sum().backward();
        let _kept = [&query, &key, &value, &slopes, &table].map(|x| x.grad(&gradients));
    })
}

#[test]
fn functions_train_in_linear_memory() {
    let _alone = alone();
    bytes(256);
    let [short, long] = [2048, 4096].map(bytes);
    let scores = 4096 * 4096 * size_of::<f32>();
    println!("{short} and {long} bytes, where all scores have {scores}");
    assert!(
        long < 2 * scores && long < 5 * short / 2,
        "{short} and {long}"
    );
}

/// Bytes in use at once while the table of a mask that differs between heads is made.
fn bytes_of_table(len: usize) -> usize {
    let device = devices::any();
    peak(move || {
        let mask = MaskFunction::new("every second head", |pairs| {
            let shown = (pairs.distances() * (pairs.heads() - 1)).lower_equal_elem(0);
            shown.expand(pairs.sizes())
        });
        drop(mask.in_blocks([1, 8, len, len], 64, &device));
    })
}

#[test]
fn tables_of_blocks_are_made_row_by_row() {
    let _alone = alone();
    bytes_of_table(256);
    let [short, long] = [1024, 2048].map(bytes_of_table);
    println!(
        "{short} and {long} bytes, where all pairs have {}",
        8 * 2048 * 2048
    );
    assert!(long < 5 * short / 2, "{short} and {long}");
}

/// Bytes in use at once while `read` reads the scores of a tracked query and key of this length.
fn bytes_of_reading(len: usize, read: fn(Tensor<4>, Tensor<4>)) -> usize {
    let device = devices::any().autodiff();
    let numbers = || Tensor::<4>::random([1, 1, len, 16], Distribution::Default, &device);
    let [query, key] = [numbers(), numbers()].map(Tensor::require_grad);
    peak(move || read(query, key))
}

#[test]
fn autodiff_keeps_no_scores_that_are_only_read() {
    let _alone = alone();
    let statistics = |query, key| {
        let options = StatisticsOptions::new().top_k(0).max_distance(1);
        drop(ops::attention_statistics(
            query,
            key,
            AttentionOptions::default(),
            options,
        ));
    };
    let of_nan = |query: Tensor<4>, key: Tensor<4>| {
        // Rows of NaN, which the call looks for in what the function returns.
        let same = ScoreFunction::new("same", |scores, _| scores);
        let options = AttentionOptions::default().score_function(same);
        drop(ops::attention(query * f32::NAN, key.clone(), key, options));
    };
    let scores = 4096 * 4096 * size_of::<f32>();
    let reads: [fn(Tensor<4>, Tensor<4>); 2] = [statistics, of_nan];
    for (name, read) in ["statistics", "a search for NaN"].into_iter().zip(reads) {
        bytes_of_reading(256, read);
        let [short, long] = [2048, 4096].map(|len| bytes_of_reading(len, read));
        println!("{name}: {short} and {long} bytes, where all scores have {scores}");
        assert!(long < short + scores / 4, "{name}: {short} and {long}");
    }
}
