//! Sinks, softcaps and scales from one end of the range to the other, against the oracle.

use burn_attn_kernels_cpu::{
    Broadcast, Mask, Options,
    tiled::{Execution, Gradients, Inputs, Rows, Upstream, backward},
};
use half::{bf16, f16};

use crate::{
    case::{Case, coarse, tensor},
    number::Number,
    paths::{self, Path},
    run::{How, PORTABLE, USUAL, run},
    tolerance::assert_near,
};

const PATHS: [Path; 8] = [
    paths::ONE_QUERY,
    paths::ONE_QUERY_GROUPED,
    paths::ONE_QUERY_SPLIT,
    paths::SHORT,
    paths::GROUPED,
    paths::MANY_HEADS,
    paths::SPLIT,
    paths::TILES,
];

/// Sinks in f32, which is also their precision for half precision.
const SINKS: [f64; 11] = [
    f32::MIN as f64,
    f32::MAX as f64,
    -2.5e38_f32 as f64,
    2.5e38_f32 as f64,
    -1e30_f32 as f64,
    -1e12_f32 as f64,
    1e12_f32 as f64,
    -1e10_f32 as f64,
    1e9_f32 as f64,
    f32::MIN_POSITIVE as f64,
    -1e-45_f32 as f64,
];

/// Sinks that only f64 holds.
const WIDE_SINKS: [f64; 5] = [f64::MIN, f64::MAX, -1.5e308, 1.5e308, -1e300];

/// Fails unless every number is as near as an exponential near 1 allows, whatever the sinks are.
#[track_caller]
fn assert_right<T: Number>(case: &Case, how: How) {
    assert_right_in::<T>(case, how, |_| true);
}

/// As [`assert_right`], for the tensors of these names.
#[track_caller]
fn assert_right_in<T: Number>(case: &Case, how: How, names: impl Fn(&str) -> bool) {
    let oracle = case.oracle();
    let is_half = T::EPSILON > T::EPSILON_OF_REAL;
    let relative = T::EPSILON * if is_half { 1.0 } else { 64.0 };
    let results = case.of_parameters(run::<T>(case, how));
    for (name, actual) in results.into_iter().filter(|(name, _)| names(name)) {
        let expected = tensor(&oracle, name);
        let largest = expected
            .iter()
            .filter(|x| x.is_finite())
            .fold(1.0, |most: f64, x| most.max(x.abs()));
        for (at, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
            // The logsumexp of a row that sees nothing is the sink.
            let size = match name {
                "logsumexp" => expected.abs().max(1.0),
                _ => largest,
            };
            assert!(
                actual == expected || (actual - expected).abs() <= relative * size,
                "{}, {}, {how:?}: {name}[{at}] is {actual} instead of {expected}",
                case.name,
                T::NAME,
            );
        }
    }
}

/// Hides everything from the first query of the first head, by a mask or by a bias.
fn hide_a_row(case: &mut Case, by_mask: bool) {
    let (shape, len_kv) = (case.scores(), case.problem.len_kv);
    let count = shape.iter().product();
    if by_mask {
        case.masked = Some((shape, (0..count).map(|at| at < len_kv).collect()));
    } else {
        let mut bias = coarse(6, count);
        bias[..len_kv].fill(f64::NEG_INFINITY);
        case.bias = Some((shape, bias));
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn sinks_of_any_size_beside_a_fully_masked_row() {
    for (name, sizes) in PATHS {
        for (index, sink) in SINKS.into_iter().chain(WIDE_SINKS).enumerate() {
            let mut case = Case::new(&format!("{name}, sink {sink}"), sizes);
            hide_a_row(&mut case, index % 3 > 0);
            let sinks = [sink, 0.5, sink].into_iter().cycle();
            case.sinks = Some(sinks.take(case.problem.heads_q).collect());
            case.logsumexp_gradient = Some(coarse(7, case.problem.query_rows()));
            assert_right::<f64>(&case, [USUAL, PORTABLE][index % 2]);
            if index >= SINKS.len() {
                continue;
            }
            assert_right::<f32>(&case, USUAL);
            assert_right::<f32>(&case, PORTABLE);
            if case.bias.is_none() {
                assert_right::<f16>(&case, USUAL);
                assert_right::<bf16>(&case, USUAL);
            }
        }
    }
}

#[test]
fn the_gradient_of_a_sink_has_a_weight_of_at_most_one() {
    // The logsumexp is below the sink, as another implementation may round it.
    for below in [65536.0, 1e30] {
        for len_q in [1, 7] {
            let problem = Case::new("", [1, 1, 1, len_q, 3, 2, 2]).problem;
            let sink = -1e12_f32;
            let inputs = Inputs {
                options: Options {
                    mask: Mask {
                        masked: Some(Broadcast::new(&[true], [1; 4]).unwrap()),
                        ..Mask::default()
                    },
                    sinks: Some(&[sink]),
                    ..Options::default()
                },
                ..Inputs::new(problem, &[1.0_f32; 14][..2 * len_q], &[1.0; 6], &[1.0; 6])
            };
            let output = Rows::contiguous(&[0.0; 14], 1, len_q, 2);
            let upstream = Upstream {
                output,
                logsumexp: &[sink - below; 7][..len_q],
                output_gradient: output,
                logsumexp_gradient: Some(&[0.5; 7][..len_q]),
            };
            let mut gradient = [f32::NAN];
            let gradients = Gradients {
                sinks: Some(&mut gradient),
                ..Gradients::default()
            };
            backward(&inputs, &upstream, gradients, Execution::sequential()).unwrap();
            assert_eq!(gradient, [0.5 * len_q as f32]);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn softcaps_of_any_size() {
    let caps = [
        f64::MAX,
        1e300,
        1e39,
        3e38,
        2.4e38,
        1e38,
        1e20,
        1e-17,
        1e-20,
        1e-38,
        2e-39,
        1e-45,
        1e-300,
        5e-324,
    ];
    for (name, sizes) in PATHS {
        for (index, softcap) in caps.into_iter().enumerate() {
            // Scores are exactly 0 or not near 0: near 0, a tiny softcap would turn a rounding error into a slope.
            let numbers = if softcap < 1.0 { Case::fine } else { Case::new };
            let mut case = numbers(&format!("{name}, softcap {softcap:e}"), sizes);
            case.softcap = Some(softcap);
            // Scores of 0 as well.
            case.query[..case.problem.dim_qk].fill(0.0);
            if index % 2 == 0 {
                case.masked = Some(([1, 1, 1, 1], vec![false]));
            }
            let oracle = case.oracle();
            for how in [USUAL, PORTABLE] {
                assert_right::<f32>(&case, how);
                assert_right::<f64>(&case, how);
            }
            if softcap < 1.0 {
                continue;
            }
            assert!(assert_near::<f16>(&case, &oracle, USUAL), "{softcap}");
            assert!(assert_near::<bf16>(&case, &oracle, USUAL), "{softcap}");
        }
    }
}

#[test]
fn scores_beside_a_softcap_as_large_as_they_are() {
    let power = |exponent: i32| 2_f64.powi(exponent);
    for len_q in [1, 7] {
        for [of_scores, softcap] in [
            [power(40), power(44)],
            [power(61), power(62)],
            [power(100), power(101)],
            [power(121), power(121)],
            [power(121), power(128)],
            [power(121), f64::MAX],
        ] {
            let mut case = Case::new("large scores", [1, 1, 1, len_q, 3, 1, 2]);
            case.query.fill(1.0);
            case.key = vec![0.25, 0.75, -0.5];
            case.scale = Some(of_scores);
            case.softcap = Some(softcap);
            for how in [USUAL, PORTABLE] {
                // The weights of the backward pass are those of a logsumexp that has rounded.
                let forward = |name: &str| ["output", "logsumexp"].contains(&name);
                assert_right_in::<f64>(&case, how, forward);
                assert_right_in::<f32>(&case, how, forward);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn scales_that_the_precision_does_not_hold() {
    fn check<T: Number>(scale: f64, [of_query, of_key, of_output]: [i32; 3]) {
        for (name, sizes) in PATHS {
            let mut case = Case::new(&format!("{name}, scale {scale:e}"), sizes);
            case.scale = Some(scale);
            // In two steps, because the factor may be subnormal.
            let half = |exponent: i32| 2_f64.powi(exponent / 2);
            for (numbers, exponent) in [
                (&mut case.query, of_query),
                (&mut case.key, of_key),
                (&mut case.output_gradient, of_output),
            ] {
                for x in numbers {
                    *x = *x * half(exponent) * half(exponent);
                }
            }
            let oracle = case.oracle();
            for how in [USUAL, PORTABLE] {
                assert!(assert_near::<T>(&case, &oracle, how), "{}", case.name);
            }
        }
    }
    // Powers of two of the query, the key and the gradient of the output: all results are in the range.
    check::<f32>(2_f64.powi(128), [-114, -14, -6]);
    check::<f32>(-2_f64.powi(130), [-110, -20, -6]);
    check::<bf16>(2_f64.powi(128), [-110, -18, -6]);
    check::<f32>(2_f64.powi(-130), [110, 20, -6]);
    check::<f32>(2_f64.powi(-150), [120, 30, -6]);
    check::<f64>(f64::MAX, [-956, -64, -6]);
    // The oracle has to hold the product without the scale, and the gradient of a score times the scale.
    check::<f64>(f64::MIN_POSITIVE / 2.0, [950, 60, 80]);
}

#[test]
fn a_scale_beyond_the_range_leaves_scores_of_zero() {
    for len_q in [1, 7] {
        let mut case = Case::new("queries of zero", [1, 2, 1, len_q, 11, 3, 2]);
        case.query.fill(0.0);
        case.scale = Some(1e39);
        case.key.iter_mut().for_each(|x| *x /= 1024.0 * 1024.0);
        assert_right::<f32>(&case, USUAL);
        assert_right::<bf16>(&case, PORTABLE);
    }
}
