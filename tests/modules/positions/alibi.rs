//! ALiBi has the slopes of its authors' code.

use core::f64::consts::FRAC_1_SQRT_2;

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor, TensorData},
};
use burn_attn::{
    AttentionBias, AttentionOptions, KvCacheConfig, SelfAttentionConfig, SelfAttentionInput,
    ops::attention,
    positions::{Alibi, AlibiConfig, PositionEncoding},
};
use burn_attn_tests::{
    compare::{assert_close, assert_same, difference, differs, numbers},
    devices,
    numbers::{filled, tensor},
    parameters::{self, wide},
};

use super::{loss, scores};

/// Results of `get_slopes` in the authors' code (arXiv:2108.12409), run in Python: eight heads, the paper's example.
const EIGHT: [f64; 8] = [
    0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625,
];
/// No power of two.
const TWELVE: [f64; 12] = [
    0.5,
    0.25,
    0.125,
    0.0625,
    0.03125,
    0.015625,
    0.0078125,
    0.00390625,
    FRAC_1_SQRT_2,
    0.353553390593274,
    0.176776695296637,
    0.0883883476483185,
];
const FIVE: [f64; 5] = [0.25, 0.0625, 0.015625, 0.00390625, 0.5];

fn alibi(heads: usize, learnable: bool, device: &Device) -> Alibi {
    AlibiConfig::new()
        .with_learnable(learnable)
        .init(heads, device)
}

#[test]
fn slopes_are_the_authors() {
    for (_, device) in devices::cpu() {
        for learnable in [false, true] {
            for expected in [&EIGHT[..], &TWELVE, &FIVE] {
                let slopes = alibi(expected.len(), learnable, &device).slopes();
                let expected: Vec<f32> = expected.iter().map(|&slope| slope as f32).collect();
                assert_eq!(numbers(&slopes), expected);
            }
        }
    }
}

#[test]
fn scores_fall_with_the_distance_in_both_directions() {
    const LEN: usize = 13;
    for (_, device) in devices::cpu() {
        for learnable in [false, true] {
            let bias = alibi(12, learnable, &device).bias();
            for (head, rows) in scores(bias, 12, LEN, &device).iter().enumerate() {
                for (query, row) in rows.iter().enumerate() {
                    for (key, score) in row.iter().enumerate() {
                        let expected = -TWELVE[head] * key.abs_diff(query) as f64;
                        let actual = f64::from(score - row[query]);
                        assert!(
                            (actual - expected).abs() < 1e-5,
                            "head {head}, query {query}, key {key}: {actual} instead of {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn fixed_slopes_are_no_parameter_and_move_with_their_module() {
    for (_, device) in devices::cpu() {
        let fixed = alibi(5, false, &device);
        assert_eq!(fixed.num_params(), 0);
        // Nor do they become one when a model is unfrozen.
        let unfrozen = alibi(5, false, &device.clone().autodiff()).set_require_grad(true);
        assert!(!unfrozen.slopes().is_require_grad());
        for (_, other) in devices::cpu() {
            let moved = fixed.clone().to_device(&other);
            assert_eq!(moved.devices(), std::slice::from_ref(&other));
            assert_same(&moved.slopes(), &alibi(5, false, &other).slopes());
        }
    }
}

#[test]
fn learned_slopes_are_trained() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let alibi = alibi(5, true, &device);
        assert_eq!(alibi.num_params(), 5);
        let gradients = loss(alibi.bias(), 5, 7, &device).backward();
        let gradient = &parameters::gradients(&alibi, &gradients)["slopes"];
        assert!(gradient.iter::<f32>().all(|number| number != 0.0));
        // What training changed is what is used.
        let trained = filled(alibi.clone(), 1);
        assert!(differs(&trained.slopes(), &alibi.slopes()));
        let [before, after] = [&alibi, &trained].map(|alibi| loss(alibi.bias(), 5, 7, &device));
        assert!(differs(&before, &after));
    }
}

#[test]
#[should_panic(expected = "AlibiConfig: n_heads must be at least 1, got 0")]
fn no_heads() {
    alibi(0, false, &devices::any());
}

/// Four of twelve slopes are no numbers of f32, to which they are not rounded in f64.
#[test]
fn slopes_of_the_paper_have_the_precision_of_the_scores() {
    let heads = 12;
    for (name, device) in devices::cpu() {
        let [query, key, value] = [1, 2, 3]
            .map(|seed| -> Tensor<4> { tensor([1, heads, 7, 5], seed, &device).cast(DType::F64) });
        let attend = |bias| {
            let options = AttentionOptions::default().bias(bias);
            attention(query.clone(), key.clone(), value.clone(), options).into_data()
        };
        let distances =
            (0..7).flat_map(|i: i32| (0..7).map(move |j: i32| f64::from((i - j).abs())));
        let distances: Vec<f64> = distances.collect();
        // In the bits of f64, unlike those of `TWELVE`.
        let slope = |head: i32| match head {
            0..8 => 2f64.powi(-head - 1),
            _ => 2f64.powf(-0.5 - f64::from(head - 8)),
        };
        let dense =
            (0..heads as i32).flat_map(|head| distances.iter().map(move |d| -slope(head) * d));
        let dense = TensorData::new(dense.collect::<Vec<f64>>(), [1, heads, 7, 7]);
        let expected = attend(AttentionBias::dense(Tensor::from_data(
            dense,
            (&device, DType::F64),
        )));
        let actual = attend(alibi(heads, false, &device).bias());
        assert_close(name, &actual, &expected, 1e-15);

        // The bias that a cache holds.
        let config = SelfAttentionConfig::new(24, heads)
            .with_causal(true)
            .with_dropout(0.0);
        let config = config.with_position(PositionEncoding::alibi());
        let module = wide(filled(config.init(&device), 1));
        let x = tensor([2, 5, 24], 4, &device).cast(DType::F64);
        let whole = module
            .forward(SelfAttentionInput::new(x.clone()))
            .into_data();
        for counts in [[4, 4], [4, 2]] {
            let mut cache = module.cache(2, &KvCacheConfig::new(5));
            let first = SelfAttentionInput::new(x.clone().narrow(1, 0, 4)).lengths(&counts);
            module.forward_cached(first, &mut cache);
            let next = x.clone().narrow(1, 4, 1);
            let output = module.forward_cached(SelfAttentionInput::new(next), &mut cache);
            let output: Vec<f64> = output.into_data().iter().take(24).collect();
            let expected: Vec<f64> = whole.iter().skip(4 * 24).take(24).collect();
            let error = difference(&output, &expected);
            assert!(error < 1e-14, "{name}: off by {error:.1e}");
        }
    }
}
