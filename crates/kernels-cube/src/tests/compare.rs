//! When results agree.

use cubecl::ir::{ElemType, FloatKind};

use super::case::Case;

/// Fails unless the numbers agree within the tolerance of the case's type.
pub fn compare(case: &Case, name: &str, expected: &[f64], actual: &[f64]) {
    assert_eq!(expected.len(), actual.len(), "{name} of {case:?}");
    let finite = expected.iter().filter(|number| number.is_finite());
    // Sums of thousands of products that cancel are no more exact than their terms.
    let least = 0.05 * case.upstream.min(1.0);
    let largest = finite.fold(least, |largest, number| largest.max(number.abs()));
    let tolerance = largest * tolerance(case.elem) + least_step(case.elem);
    for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        let both_nan = expected.is_nan() && actual.is_nan();
        let same = both_nan || expected == actual || (expected - actual).abs() <= tolerance;
        assert!(
            same,
            "{name}[{at}] is {actual}, not {expected}, of {case:?}"
        );
    }
}

/// A result is rounded to its type, and an output that was rounded is read again in the backward pass.
fn tolerance(elem: ElemType) -> f64 {
    match elem {
        ElemType::Float(FloatKind::F16) => 4e-3,
        ElemType::Float(FloatKind::BF16) => 3e-2,
        _ => 2e-5,
    }
}

/// Half the distance of the smallest numbers of a type.
fn least_step(elem: ElemType) -> f64 {
    match elem {
        ElemType::Float(FloatKind::F16) => 2f64.powi(-25),
        _ => 0.0,
    }
}
