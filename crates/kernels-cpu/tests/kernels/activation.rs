//! The activation between the linear layers of a feed-forward network, against the formulas in f64.

use burn_attn_kernels_cpu::tiled::{Activated, Activation, Execution, Instructions};

use crate::run::{executions, sentence};

pub const ALL: [Activation; 8] = [
    Activation::Identity,
    Activation::Relu,
    Activation::ReluSquared,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::QuickGelu,
    Activation::Silu,
    Activation::ClampedQuickGelu,
];

/// The numbers of threads to run on.
pub const THREADS: &[usize] = &[1, 3];

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The `y` of an activation that is `x · sigmoid(y)`.
fn argument(activation: Activation, x: f64) -> Option<f64> {
    let factor = (8.0 / std::f64::consts::PI).sqrt();
    match activation {
        // (1 + tanh(y / 2)) / 2 = sigmoid(y)
        Activation::GeluTanh => Some(factor * (x + 0.044715 * x.powi(3))),
        Activation::QuickGelu => Some(1.702 * x),
        Activation::Silu => Some(x),
        _ => None,
    }
}

/// The formula.
pub fn exact(activation: Activation, x: f64) -> f64 {
    if let Some(y) = argument(activation, x) {
        return x * sigmoid(y);
    }
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::ReluSquared => x.max(0.0).powi(2),
        Activation::Gelu => x * (1.0 + libm::erf(x / 2f64.sqrt())) / 2.0,
        _ => exact(Activation::QuickGelu, x.min(7.0)),
    }
}

/// The factor on a gate.
pub fn other(activation: Activation, up: f64) -> f64 {
    match activation {
        Activation::ClampedQuickGelu => up.clamp(-7.0, 7.0) + 1.0,
        _ => up,
    }
}

/// The largest error: a few roundings of the factor on `x`, which is at most 1, and for a sigmoid also of its argument: relative to the result.
fn bound(activation: Activation, x: f64) -> f64 {
    let of_factor = 4.5e-7 * x.abs().max(x * x * f64::from(u8::from(x > 0.0)));
    let relative = match argument(activation, x) {
        Some(y) => (2.0 + 2.0 * y.abs().min(90.0)) * 1.2e-7 * exact(activation, x).abs(),
        None => f64::INFINITY,
    };
    of_factor.min(relative) + 1e-37
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn every_number() {
    // Every 997th f32 of either sign up to 30.
    let numbers = (0..=30f32.to_bits()).step_by(997).map(f32::from_bits);
    let numbers: Vec<f32> = numbers.flat_map(|x| [x, -x]).collect();
    for activation in ALL {
        let activated = Activated {
            bias: &[],
            columns: 1,
            activation,
        };
        let mut largest = 0.0;
        for execution in executions(THREADS) {
            let mut actual = numbers.clone();
            activated.in_place(&mut actual, execution);
            for (&x, actual) in numbers.iter().zip(actual) {
                let x = f64::from(x);
                let error = (f64::from(actual) - exact(activation, x)).abs();
                assert!(
                    error <= bound(activation, x),
                    "{activation:?} of {x}: {actual}, off by {error:e}, {execution:?}"
                );
                largest = f64::max(largest, error / bound(activation, x));
            }
        }
        println!("{activation:?}: {largest:.2} of the bound");
    }
}

/// Multiples of an eighth between −4 and 4.
pub fn eighths(seed: usize, count: usize) -> Vec<f32> {
    let number = |index: usize| ((index * 37 + seed * 11) % 65) as f32 / 8.0 - 4.0;
    (0..count).map(number).collect()
}

/// Calls `check` for every function, with and without a bias, for several sizes, and for every execution. It gets the function for plain rows, the one
/// for rows of gate and up, whose bias is twice as long, and the number of rows.
pub fn for_every_size(check: impl Fn([Activated<'_>; 2], usize, Execution)) {
    for activation in ALL {
        for (rows, columns) in [(0, 3), (1, 1), (3, 7), (2, 8), (5, 17), (2, 67)] {
            let [own, both] = [1, 2].map(|parts| eighths(3, parts * columns));
            for biases in [[&[][..]; 2], [&own[..], &both[..]]] {
                let calls = biases.map(|bias| Activated {
                    bias,
                    columns,
                    activation,
                });
                for execution in executions(THREADS) {
                    check(calls, rows, execution);
                }
            }
        }
    }
}

/// What the bias adds to the numbers of a column.
pub fn added(call: &Activated<'_>, column: usize) -> f64 {
    f64::from(*call.bias.get(column).unwrap_or(&0.0))
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
        let mut actual = x.clone();
        own.in_place(&mut actual, execution);
        for (index, (&x, actual)) in x.iter().zip(actual).enumerate() {
            let x = f64::from(x) + added(&own, index % columns);
            let error = f64::from(actual) - exact(activation, x);
            assert!(
                error.abs() <= bound(activation, x),
                "{activation:?} of {x}: {actual}"
            );
        }

        let mut actual = vec![f32::NAN; rows * columns];
        both.gated(&gates, &mut actual, execution);
        for (index, actual) in actual.into_iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let number = |at: usize| f64::from(gates[row * 2 * columns + at]) + added(&both, at);
            let (gate, up) = (number(column), other(activation, number(columns + column)));
            let error = f64::from(actual) - exact(activation, gate) * up;
            let bound = bound(activation, gate) * up.abs() + 1.2e-7 * f64::from(actual).abs();
            assert!(
                error.abs() <= bound,
                "{activation:?} of {gate}, {up}: {actual}"
            );
        }
    });
}

#[test]
fn what_is_no_number_stays_so() {
    for activation in ALL {
        let activated = Activated {
            bias: &[],
            columns: 9,
            activation,
        };
        for execution in executions(THREADS) {
            let mut x = [1.0f32; 9];
            (x[2], x[8]) = (f32::NAN, f32::NAN);
            activated.in_place(&mut x, execution);
            let nan: Vec<bool> = x.iter().map(|x| x.is_nan()).collect();
            let expected: Vec<bool> = (0..9).map(|at| at == 2 || at == 8).collect();
            assert_eq!(nan, expected, "{activation:?}, {execution:?}");
            let mut x = [f32::INFINITY; 9];
            activated.in_place(&mut x, execution);
            let limit = exact(activation, f64::INFINITY) as f32;
            assert!(
                x.iter().all(|&x| x == limit || (x - limit).abs() < 1e-5),
                "{activation:?}, {execution:?}: {x:?} for {limit}"
            );
        }
    }
}

#[test]
fn the_largest_numbers_have_the_limits() {
    for activation in ALL {
        let activated = Activated {
            bias: &[],
            columns: 1,
            activation,
        };
        let numbers = [50.0, 1e3, 1e6, 1e20, f32::MAX].into_iter();
        let numbers: Vec<f32> = numbers.flat_map(|x| [x, -x]).collect();
        for execution in executions(THREADS) {
            let mut actual = numbers.clone();
            activated.in_place(&mut actual, execution);
            for (&x, actual) in numbers.iter().zip(actual) {
                let expected = exact(activation, f64::from(x)) as f32;
                // The clamped function is rounded at 7, and a sigmoid of −50 is not 0 yet.
                let near = (f64::from(actual) - f64::from(expected)).abs() <= 1e-18
                    || activation == Activation::ClampedQuickGelu
                        && x > 0.0
                        && (actual - expected).abs() < 1e-5;
                assert!(
                    actual == expected || near,
                    "{activation:?} of {x}: {actual} for {expected}, {execution:?}"
                );
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn threads_change_no_bit() {
    let x = eighths(1, 1 << 18);
    for activation in ALL {
        let activated = Activated {
            bias: &eighths(2, 1 << 7),
            columns: 1 << 7,
            activation,
        };
        let run = |threads| {
            let execution = Execution {
                threads,
                instructions: Instructions::Widest,
            };
            let mut x = x.clone();
            activated.in_place(&mut x, execution);
            x
        };
        assert_eq!(run(1), run(4), "{activation:?}");
    }
}

#[test]
fn rows_that_are_no_rows() {
    let refused = |bias: &[f32], columns, numbers, gated| {
        let activated = Activated {
            bias,
            columns,
            activation: Activation::Gelu,
        };
        let (mut x, execution) = (vec![0.0; numbers], Execution::available());
        sentence(|| match gated {
            true => activated.gated(&x, &mut [0.0; 4], execution),
            false => activated.in_place(&mut x, execution),
        })
    };
    assert_eq!(refused(&[], 3, 4, false), "4 numbers do not make rows of 3");
    assert_eq!(refused(&[], 0, 4, false), "4 numbers do not make rows of 0");
    assert_eq!(
        refused(&[0.0; 3], 2, 4, false),
        "a bias of 3 numbers does not fit rows of 2"
    );
    assert_eq!(
        refused(&[0.0; 2], 2, 8, true),
        "a bias of 2 numbers does not fit rows of 4"
    );
    assert_eq!(
        refused(&[], 2, 9, true),
        "9 numbers of gate and up do not fit 4 of the output"
    );
}
