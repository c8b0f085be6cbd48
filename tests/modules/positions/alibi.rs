//! ALiBi has the slopes of its authors' code.

use core::f64::consts::FRAC_1_SQRT_2;

use burn::{module::Module, tensor::Device};
use burn_attn::positions::{Alibi, AlibiConfig};
use burn_attn_tests::{
    compare::{assert_same, differs, numbers},
    devices,
    numbers::filled,
    parameters,
};

use super::{loss, scores};

/// Of `get_slopes` in the authors' code (arXiv:2108.12409), run in Python: eight heads, the paper's example.
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
