//! The operation against the naive f64 oracle: output, logsumexp, weights and every gradient.

use burn::tensor::{DType, Device, TensorData};
use burn_attn::{AttentionDropout, CausalAlignment};
use burn_attn_tests::{
    compare::{assert_near, difference_to_largest},
    devices,
};

use crate::{
    body::Body,
    case::{Case, Results},
    every_case::{every_case, wrong_on_wgpu_once},
};

/// The blockwise body in one block, two and many, and the composed body.
const GENERAL: [Body; 4] = [
    Body::Blockwise(1),
    Body::Blockwise(2),
    Body::Blockwise(7),
    Body::Composed,
];

/// Every implementation that computes in `dtype`: what each backend has, and the general bodies. They are the same operations everywhere, so elsewhere than
/// on the CPU one of them is enough; where samples are, [`f32_agrees_with_the_oracle`] alone runs it.
pub fn implementations(dtype: DType) -> Vec<(Body, Device)> {
    let bodies = |device: Device| {
        let general = match (devices::is_cpu(&device), devices::is_sampled(&device)) {
            (true, _) => &GENERAL[..],
            (false, true) => &[],
            (false, false) => &[Body::Blockwise(7)],
        };
        let bodies = [Body::Backend].into_iter().chain(general.iter().copied());
        bodies
            .map(|body| (body, device.clone()))
            .collect::<Vec<_>>()
    };
    devices::with(dtype).into_iter().flat_map(bodies).collect()
}

/// Everything that was computed, by name, expected and actual.
pub fn pairs(expected: Results, actual: Results) -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
    let mut pairs = vec![
        ("output", expected.output, actual.output),
        ("logsumexp", expected.logsumexp, actual.logsumexp),
        ("weights", expected.weights, actual.weights),
    ];
    let names = ["query gradient", "key gradient", "value gradient"];
    for (name, (e, a)) in names
        .into_iter()
        .zip(expected.gradients.into_iter().zip(actual.gradients))
    {
        pairs.push((name, e, a));
    }
    assert_eq!(
        expected.option_gradients.len(),
        actual.option_gradients.len()
    );
    let options = expected.option_gradients.into_iter();
    for ((name, e), (_, a)) in options.zip(actual.option_gradients) {
        pairs.push((name, e, a));
    }
    pairs
}

/// Panics unless everything that was computed is within a tolerance of what was expected.
pub fn assert_is_of_oracle(expected: Results, actual: Results, tolerance: f64, what: &str) {
    for (name, expected, actual) in pairs(expected, actual) {
        assert_near(&format!("{name} {what}"), &actual, &expected, tolerance);
    }
}

fn agrees(body: Body, device: &Device, dtype: DType, tolerance: f64) {
    let has_all = body == Body::Backend || !devices::is_sampled(device);
    let once_wrong = wrong_on_wgpu_once().map(|case| case.name);
    let usual = Case::usual("").problem;
    for (index, case) in every_case().into_iter().enumerate() {
        // A general body compiles most for products of another size, among whose kernels Burn chooses by trying them.
        let p = case.problem;
        let is_usual = p == usual || p.heads_q != p.heads_kv;
        let is_taken = is_usual && index % 10 == 0;
        if !has_all && !is_taken && !once_wrong.contains(&case.name) {
            continue;
        }
        let actual = case.run_by(body, device, dtype);
        let what = format!("of '{}' by {body:?} on {device:?} in {dtype:?}", case.name);
        assert_is_of_oracle(case.oracle(), actual, tolerance, &what);
    }
}

pub const TOLERANCE_OF_F32: f64 = 16.0 * f32::EPSILON as f64;

#[test]
fn f32_agrees_with_the_oracle() {
    for (body, device) in implementations(DType::F32) {
        agrees(body, &device, DType::F32, TOLERANCE_OF_F32);
    }
    for device in devices::all().into_iter().filter(devices::is_sampled) {
        agrees(Body::Blockwise(7), &device, DType::F32, TOLERANCE_OF_F32);
    }
}

/// A server refuses what Burn 0.22.1 cannot send it, such as a cast of integers, and ends the session: it is no device for every test.
#[cfg(feature = "remote")]
#[test]
fn a_remote_server_agrees_with_the_oracle() {
    let device = devices::remote();
    for body in GENERAL {
        agrees(body, &device, DType::F32, TOLERANCE_OF_F32);
    }
}

#[test]
fn f64_agrees_with_the_oracle() {
    for (body, device) in implementations(DType::F64) {
        agrees(body, &device, DType::F64, 1e-13);
    }
}

/// With all numbers rounded to `dtype`, so that only what is computed from them differs.
fn rounded(case: Case, dtype: DType) -> Case {
    let round = |data: Vec<f64>| -> Vec<f64> {
        let length = data.len();
        let data = TensorData::new(data, [length]).convert_dtype(dtype);
        data.iter().collect()
    };
    Case {
        query: round(case.query),
        key: round(case.key),
        value: round(case.value),
        bias: case.bias.map(|(shape, data)| (shape, round(data))),
        alibi: case.alibi.map(round),
        relative: case
            .relative
            .map(|(table, buckets)| (round(table), buckets)),
        sinks: case.sinks.map(round),
        output_gradient: round(case.output_gradient),
        ..case
    }
}

#[cfg(feature = "flex")]
#[test]
fn half_precision_has_f32_statistics() {
    for (dtype, epsilon) in [(DType::F16, 0.000_976_562_5), (DType::BF16, 0.007_812_5)] {
        for case in every_case() {
            let case = rounded(case, dtype);
            for body in [Body::Backend].into_iter().chain(GENERAL) {
                let actual = case.run_by(body, &Device::flex(), dtype);
                for (name, expected, actual) in pairs(case.oracle(), actual) {
                    let tolerance = match name {
                        "logsumexp" => 1e-5,
                        _ => epsilon,
                    };
                    let what = format!("{name} of '{}' by {body:?} in {dtype:?}", case.name);
                    assert_near(&what, &actual, &expected, tolerance);
                }
            }
        }
    }
}

/// Gradients of a row's scores add up to 0 only with an output that is not rounded, and slopes have the distances as factors.
#[cfg(feature = "flex")]
#[test]
fn slopes_of_half_precision_are_rounded_once() {
    for (dtype, half_an_ulp) in [(DType::F16, 1.0 / 2048.0), (DType::BF16, 1.0 / 256.0)] {
        for seed in 0..4 {
            let case = Case::new("slopes", [2, 4, 2, 70, 90, 16, 24]).with_alibi();
            let case = rounded(
                Case {
                    dropout: Some(AttentionDropout {
                        probability: 0.3,
                        seed,
                    }),
                    ..case
                },
                dtype,
            );
            for body in [Body::Backend].into_iter().chain(GENERAL) {
                let pairs = pairs(case.oracle(), case.run_by(body, &Device::flex(), dtype));
                let of_slopes = |(name, _, _): &(&str, _, _)| *name == "slopes gradient";
                let (_, expected, actual) = pairs.into_iter().find(of_slopes).unwrap();
                let error = difference_to_largest(&actual, &expected);
                assert!(
                    error <= half_an_ulp + 1e-4,
                    "{body:?} in {dtype:?} is off by {error:e}"
                );
            }
        }
    }
}

/// With more than four queries, for which other kernels are, and options that change a gradient's way.
fn cases_of_half_precision() -> [Case; 3] {
    let plain = Case::new("causal", [1, 4, 2, 67, 97, 64, 64]);
    let wide = Case::new("wide", [1, 2, 1, 41, 70, 128, 96]);
    let options = Case::new("options", [2, 2, 1, 41, 53, 24, 16]);
    [
        Case {
            causal: Some(CausalAlignment::BottomRight),
            ..plain
        },
        Case {
            key_lengths: Some(vec![61]),
            ..wide
        },
        Case {
            softcap: Some(3.0),
            ..options.with_alibi().with_sinks()
        },
    ]
}

/// The root of the mean square of the differences.
fn root_mean_square(actual: &[f64], expected: &[f64]) -> f64 {
    // Infinities are equal.
    let square = |(a, e): (&f64, &f64)| if a == e { 0.0 } else { (a - e).powi(2) };
    let squares = actual.iter().zip(expected).map(square);
    (squares.sum::<f64>() / expected.len() as f64).sqrt()
}

/// A few numbers may all be rounded well by chance: that the largest is a neighbour of the right number of its type is no error. Statistics are in f32.
fn least_error(name: &str, expected: &[f64], dtype: DType) -> f64 {
    let finite = expected.iter().filter(|x| x.is_finite());
    let largest = finite.fold(0.0, |most: f64, x| most.max(x.abs()));
    if expected.len() >= 16 || name == "logsumexp" || largest == 0.0 {
        return TOLERANCE_OF_F32;
    }
    let digits = if dtype == DType::F16 { 10 } else { 7 };
    TOLERANCE_OF_F32.max(2f64.powi(largest.log2().floor() as i32 - digits))
}

/// The composed body computes everything in f32. In gradients three times its error is allowed, elsewhere twice. Where samples are, every tenth case is taken.
#[test]
fn in_half_precision_the_error_is_like_that_of_the_composed_body() {
    for (device_name, device) in devices::named() {
        for dtype in [DType::F16, DType::BF16] {
            if !device.supports_dtype(dtype) {
                continue;
            }
            let every = every_case().into_iter().enumerate();
            let every = every.filter(|(index, _)| !devices::is_sampled(&device) || index % 10 == 0);
            let every = every.map(|(_, case)| case);
            for case in cases_of_half_precision().into_iter().chain(every) {
                let case = rounded(case, dtype);
                // A name, the error, and the least that is counted.
                let run = |body, device: &Device| -> Vec<(&str, f64, f64)> {
                    let pairs = pairs(case.oracle(), case.run_by(body, device, dtype));
                    let error = |(name, expected, actual): (_, Vec<f64>, Vec<f64>)| {
                        let error = root_mean_square(&actual, &expected);
                        (name, error, least_error(name, &expected, dtype))
                    };
                    pairs.into_iter().map(error).collect()
                };
                let fits = |(ours, theirs): (&(&str, f64, f64), &(&str, f64, f64))| {
                    let (name, ours, least) = *ours;
                    let times = 2.0 + f64::from(name.ends_with("gradient"));
                    ours <= (times * theirs.1).max(least)
                };
                let ours = run(Body::Backend, &device);
                // Those of the CPU, or else those of the device, where Burn compiles a dozen products for them.
                let cpu = Some(devices::any()).filter(|cpu| cpu.supports_dtype(dtype));
                let mut theirs = run(Body::Composed, cpu.as_ref().unwrap_or(&device));
                if !ours.iter().zip(&theirs).all(fits) {
                    theirs = run(Body::Composed, &device);
                }
                for pair in ours.iter().zip(&theirs) {
                    let ((name, ours, _), (_, theirs, _)) = pair;
                    assert!(
                        fits(pair),
                        "{name} of '{}' on {device_name} in {dtype:?} is off by {ours:e}, the composed body by {theirs:e}",
                        case.name
                    );
                }
            }
        }
    }
}
