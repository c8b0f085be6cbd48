//! The gradients of activations, against differences of the formulas in f64.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::ops::{Activation, activate, activated_linear};
use burn_attn_tests::{
    compare::{assert_near, numbers_f64},
    devices,
    numbers::uniform_f64,
};

use crate::{case::tensor, option_tensors::gradient};

const ALL: [Activation; 8] = [
    Activation::Identity,
    Activation::Relu,
    Activation::ReluSquared,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::QuickGelu,
    Activation::Silu,
    Activation::ClampedQuickGelu,
];

/// How far gradients may be from differences, which are good to 1e-9 themselves.
const PRECISIONS: [(DType, f64); 2] = [(DType::F32, 3e-6), (DType::F64, 1e-8)];

fn erf(x: f64) -> f64 {
    let device = devices::any();
    let x = Tensor::<1>::from_data([x], (&device, DType::F64));
    x.erf().into_scalar()
}

fn function(activation: Activation, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::ReluSquared => x.max(0.0).powi(2),
        Activation::Gelu => x * (1.0 + erf(x / 2f64.sqrt())) / 2.0,
        Activation::GeluTanh => {
            let factor = (2.0 / std::f64::consts::PI).sqrt();
            x * (1.0 + (factor * (x + 0.044715 * x.powi(3))).tanh()) / 2.0
        }
        Activation::QuickGelu => x * sigmoid(1.702 * x),
        Activation::Silu => x * sigmoid(x),
        Activation::ClampedQuickGelu => function(Activation::QuickGelu, x.min(7.0)),
    }
}

/// The result for one row with its bias.
fn result(row: &[f64], activation: Activation, gated: bool) -> Vec<f64> {
    if !gated {
        return row.iter().map(|&x| function(activation, x)).collect();
    }
    let (gate, up) = row.split_at(row.len() / 2);
    let other = |up: f64| match activation {
        Activation::ClampedQuickGelu => up.clamp(-7.0, 7.0) + 1.0,
        _ => up,
    };
    let pairs = gate.iter().zip(up);
    pairs
        .map(|(&gate, &up)| function(activation, gate) * other(up))
        .collect()
}

/// The gradient of the sum of the results, weighted by `upstream`, by central differences.
fn differences(
    x: &[f64],
    width: usize,
    bias: &[f64],
    upstream: &[f64],
    case: (Activation, bool),
) -> Vec<f64> {
    const STEP: f64 = 1e-6;
    let columns = upstream.len() * width / x.len();
    let mut gradient = Vec::new();
    for (x, upstream) in x.chunks(width).zip(upstream.chunks(columns)) {
        let biased = |at: usize| x[at] + bias.get(at).unwrap_or(&0.0);
        let row: Vec<f64> = (0..width).map(biased).collect();
        let sum = |at: usize, step: f64| -> f64 {
            let mut row = row.clone();
            row[at] += step;
            let result = result(&row, case.0, case.1);
            result
                .iter()
                .zip(upstream)
                .map(|(y, weight)| y * weight)
                .sum()
        };
        gradient.extend((0..width).map(|at| (sum(at, STEP) - sum(at, -STEP)) / (2.0 * STEP)));
    }
    gradient
}

/// Uniform numbers up to this size.
fn scaled(seed: u64, count: usize, size: f64) -> Vec<f64> {
    let numbers = uniform_f64(seed, count).into_iter();
    numbers.map(|x| size * x).collect()
}

#[test]
fn gradients_are_those_of_the_formulas() {
    let [rows, width] = [3, 34];
    // Beyond the limits of clamped functions.
    let scaled = |seed, count| scaled(seed, count, 9.0);
    for (dtype, tolerance) in PRECISIONS {
        let devices = devices::named().into_iter();
        // The results of wgpu in f64 are wrong.
        let devices = devices.filter(|(name, _)| dtype == DType::F32 || *name != "wgpu");
        for (name, device) in devices {
            let device = device.autodiff();
            for activation in ALL {
                for (gated, with_bias) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let columns = if gated { width / 2 } else { width };
                    let x = scaled(1, rows * width);
                    let bias = scaled(2, if with_bias { width } else { 0 });
                    let upstream = scaled(3, rows * columns);
                    let expected = differences(&x, width, &bias, &upstream, (activation, gated));

                    let tracked = tensor(&x, [rows, width], &device, dtype).require_grad();
                    let of_bias = (!bias.is_empty())
                        .then(|| tensor(&bias, [width], &device, dtype).require_grad());
                    let y = activate(tracked.clone(), of_bias.clone(), activation, gated);
                    let weights = tensor(&upstream, [rows, columns], &device, dtype);
                    let gradients = (y * weights).sum().backward();
                    // Burn 0.22.1 computes sigmoids in f32 on ndarray.
                    let of_sigmoids = matches!(
                        activation,
                        Activation::GeluTanh
                            | Activation::QuickGelu
                            | Activation::Silu
                            | Activation::ClampedQuickGelu
                    );
                    let tolerance = match name == "ndarray" && of_sigmoids {
                        true => tolerance.max(3e-6),
                        false => tolerance,
                    };
                    let check = |what: &str, actual: Vec<f64>, expected: &[f64]| {
                        let what = format!(
                            "{what} of {activation:?}, gated {gated}, {device:?} in {dtype:?}"
                        );
                        assert_near(&what, &actual, expected, tolerance);
                    };
                    check("x", gradient(&tracked, &gradients), &expected);
                    if let Some(bias) = of_bias {
                        let sums =
                            (0..width).map(|at| expected.iter().skip(at).step_by(width).sum());
                        let sums: Vec<f64> = sums.collect();
                        check("bias", gradient(&bias, &gradients), &sums);
                    }
                }
            }
        }
    }
}

#[test]
fn a_layer_may_train_its_bias_or_its_weight_alone() {
    for device in devices::all() {
        let device = device.autodiff();
        let x = tensor::<2>(&uniform_f64(1, 10), [2, 5], &device, DType::F32);
        let of = |seed, count| uniform_f64(seed, count);
        let gradients = |train_weight: bool, train_bias: bool| {
            let weight = tensor::<2>(&of(2, 30), [5, 6], &device, DType::F32);
            let bias = tensor::<1>(&of(3, 6), [6], &device, DType::F32);
            let (weight, bias) = (
                weight.set_require_grad(train_weight),
                bias.set_require_grad(train_bias),
            );
            let y = activated_linear(
                x.clone(),
                weight.clone(),
                Some(bias.clone()),
                Activation::Silu,
                true,
            );
            let gradients = y.sum().backward();
            (
                weight.grad(&gradients).as_ref().map(numbers_f64),
                bias.grad(&gradients).as_ref().map(numbers_f64),
            )
        };
        let both = gradients(true, true);
        assert!(both.0.is_some() && both.1.is_some());
        assert_eq!(gradients(true, false), (both.0.clone(), None));
        assert_eq!(gradients(false, true), (None, both.1));
    }
}

#[test]
fn gradients_wherever_things_lie() {
    let [rows, width] = [6, 10];
    for (name, device) in devices::named() {
        for device in [
            device.clone().autodiff(),
            device.autodiff().gradient_checkpointing(),
        ] {
            for (activation, gated) in [
                (Activation::Identity, false),
                (Activation::Relu, false),
                (Activation::Gelu, false),
                (Activation::Silu, true),
            ] {
                let columns = if gated { width / 2 } else { width };
                let of = |seed, shape: [usize; 2]| {
                    tensor::<2>(
                        &uniform_f64(seed, shape[0] * shape[1]),
                        shape,
                        &device,
                        DType::F32,
                    )
                };
                let bias = tensor::<1>(&uniform_f64(4, width), [width], &device, DType::F32);
                let weights = of(3, [rows, columns]);
                // What is recomputed where a strategy does not keep it: something before, and something after.
                let result = |x: Tensor<2>| {
                    let y = activate(x.mul_scalar(2.0), Some(bias.clone()), activation, gated);
                    y.mul_scalar(0.5).add_scalar(1.0)
                };
                let gradient = |loss: &dyn Fn(Tensor<2>) -> Tensor<1>, x: Tensor<2>| {
                    let x = x.require_grad();
                    gradient(&x, &loss(x.clone()).backward())
                };
                let simple = gradient(
                    &|x| (result(x) * weights.clone()).sum(),
                    of(1, [rows, width]),
                );
                let check = |what: &str, actual: Vec<f64>, factor: f64| {
                    let expected: Vec<f64> = simple.iter().map(|x| factor * x).collect();
                    let what = format!("{what}, {activation:?}, gated {gated}, {name}");
                    assert_near(&what, &actual, &expected, 1e-6);
                };
                // x and the gradient as columns of others.
                let transposed = gradient(
                    &|x| {
                        let weights = weights.clone().transpose();
                        (result(x.transpose()).transpose() * weights).sum()
                    },
                    of(1, [rows, width]).transpose().add_scalar(0.0),
                );
                let back = tensor::<2>(&transposed, [width, rows], &device, DType::F32);
                check("transposed", numbers_f64(&back.transpose()), 1.0);
                // A result that is used twice, and two results whose gradient is one tensor.
                let twice = |x: Tensor<2>| {
                    let y = result(x);
                    ((y.clone() + y) * weights.clone()).sum()
                };
                check("twice", gradient(&twice, of(1, [rows, width])), 2.0);
                let two = |x: Tensor<2>| ((result(x.clone()) + result(x)) * weights.clone()).sum();
                check("two", gradient(&two, of(1, [rows, width])), 2.0);
            }
        }
    }
}

/// The operations in between would round: in bf16, one bit is left of `1 + erf(−2)`.
#[cfg(feature = "flex")]
#[test]
fn half_precision_rounds_once() {
    let [rows, width] = [3, 34];
    let device = Device::flex().autodiff();
    for dtype in [DType::F16, DType::BF16] {
        for activation in ALL {
            for gated in [false, true] {
                let x = scaled(1, rows * width, 4.0);
                let x: Tensor<2> = tensor(&x, [rows, width], &device, dtype);
                let step = |x: Tensor<2>| {
                    let x = x.detach().require_grad();
                    let y = activate(x.clone(), None, activation, gated);
                    let gradient = x.grad(&y.clone().sum().backward()).expect("a gradient");
                    [y.inner(), gradient]
                };
                let actual = step(x.clone());
                let expected = step(x.cast(DType::F32));
                for (actual, expected) in actual.into_iter().zip(expected) {
                    assert_eq!(actual.dtype(), dtype);
                    assert_eq!(
                        numbers_f64(&actual),
                        numbers_f64(&expected.cast(dtype)),
                        "{activation:?}, gated {gated}, {dtype:?}"
                    );
                }
            }
        }
    }
}

/// Burn adds up tensors of one type alone: in half precision, GELU cast a bias in f32, and ReLU failed.
#[cfg(feature = "flex")]
#[test]
fn a_bias_of_another_type_is_cast_and_keeps_its_type_for_its_gradient() {
    let [rows, width] = [3, 34];
    let device = Device::flex().autodiff();
    for [dtype, of_bias] in [
        [DType::F16, DType::F32],
        [DType::BF16, DType::F32],
        [DType::F32, DType::BF16],
        [DType::F32, DType::F64],
    ] {
        for activation in ALL {
            for gated in [false, true] {
                let case = format!("{activation:?}, gated {gated}, {dtype:?} and {of_bias:?}");
                let x: Tensor<2> =
                    tensor(&uniform_f64(1, rows * width), [rows, width], &device, dtype);
                let bias = || tensor::<1>(&uniform_f64(2, width), [width], &device, of_bias);
                let of = |bias: Tensor<1>| activate(x.clone(), Some(bias), activation, gated);
                let expected = of(bias().cast(dtype));
                let tracked = bias().require_grad();
                let actual = of(tracked.clone());
                assert_eq!(actual.dtype(), dtype, "{case}");
                assert_eq!(numbers_f64(&actual), numbers_f64(&expected), "{case}");
                let gradient = tracked.grad(&actual.sum().backward()).expect("a gradient");
                assert_eq!(gradient.dtype(), of_bias, "{case}");
                // A layer casts it as well.
                let weight: Tensor<2> =
                    tensor(&uniform_f64(3, width * 6), [width, 6], &device, dtype);
                let of_layer = tensor::<1>(&uniform_f64(4, 6), [6], &device, of_bias);
                let layer = |bias| {
                    let y =
                        activated_linear(x.clone(), weight.clone(), Some(bias), activation, gated);
                    numbers_f64(&y)
                };
                let expected = layer(of_layer.clone().cast(dtype));
                assert_eq!(layer(of_layer), expected, "{case}");
            }
        }
    }
}
