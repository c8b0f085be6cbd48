//! How close is close.

use burn::tensor::{Tensor, TensorData};

/// The numbers of a tensor, row after row.
pub fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter::<f32>().collect()
}

/// The largest `|actual − expected| / (1 + |expected|)`: one number for absolute and relative error.
///
/// NaN where either side is not finite, so that no bound holds.
pub fn error(actual: &TensorData, expected: &TensorData) -> f32 {
    assert_eq!(actual.shape(), expected.shape());
    actual
        .iter::<f32>()
        .zip(expected.iter::<f32>())
        .map(|(actual, expected)| (actual - expected).abs() / (1.0 + expected.abs()))
        .fold(0.0, |worst: f32, error| {
            if error.is_nan() || worst.is_nan() {
                f32::NAN
            } else {
                worst.max(error)
            }
        })
}

/// Panics unless the [`error`] is at most `tolerance`.
#[track_caller]
pub fn assert_close(what: &str, actual: &TensorData, expected: &TensorData, tolerance: f32) {
    let error = error(actual, expected);
    println!("{what}: error {error:.1e}");
    assert!(
        error <= tolerance,
        "{what}: error {error:.1e} exceeds {tolerance:.1e}"
    );
}

/// As [`assert_close`], and relative to the largest number. Those below `1e-6` are sums that cancel to zero and have no scale of
/// their own.
#[track_caller]
pub fn assert_close_to_scale(
    what: &str,
    actual: &TensorData,
    expected: &TensorData,
    tolerance: f32,
) {
    assert_close(what, actual, expected, tolerance);
    let mut numbers = expected.iter::<f32>();
    if numbers.any(|number| number.abs() >= 1e-6) {
        assert_close_to_largest(what, actual, expected, tolerance.into(), 0.0);
    }
}

/// Panics unless every number is as close as `tolerance`, relative to the largest number expected: a small gradient has to be as
/// exact as a large one. Below `least` the largest counts as that: some gradients are zero but for rounding.
#[track_caller]
pub fn assert_close_to_largest(
    what: &str,
    actual: &TensorData,
    expected: &TensorData,
    tolerance: f64,
    least: f64,
) {
    assert_eq!(actual.shape(), expected.shape(), "{what}");
    let magnitudes = expected.iter::<f64>().map(f64::abs);
    let largest = magnitudes.fold(least, f64::max);
    let pairs = actual.iter::<f64>().zip(expected.iter::<f64>());
    for (actual, expected) in pairs {
        let error = (actual - expected).abs() / largest;
        assert!(
            error <= tolerance,
            "{what}: {actual} instead of {expected}, where the largest is {largest}: off by {error:.1e}, not {tolerance:.1e}"
        );
    }
}

/// Panics unless two tensors have the same shape and bits.
#[track_caller]
pub fn assert_same<const D: usize>(actual: &Tensor<D>, expected: &Tensor<D>) {
    assert_eq!(actual.dims(), expected.dims());
    let bits = |tensor| {
        numbers(tensor)
            .into_iter()
            .map(f32::to_bits)
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(actual), bits(expected));
}

/// Whether some number differs.
pub fn differs<const D: usize>(first: &Tensor<D>, second: &Tensor<D>) -> bool {
    numbers(first) != numbers(second)
}
