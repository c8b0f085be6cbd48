//! Linear layers of many rows.

use burn_attn_kernels_cpu::tiled::{Activated, Activation, Execution, Linear};

use crate::{
    case::coarse,
    run::{executions, reals, sentence},
};

fn numbers(stream: u64, count: usize) -> Vec<f32> {
    reals::<f32>(&coarse(stream, count))
}

/// A layer without bias and activation.
fn layer<'a>(x: &'a [f32], weight: &'a [f32], sizes: [usize; 3]) -> Linear<'a> {
    let [rows, depth, columns] = sizes;
    Linear {
        x,
        weight,
        bias: &[],
        rows,
        depth,
        columns,
        activation: Activation::Identity,
    }
}

fn run(layer: &Linear<'_>, execution: Execution) -> Vec<f32> {
    // A number of the output that is read before it is written, or never written, is NaN.
    let mut out = vec![f32::NAN; layer.rows * layer.columns];
    layer.run(&mut out, execution);
    out
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn sums_are_right() {
    let sizes = [
        // Every micro-kernel, and every remainder of rows, columns and terms.
        [1, 5, 3],
        [12, 16, 32],
        [13, 17, 33],
        [24, 256, 16],
        [97, 257, 40],
        [203, 600, 17],
        [5, 0, 7],
        [0, 3, 4],
        [3, 4, 0],
        // More than one panel.
        [13, 600, 3700],
    ];
    for [rows, depth, columns] in sizes {
        let (x, weight) = (numbers(1, rows * depth), numbers(2, depth * columns));
        let bias = numbers(3, columns);
        for bias in [&[][..], &bias] {
            let layer = Linear {
                bias,
                ..layer(&x, &weight, [rows, depth, columns])
            };
            for execution in executions(&[2]) {
                let out = run(&layer, execution);
                for (index, actual) in out.into_iter().enumerate() {
                    let (row, column) = (index / columns, index % columns);
                    let terms = (0..depth).map(|k| {
                        f64::from(x[row * depth + k]) * f64::from(weight[k * columns + column])
                    });
                    let start = f64::from(*bias.get(column).unwrap_or(&0.0));
                    let (sum, size) = terms.fold((start, start.abs()), |(sum, size), term| {
                        (sum + term, size + term.abs())
                    });
                    // Each addition rounds by at most half an epsilon of the sum so far.
                    let bound = f64::from(f32::EPSILON) * size * (1.0 + (depth as f64).sqrt());
                    assert!(
                        (f64::from(actual) - sum).abs() <= bound,
                        "rows {rows}, depth {depth}, columns {columns} at {row}, {column}: {actual} for {sum}, {execution:?}"
                    );
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn activations_are_those_of_the_pass_behind() {
    let [rows, depth, columns] = [31, 300, 45];
    let (x, weight) = (numbers(1, rows * depth), numbers(2, depth * columns));
    let bias = numbers(3, columns);
    for activation in [Activation::Relu, Activation::Gelu, Activation::Silu] {
        let plain = layer(&x, &weight, [rows, depth, columns]);
        for execution in executions(&[2]) {
            let mut expected = run(&plain, execution);
            let pass = Activated {
                bias: &bias,
                columns,
                activation,
            };
            pass.in_place(&mut expected, execution);
            let layer = Linear {
                bias: &bias,
                activation,
                ..plain
            };
            assert_eq!(run(&layer, execution), expected, "{activation:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn threads_change_no_bit() {
    let [rows, depth, columns] = [250, 300, 200];
    let (x, weight) = (numbers(1, rows * depth), numbers(2, depth * columns));
    let layer = layer(&x, &weight, [rows, depth, columns]);
    let with = |threads| {
        let execution = Execution {
            threads,
            ..Execution::sequential()
        };
        run(&layer, execution)
    };
    assert_eq!(with(1), with(2));
    assert_eq!(with(1), with(5));
}

#[test]
fn slices_that_do_not_fit() {
    let refused = |rows, bias: &[f32]| {
        let layer = Linear {
            bias,
            ..layer(&[0.0; 6], &[0.0; 6], [rows, 3, 2])
        };
        sentence(|| layer.run(&mut [0.0; 4], Execution::available()))
    };
    assert_eq!(
        refused(3, &[]),
        "x needs 9 elements for 3 rows, 3 terms and 2 columns, but has 6"
    );
    assert_eq!(
        refused(2, &[0.0]),
        "a bias of 1 numbers does not fit 2 columns"
    );
}
