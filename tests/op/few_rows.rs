//! `linear` of 1 to 17 rows, one more than its kernel takes, in every memory layout, against the product in f64.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::ops::linear;
use burn_attn_tests::{
    compare::{assert_near, numbers_f64},
    devices,
    numbers::uniform_f64,
};

use crate::{case::tensor, option_tensors::gradient};

/// `[depth, columns]`: as large as the kernel wants them, and larger; a power of two, and not.
const SIZES: [[usize; 2]; 4] = [[64, 64], [64, 128], [127, 67], [61, 193]];
/// The kernel takes up to 16 rows.
const ROWS: [usize; 8] = [1, 2, 3, 5, 8, 13, 16, 17];

const PRECISIONS: [(DType, f64); 2] = [
    (DType::F32, 16.0 * f32::EPSILON as f64),
    (DType::F64, 1e-14),
];

/// A matrix that lies somewhere in a larger one, or the other way round.
type View = (&'static str, fn(Tensor<2>) -> Tensor<2>);

/// Each is given a matrix with a margin of 3 rows and columns on every side.
const VIEWS: [View; 5] = [
    ("a copy", |x| {
        let inner = inner(x);
        Tensor::from_data(inner.to_data(), (&inner.device(), inner.dtype()))
    }),
    ("rows of a longer matrix", |x| {
        let [rows, columns] = x.dims();
        let whole = x.slice([0..rows, 3..columns - 3]);
        // Contiguous again, so that only its start is somewhere else.
        let whole = Tensor::<2>::from_data(whole.to_data(), (&whole.device(), whole.dtype()));
        whole.narrow(0, 3, rows - 6)
    }),
    ("columns of a wider matrix", |x| {
        let [rows, columns] = x.dims();
        let wide = x.slice([3..rows - 3, 0..columns]);
        let wide = Tensor::<2>::from_data(wide.to_data(), (&wide.device(), wide.dtype()));
        wide.narrow(1, 3, columns - 6)
    }),
    ("part of a larger matrix", inner),
    ("transposed", |x| {
        let turned = inner(x).transpose();
        Tensor::<2>::from_data(turned.to_data(), (&turned.device(), turned.dtype())).transpose()
    }),
];

fn inner(x: Tensor<2>) -> Tensor<2> {
    let [rows, columns] = x.dims();
    x.slice([3..rows - 3, 3..columns - 3])
}

/// A matrix that is seen through a view.
struct Matrix {
    /// With its margin.
    around: Vec<f64>,
    shape: [usize; 2],
}

impl Matrix {
    fn new(seed: u64, [rows, columns]: [usize; 2]) -> Self {
        Self {
            around: uniform_f64(seed, (rows + 6) * (columns + 6)),
            shape: [rows, columns],
        }
    }

    fn through(&self, (_, view): View, device: &Device, dtype: DType) -> Tensor<2> {
        let [rows, columns] = self.shape;
        let around = tensor(&self.around, [rows + 6, columns + 6], device, dtype);
        let matrix = view(around);
        assert_eq!(matrix.dims(), self.shape);
        matrix
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.around[(row + 3) * (self.shape[1] + 6) + column + 3]
    }
}

/// `x · weight + bias`.
fn product(x: &Matrix, weight: &Matrix, bias: Option<&[f64]>) -> Vec<f64> {
    let ([rows, depth], [_, columns]) = (x.shape, weight.shape);
    let element = |row, column| {
        let product: f64 = (0..depth)
            .map(|k| x.at(row, k) * weight.at(k, column))
            .sum();
        product + bias.map_or(0.0, |bias| bias[column])
    };
    (0..rows * columns)
        .map(|at| element(at / columns, at % columns))
        .collect()
}

#[test]
fn a_few_rows_times_a_matrix_wherever_it_lies() {
    for (dtype, tolerance) in PRECISIONS {
        for device in devices::with(dtype) {
            // Elsewhere than on the CPU it is Burn's product: where samples are enough, each view of both is seen once.
            let is_sampled = devices::is_sampled(&device);
            let (sizes, rows) = match is_sampled {
                true => (&SIZES[2..3], &ROWS[3..4]),
                false => (&SIZES[..], &ROWS[..]),
            };
            for &[depth, columns] in sizes {
                for &rows in rows {
                    let x = Matrix::new(1, [rows, depth]);
                    let weight = Matrix::new(2, [depth, columns]);
                    let expected = product(&x, &weight, None);
                    for (view, of_x) in VIEWS.into_iter().enumerate() {
                        for (of_other, of_weight) in VIEWS.into_iter().enumerate() {
                            if is_sampled && of_other != (view + 2) % VIEWS.len() {
                                continue;
                            }
                            let actual = linear(
                                x.through(of_x, &device, dtype),
                                weight.through(of_weight, &device, dtype),
                                None,
                            );
                            assert_eq!(actual.dims(), [rows, columns]);
                            let what = format!(
                                "{rows} rows ({}) times {depth} × {columns} ({}) on {device:?} in {dtype:?}",
                                of_x.0, of_weight.0
                            );
                            assert_near(&what, &numbers_f64(&actual), &expected, tolerance);
                        }
                    }
                }
            }
        }
    }
}

/// Training takes Burn's product, whose gradients reach the matrix through its view.
#[test]
fn gradients_of_a_few_rows() {
    let [depth, columns] = [64, 128];
    for (dtype, tolerance) in PRECISIONS {
        for device in devices::with(dtype) {
            let numbers_of_rows = match devices::is_sampled(&device) {
                true => &[5][..],
                false => &[1, 5],
            };
            let device = device.autodiff();
            for &rows in numbers_of_rows {
                let x = Matrix::new(1, [rows, depth]);
                let weight = Matrix::new(2, [depth, columns]);
                let upstream = Matrix::new(3, [rows, columns]);
                let bias = uniform_f64(4, columns);
                for view in VIEWS {
                    let of_x = x.through(view, &device, dtype).require_grad();
                    let of_weight = weight.through(view, &device, dtype).require_grad();
                    let of_bias = tensor(&bias, [columns], &device, dtype).require_grad();
                    let output = linear(of_x.clone(), of_weight.clone(), Some(of_bias.clone()));
                    let loss = output.clone() * upstream.through(VIEWS[0], &device, dtype);
                    let gradients = loss.sum().backward();

                    let sum = |count: usize, term: &dyn Fn(usize) -> f64| -> f64 {
                        (0..count).map(term).sum()
                    };
                    let each =
                        |[rows, columns]: [usize; 2], number: &dyn Fn(usize, usize) -> f64| {
                            let at = 0..rows * columns;
                            at.map(|at| number(at / columns, at % columns))
                                .collect::<Vec<f64>>()
                        };
                    let expected = [
                        (
                            "output",
                            product(&x, &weight, Some(&bias)),
                            numbers_f64(&output),
                        ),
                        (
                            "gradient of x",
                            each(x.shape, &|row, k| {
                                sum(columns, &|c| upstream.at(row, c) * weight.at(k, c))
                            }),
                            gradient(&of_x, &gradients),
                        ),
                        (
                            "gradient of the weight",
                            each(weight.shape, &|k, c| {
                                sum(rows, &|row| x.at(row, k) * upstream.at(row, c))
                            }),
                            gradient(&of_weight, &gradients),
                        ),
                        (
                            "gradient of the bias",
                            each([1, columns], &|_, c| sum(rows, &|row| upstream.at(row, c))),
                            gradient(&of_bias, &gradients),
                        ),
                    ];
                    for (name, expected, actual) in expected {
                        let what = format!("{name}, {rows} rows ({}) on {device:?}", view.0);
                        assert_near(&what, &actual, &expected, tolerance);
                    }
                }
            }
        }
    }
}
