//! Activations, alone and behind a linear layer, in every memory layout, against the formulas in f64.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::ops::{Activation, activate, activated_linear};
use burn_attn_tests::{
    compare::{assert_near, numbers_f64},
    devices,
    numbers::uniform_f64,
};

use crate::case::tensor;

const PRECISIONS: [(DType, f64); 2] = [
    (DType::F32, 32.0 * f32::EPSILON as f64),
    // Burn 0.22.1 computes sigmoids in f32 on ndarray, so that Silu is checked in f32 alone.
    (DType::F64, 1e-14),
];

fn function(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Relu => x.max(0.0),
        Activation::GeluTanh => {
            let factor = (2.0 / std::f64::consts::PI).sqrt();
            x * (1.0 + (factor * (x + 0.044715 * x.powi(3))).tanh()) / 2.0
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Identity => x,
        other => panic!("{other:?} has no formula here"),
    }
}

/// `[rows, columns]` of row-major `x`, `[rows, width]`, with a bias and maybe a gate.
fn expected(
    x: &[f64],
    bias: &[f64],
    width: usize,
    activation: Activation,
    gated: bool,
) -> Vec<f64> {
    let rows = x.chunks(width).map(|row| {
        let row: Vec<f64> = (0..width)
            .map(|at| row[at] + bias.get(at).unwrap_or(&0.0))
            .collect();
        let (gate, up) = row.split_at(if gated { width / 2 } else { width });
        let gate = gate.iter().map(|&x| function(activation, x));
        match gated {
            true => gate
                .zip(up)
                .map(|(gate, up)| gate * up)
                .collect::<Vec<f64>>(),
            false => gate.collect(),
        }
    });
    rows.flatten().collect()
}

fn vector(values: &[f64], device: &Device, dtype: DType) -> Option<Tensor<1>> {
    (!values.is_empty()).then(|| tensor(values, [values.len()], device, dtype))
}

fn activations(dtype: DType) -> Vec<Activation> {
    let mut all = vec![Activation::Identity, Activation::Relu, Activation::GeluTanh];
    if dtype == DType::F32 {
        all.push(Activation::Silu);
    }
    all
}

#[test]
fn rows_wherever_they_lie() {
    let [rows, width] = [5, 34];
    for (dtype, tolerance) in PRECISIONS {
        for device in devices::with(dtype) {
            let whole = uniform_f64(1, 3 * rows * 2 * width);
            // Elsewhere than on the CPU they are Burn's operations: where samples are enough, each case lies in one way.
            let mut cases = 0..;
            for activation in activations(dtype) {
                for (gated, bias) in [(false, 0), (false, width), (true, 0), (true, width)] {
                    let bias = uniform_f64(2, bias);
                    let of = |x: Tensor<2>| {
                        let values = numbers_f64(&x);
                        let expected = expected(&values, &bias, width, activation, gated);
                        let bias = vector(&bias, &device, dtype);
                        let actual = activate(x.clone(), bias, activation, gated);
                        let what =
                            format!("{activation:?}, gated {gated}, {device:?} in {dtype:?}");
                        assert_near(&what, &numbers_f64(&actual), &expected, tolerance);
                        // Another holder of the tensor sees no change.
                        assert_eq!(numbers_f64(&x), values, "{what}");
                    };
                    let stored = |shape: [usize; 2]| {
                        tensor(&whole[..shape[0] * shape[1]], shape, &device, dtype)
                    };
                    let long = stored([3 * rows, width]);
                    // Alone; rows of a longer matrix; columns of a wider one; transposed.
                    let lies = [
                        stored([rows, width]),
                        long.clone().narrow(0, rows, rows),
                        stored([rows, 2 * width]).narrow(1, 3, width),
                        stored([width, rows]).transpose(),
                    ];
                    let case = cases.next().unwrap_or(0);
                    let turn =
                        |way: usize| !devices::is_sampled(&device) || (case + case / 4) % 4 == way;
                    let ways = lies.into_iter().enumerate();
                    ways.filter(|(way, _)| turn(*way)).for_each(|(_, x)| of(x));
                    let unchanged = stored([3 * rows, width]);
                    assert_eq!(numbers_f64(&long), numbers_f64(&unchanged));
                }
            }
        }
    }
}

#[test]
fn layers_of_few_and_many_rows() {
    for (dtype, tolerance) in PRECISIONS {
        for device in devices::with(dtype) {
            let sizes = [[3, 64, 66], [17, 64, 66], [40, 300, 34], [130, 20, 10]];
            // Burn compiles several products for each size before it chooses one: where samples are enough, each of two sizes has half of the layers.
            let is_sampled = devices::is_sampled(&device);
            let sizes = if is_sampled { &sizes[..2] } else { &sizes };
            for &[rows, depth, width] in sizes {
                let (x, weight) = (uniform_f64(1, rows * depth), uniform_f64(2, depth * width));
                let product = |row: usize, column: usize| -> f64 {
                    (0..depth)
                        .map(|k| x[row * depth + k] * weight[k * width + column])
                        .sum()
                };
                let product: Vec<f64> = (0..rows * width)
                    .map(|at| product(at / width, at % width))
                    .collect();
                for activation in activations(dtype) {
                    for (gated, bias) in [(false, 0), (false, width), (true, 0), (true, width)] {
                        if is_sampled && (gated == (bias > 0)) == (rows == 3) {
                            continue;
                        }
                        let bias = uniform_f64(3, bias);
                        let expected = expected(&product, &bias, width, activation, gated);
                        let actual = activated_linear(
                            tensor(&x, [rows, depth], &device, dtype),
                            tensor(&weight, [depth, width], &device, dtype),
                            vector(&bias, &device, dtype),
                            activation,
                            gated,
                        );
                        let what = format!(
                            "{rows} rows by {depth} × {width}, {activation:?}, gated {gated}, {device:?} in {dtype:?}"
                        );
                        assert_near(&what, &numbers_f64(&actual), &expected, tolerance);
                    }
                }
            }
        }
    }
}

#[test]
fn empty_input_passes_a_layer() {
    for device in devices::with(DType::F32) {
        for [rows, depth, width] in [[0, 5, 4], [3, 0, 4], [3, 5, 0]] {
            let x = Tensor::<2>::ones([rows, depth], &device);
            let weight = Tensor::<2>::ones([depth, width], &device);
            let bias = (width > 0).then(|| Tensor::<1>::full([width], 2.0, &device));
            for (gated, columns) in [(false, width), (true, width / 2)] {
                let y = activated_linear(
                    x.clone(),
                    weight.clone(),
                    bias.clone(),
                    Activation::Relu,
                    gated,
                );
                assert_eq!(y.dims(), [rows, columns]);
                // A sum of nothing is the bias.
                let value = if gated { 4.0 } else { 2.0 };
                assert_eq!(numbers_f64(&y), vec![value; rows * columns]);
            }
        }
    }
}
