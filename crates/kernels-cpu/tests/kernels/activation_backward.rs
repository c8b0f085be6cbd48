//! The gradient of the activation between the linear layers of a feed-forward network, against the formulas in f64.

use burn_attn_kernels_cpu::tiled::{Activated, Activation, Execution, Instructions};

use crate::run::{executions, sentence};

use super::activation::{ALL, THREADS, added, eighths, exact, for_every_size, other, sigmoid};

/// The derivative of the formula.
fn derivative(activation: Activation, x: f64) -> f64 {
    let factor = (2.0 / std::f64::consts::PI).sqrt();
    let swish = |k: f64| sigmoid(k * x) * (1.0 + k * x * (1.0 - sigmoid(k * x)));
    match activation {
        Activation::Identity => 1.0,
        Activation::Relu => f64::from(u8::from(x > 0.0)),
        Activation::ReluSquared => 2.0 * x.max(0.0),
        Activation::Gelu => {
            let density = (-x * x / 2.0).exp() * factor / 2.0;
            (1.0 + libm::erf(x / 2f64.sqrt())) / 2.0 + x * density
        }
        Activation::GeluTanh => {
            let t = (factor * (x + 0.044715 * x.powi(3))).tanh();
            let slope = factor * (1.0 + 3.0 * 0.044715 * x * x);
            (1.0 + t) / 2.0 + x * (1.0 - t * t) * slope / 2.0
        }
        Activation::QuickGelu => swish(1.702),
        Activation::Silu => swish(1.0),
        Activation::ClampedQuickGelu if x > 7.0 => 0.0,
        Activation::ClampedQuickGelu => swish(1.702),
    }
}

/// A few roundings of numbers that are about 1, or of the result if that is larger.
fn bound(exact: f64) -> f64 {
    1e-6 * exact.abs().max(1.0)
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn every_number() {
    // Every 9973rd f32 of either sign up to 30.
    let numbers = (0..=30f32.to_bits()).step_by(9973).map(f32::from_bits);
    let numbers: Vec<f32> = numbers.flat_map(|x| [x, -x]).collect();
    for activation in ALL {
        let activated = Activated {
            bias: &[],
            columns: numbers.len(),
            activation,
        };
        for execution in executions(THREADS) {
            let mut actual = vec![1.0; numbers.len()];
            activated.backward_in_place(&numbers, &mut actual, execution);
            for (&x, actual) in numbers.iter().zip(actual) {
                let exact = derivative(activation, f64::from(x));
                let error = (f64::from(actual) - exact).abs();
                assert!(
                    error <= bound(exact),
                    "{activation:?} at {x}: {actual}, off by {error:e}, {execution:?}"
                );
            }
        }
    }
}

#[test]
fn every_size() {
    for_every_size(|[own, both], rows, execution| {
        let Activated {
            columns,
            activation,
            ..
        } = own;
        let [x, gates] = [1, 2].map(|parts| eighths(parts, parts * rows * columns));
        let gradient = eighths(5, rows * columns);
        let mut actual = gradient.clone();
        own.backward_in_place(&x, &mut actual, execution);
        for (index, actual) in actual.into_iter().enumerate() {
            let x = f64::from(x[index]) + added(&own, index % columns);
            let exact = f64::from(gradient[index]) * derivative(activation, x);
            let error = (f64::from(actual) - exact).abs();
            // Gradients are at most 4.
            assert!(
                error <= 4.0 * bound(exact),
                "{activation:?} at {x}: {actual}"
            );
        }

        let mut actual = vec![f32::NAN; 2 * rows * columns];
        both.backward_gated(&gates, &gradient, &mut actual, execution);
        for row in 0..rows {
            let of = |at: usize| {
                let number = f64::from(gates[row * 2 * columns + at]) + added(&both, at);
                (number, f64::from(actual[row * 2 * columns + at]))
            };
            for column in 0..columns {
                let ((gate, of_gate), (up, of_up)) = (of(column), of(columns + column));
                let gradient = f64::from(gradient[row * columns + column]);
                let inside = activation != Activation::ClampedQuickGelu || up.abs() <= 7.0;
                let exact_gate = gradient * other(activation, up) * derivative(activation, gate);
                let exact_up = gradient * exact(activation, gate) * f64::from(u8::from(inside));
                for (actual, exact) in [(of_gate, exact_gate), (of_up, exact_up)] {
                    let error = (actual - exact).abs();
                    // Incoming gradients are at most 4, and their factors at most 9.
                    assert!(
                        error <= 40.0 * bound(exact),
                        "{activation:?} at {gate}, {up}: {actual} for {exact}"
                    );
                }
            }
        }
    });
}

#[test]
fn infinities_have_the_gradient_of_large_numbers() {
    for activation in ALL {
        let activated = Activated {
            bias: &[],
            columns: 2,
            activation,
        };
        for execution in executions(THREADS) {
            let mut gradient = [1.0, 1.0];
            let x = [f32::INFINITY, f32::NEG_INFINITY];
            activated.backward_in_place(&x, &mut gradient, execution);
            let [above, below] = [30.0, -30.0].map(|x| derivative(activation, x) as f32);
            match activation {
                Activation::ReluSquared => assert_eq!(gradient, [f32::INFINITY, 0.0]),
                _ => assert!(
                    (gradient[0] - above).abs() < 1e-6 && (gradient[1] - below).abs() < 1e-6,
                    "{activation:?}: {gradient:?}"
                ),
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_so_and_reaches_nothing_else() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    for activation in ALL {
        let activated = Activated {
            bias: &[],
            columns: 9,
            activation,
        };
        for execution in executions(THREADS) {
            // NaN in `x` makes the gradient NaN, except for functions whose derivative at NaN is 1.
            let mut gradient = [1.0f32; 9];
            let mut x = [1.0f32; 9];
            (x[2], x[8]) = (NAN, NAN);
            activated.backward_in_place(&x, &mut gradient, execution);
            let is_linear = matches!(activation, Activation::Identity | Activation::Relu);
            let nan = gradient.map(|gradient| gradient.is_nan());
            let expected = std::array::from_fn(|at| !is_linear && (at == 2 || at == 8));
            assert_eq!(nan, expected, "{activation:?}, {execution:?}");

            // Where the derivative is 0 the gradient is 0, even if the incoming gradient is NaN or infinite.
            let dead = match activation {
                Activation::Relu | Activation::ReluSquared => -1.0,
                Activation::ClampedQuickGelu => 8.0,
                _ => continue,
            };
            for above in [NAN, INF, -INF] {
                let mut gradient = [above; 9];
                activated.backward_in_place(&[dead; 9], &mut gradient, execution);
                assert_eq!(gradient, [0.0; 9], "{activation:?}, {execution:?}");
            }
        }
    }
    // The gradient of the factor on a gate is 0 beyond the limit of the factor.
    let activated = Activated {
        bias: &[],
        columns: 1,
        activation: Activation::ClampedQuickGelu,
    };
    for execution in executions(THREADS) {
        let mut out = [0.0; 2];
        activated.backward_gated(&[NAN, 9.0], &[1.0], &mut out, execution);
        assert!(out[0].is_nan() && out[1] == 0.0, "{out:?}, {execution:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn threads_change_no_bit() {
    // Several tasks, the last one shorter.
    let (rows, columns) = (500, 131);
    let [x, gates] = [1, 2].map(|parts| eighths(parts, parts * rows * columns));
    let gradient = eighths(5, rows * columns);
    for activation in ALL {
        let [own, both] = [1, 2].map(|parts| eighths(3, parts * columns));
        let with = |bias| Activated {
            bias,
            columns,
            activation,
        };
        let run = |threads, rows_of_a_call: usize| {
            let execution = Execution {
                threads,
                instructions: Instructions::Widest,
            };
            let mut in_place = gradient.clone();
            let mut gated = vec![f32::NAN; 2 * rows * columns];
            let part = rows_of_a_call * columns;
            for (x, gradient) in x.chunks(part).zip(in_place.chunks_mut(part)) {
                with(&own).backward_in_place(x, gradient, execution);
            }
            let calls = gates.chunks(2 * part).zip(gradient.chunks(part));
            for ((x, gradient), out) in calls.zip(gated.chunks_mut(2 * part)) {
                with(&both).backward_gated(x, gradient, out, execution);
            }
            (in_place, gated)
        };
        let row_by_row = run(1, 1);
        assert_eq!(row_by_row, run(1, rows), "{activation:?}");
        assert_eq!(row_by_row, run(4, rows), "{activation:?}");
    }
}

#[test]
fn rows_that_are_no_rows() {
    let activated = Activated {
        bias: &[],
        columns: 2,
        activation: Activation::Gelu,
    };
    let execution = Execution::available();
    assert_eq!(
        sentence(|| activated.backward_in_place(&[0.0; 4], &mut [0.0; 6], execution)),
        "4 numbers do not fit 6 of their gradient"
    );
    assert_eq!(
        sentence(|| activated.backward_gated(&[0.0; 8], &[0.0; 2], &mut [0.0; 8], execution)),
        "8 numbers of gate and up do not fit 2 of the gradient"
    );
}
