//! The tests' own library: what its comparisons refuse, which devices it has, and which panics it reads.

use burn::tensor::{Tensor, TensorData};
use burn_attn_tests::{
    compare::{
        assert_close, assert_close_to_largest, difference, difference_to_largest, differs, error,
    },
    devices, sentence,
};

fn data(numbers: &[f64]) -> TensorData {
    TensorData::new(numbers.to_vec(), [numbers.len()])
}

#[test]
fn what_is_not_finite_is_close_to_nothing() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    for (actual, expected) in [(nan, nan), (nan, 1.0), (1.0, nan), (infinity, 1.0)] {
        // Wherever it stands among numbers that are close.
        for at in 0..3 {
            let (mut first, mut second) = ([1.0; 3], [1.0; 3]);
            (first[at], second[at]) = (actual, expected);
            let (first_data, second_data) = (data(&first), data(&second));
            sentence(|| assert_close("close", &first_data, &second_data, f64::MAX));
            sentence(|| {
                assert_close_to_largest("largest", &first_data, &second_data, f64::MAX, 0.0)
            });
            let differences = [
                difference(&first, &second),
                difference_to_largest(&first, &second),
            ];
            assert!(differences.iter().all(|off| !off.is_finite()), "{first:?}");
        }
    }
    let alike = [f64::NEG_INFINITY, 1.0];
    assert_eq!(difference(&alike, &alike), 0.0);
    // A module has no infinities to be alike in.
    assert!(error(&data(&alike), &data(&alike)).is_nan());
}

#[test]
fn errors_have_the_scale_of_the_numbers() {
    let off = |actual: &[f64], expected: &[f64]| error(&data(actual), &data(expected));
    // A small number among large ones, and alone.
    assert_eq!(off(&[0.5, 8.0], &[0.0, 8.0]), 0.5);
    assert_eq!(off(&[0.0, 0.0625], &[0.0, 0.125]), 0.5);
    // A large number counts for what it is.
    assert_eq!(off(&[0.0, 12.0], &[0.0, 8.0]), 0.5);
    // Sums that cancel.
    assert_eq!(off(&[1e-9, 0.0], &[0.0, 1e-9]), 1e-9);
    assert_eq!(difference(&[0.5, 12.0], &[0.0, 8.0]), 4.0);
    assert_eq!(difference_to_largest(&[0.5, 12.0], &[0.0, 8.0]), 0.5);
    assert_eq!(difference_to_largest(&[0.5], &[0.25]), 0.25);
}

#[test]
fn shapes_that_differ_are_refused() {
    let [row, column] = [[1, 2], [2, 1]].map(|shape| TensorData::new(vec![1.0, 2.0], shape));
    sentence(|| assert_close("close", &row, &column, 1.0));
    sentence(|| assert_close_to_largest("largest", &row, &column, 1.0, 0.0));
    sentence(|| difference(&[1.0], &[1.0, 2.0]));
}

#[test]
fn only_finite_numbers_differ() {
    let tensor = |last: f32| Tensor::<1>::from_data([0.0, last], &devices::any());
    let (one, two) = (tensor(1.0), tensor(2.0));
    assert!(differs(&one, &two));
    assert!(!differs(&one, &one));
    for number in [f32::NAN, f32::INFINITY] {
        let odd = tensor(number);
        for [first, second] in [[&odd, &odd], [&odd, &one], [&one, &odd]] {
            assert_eq!(
                sentence(|| differs(first, second)),
                format!("the numbers to compare must be finite, got {number}")
            );
        }
    }
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn ndarray_has_no_half_precision() {
    use burn::tensor::{DType, Device};

    let cpu = |dtype| {
        let all = devices::with(dtype).into_iter();
        all.filter(devices::is_cpu).collect::<Vec<_>>()
    };
    assert_eq!(cpu(DType::F16), [Device::flex()]);
    assert_eq!(cpu(DType::F64).len(), 2);
}

#[test]
fn panics_have_sentences() {
    assert_eq!(sentence(|| panic!("as it stands")), "as it stands");
    let value = 7;
    assert_eq!(sentence(|| panic!("with {value}")), "with 7");
    assert_eq!(sentence(|| sentence(|| value)), "the call succeeded");
    let other = sentence(|| sentence(|| std::panic::panic_any(value)));
    assert_eq!(other, "the panic has no sentence");
}
