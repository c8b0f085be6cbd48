//! Differences between numbers, and tolerances.

use burn::tensor::{Tensor, TensorData};

/// The numbers of a tensor, row after row.
pub fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter::<f32>().collect()
}

/// The same in f64, which holds those of every precision.
pub fn numbers_f64<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.to_data().iter::<f64>().collect()
}

/// The largest of some errors, and NaN if one of them is NaN, so that no bound holds.
fn largest(errors: impl Iterator<Item = f64>) -> f64 {
    errors.fold(0.0, |largest: f64, error| {
        if largest.is_nan() || error <= largest {
            largest
        } else {
            error
        }
    })
}

/// The largest finite magnitude, or `least` where that is larger.
fn magnitude(numbers: impl Iterator<Item = f64>, least: f64) -> f64 {
    let finite = numbers.filter(|number| number.is_finite());
    finite.fold(least, |largest, number| largest.max(number.abs()))
}

/// The largest `|actual − expected|`. Equal infinities have no difference; ∞ or NaN where anything else is not finite.
#[track_caller]
pub fn difference(actual: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(actual.len(), expected.len());
    largest(actual.iter().zip(expected).map(|(actual, expected)| {
        if actual == expected {
            0.0
        } else {
            (actual - expected).abs()
        }
    }))
}

/// The [`difference`] relative to the largest number expected, or to 1 where that is larger.
#[track_caller]
pub fn difference_to_largest(actual: &[f64], expected: &[f64]) -> f64 {
    difference(actual, expected) / magnitude(expected.iter().copied(), 1.0)
}

/// Panics unless the [`difference_to_largest`] is at most `tolerance`.
#[track_caller]
pub fn assert_near(what: &str, actual: &[f64], expected: &[f64], tolerance: f64) {
    let off = difference_to_largest(actual, expected);
    assert!(off <= tolerance, "{what} is off by {off:e}");
}

/// The largest `|actual − expected|`, relative to `1 + |expected|` or to the largest number expected, whichever is smaller: small
/// numbers are as exact as large ones, where they are not sums that cancel.
///
/// Where no number is above 1e-6 all of them are such sums, and the error is relative to `1 + |expected|`. ∞ or NaN where either side is not finite.
#[track_caller]
pub fn error(actual: &TensorData, expected: &TensorData) -> f64 {
    assert_eq!(actual.shape(), expected.shape());
    let largest_number = match magnitude(expected.iter::<f64>(), 0.0) {
        number if number >= 1e-6 => number,
        _ => f64::INFINITY,
    };
    let pairs = actual.iter::<f64>().zip(expected.iter::<f64>());
    largest(pairs.map(|(actual, expected)| {
        (actual - expected).abs() / largest_number.min(1.0 + expected.abs())
    }))
}

/// Panics unless the [`error`] is at most `tolerance`.
#[track_caller]
pub fn assert_close(what: &str, actual: &TensorData, expected: &TensorData, tolerance: f64) {
    let error = error(actual, expected);
    println!("{what}: error {error:.1e}");
    assert!(
        error <= tolerance,
        "{what}: error {error:.1e} exceeds {tolerance:.1e}"
    );
}

/// Panics unless every number is as close as `tolerance`, relative to the largest number expected, or to `least` where that is
/// larger: some gradients are zero but for rounding.
#[track_caller]
pub fn assert_close_to_largest(
    what: &str,
    actual: &TensorData,
    expected: &TensorData,
    tolerance: f64,
    least: f64,
) {
    assert_eq!(actual.shape(), expected.shape(), "{what}");
    let largest = magnitude(expected.iter::<f64>(), least);
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
///
/// Panics unless all of them are finite: NaN differs from itself.
#[track_caller]
pub fn differs<const D: usize>(first: &Tensor<D>, second: &Tensor<D>) -> bool {
    let [first, second] = [first, second].map(numbers);
    let mut all = first.iter().chain(&second);
    if let Some(number) = all.find(|number| !number.is_finite()) {
        panic!("the numbers to compare must be finite, got {number}");
    }
    first != second
}
