//! The time of functions relative to that of equivalent options. Timings mean nothing without optimisation, so the tests are ignored:
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo test --config 'profile.dev.package.burn-attn-tests.opt-level=3' --test op -- --ignored --nocapture function_costs
//! ```

use std::time::Instant;

use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, Captured, MaskFunction, Number, Pair,
    ScoreForm, ScoreFunction, ops,
};
use burn_attn_tests::{devices, numbers::uniform};

use crate::scalar_forms::{Causal, Documents};

const HEADS: usize = 4;
const LEN: usize = 1024;
const DIM: usize = 64;

fn numbers<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let data = TensorData::new(uniform(seed, shape.iter().product()), shape);
    Tensor::from_data(data, device).require_grad()
}

/// The least time of a step with `second` relative to that of one with `first`, forward and backward, taken in turns.
fn ratio(what: &str, [first, second]: [&dyn Fn() -> AttentionOptions; 2]) -> f64 {
    let device = devices::any().autodiff();
    let step = |options: &dyn Fn() -> AttentionOptions| {
        let [query, key, value] =
            [1, 2, 3].map(|seed| numbers(seed, [1, HEADS, LEN, DIM], &device));
        let options = options();
        let start = Instant::now();
        let output = ops::attention(query.clone(), key, value, options);
        let gradients = output.sum().backward();
        query.grad(&gradients).expect("a gradient").into_data();
        start.elapsed().as_secs_f64()
    };
    let mut least = [f64::INFINITY; 2];
    for _ in 0..51 {
        least = [(first, least[0]), (second, least[1])]
            .map(|(options, least)| step(options).min(least));
    }
    let ratio = least[1] / least[0];
    println!("{what}: {ratio:.2} of the time with options");
    ratio
}

#[test]
#[ignore = "a timing"]
fn a_causal_function() {
    let function = || {
        let causal = MaskFunction::new("causal", |pairs| pairs.distances().greater_equal_elem(0));
        AttentionOptions::default().mask(AttentionMask::function(causal.scalar(Causal)))
    };
    let options = || AttentionOptions::default().causal();
    assert!(ratio("a causal mask", [&options, &function]) <= 1.15);
}

/// A penalty by distance with a learned slope per head, and a learned table by distance.
struct PenaltyAndTable;

impl ScoreForm<2> for PenaltyAndTable {
    fn score<R: Number>(&self, score: R, pair: Pair, [slope, entry]: [R; 2]) -> R {
        score - slope * R::from_i32(pair.distance().abs()) + entry
    }

    fn derivatives<R: Number>(&self, _: R, pair: Pair, _: [R; 2]) -> (R, [R; 2]) {
        let one = R::constant(1.0);
        (one, [-R::from_i32(pair.distance().abs()), one])
    }
}

#[test]
#[ignore = "a timing"]
fn documents_with_a_penalty_and_a_table() {
    let device = devices::any().autodiff();
    let documents = (0..LEN).map(|at| at as i64 / 300).collect::<Vec<_>>();
    let documents = Tensor::<2, Int>::from_data(TensorData::new(documents, [1, LEN]), &device);
    let learned = || {
        let slopes: Tensor<1> = numbers(4, [HEADS], &device);
        (slopes, numbers::<2>(5, [HEADS, 2 * LEN - 1], &device))
    };
    let options = || {
        let (slopes, table) = learned();
        let bias = AttentionBias::alibi(slopes).and(AttentionBias::distances(table));
        AttentionOptions::default()
            .mask(AttentionMask::segments(
                documents.clone(),
                documents.clone(),
            ))
            .bias(bias)
    };
    let mask = MaskFunction::new("documents", |pairs| {
        let [of_query, of_key] = pairs.ints();
        (of_query - of_key).equal_elem(0)
    })
    .capture(Captured::per_query(documents.clone()))
    .capture(Captured::per_key(documents.clone()))
    .scalar(Documents)
    .in_blocks([1, HEADS, LEN, LEN], 64, &device);
    let function = || {
        let (slopes, table) = learned();
        let score = ScoreFunction::new("penalty and table", |scores, pairs| {
            let [slopes, entries] = pairs.floats();
            let dtype: FloatDType = scores.dtype().into();
            scores - pairs.distances().abs().cast(dtype) * slopes + entries
        });
        let score = score
            .capture(Captured::per_head(slopes))
            .capture(Captured::by_distance(table))
            .scalar(PenaltyAndTable);
        AttentionOptions::default()
            .mask(AttentionMask::function(mask.clone()))
            .score_function(score)
    };
    assert!(
        ratio(
            "documents with a penalty and a table",
            [&options, &function]
        ) <= 1.5
    );
}
