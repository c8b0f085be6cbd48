//! Whether results agree.

use cubecl::ir::{ElemType, FloatKind};

use super::{case::Case, device::F32};

/// Times this, the oracle's numbers are at most 65,504, the largest in f16, but for −1; divided by it, they are still exact in f16.
pub const LARGEST_FACTOR: f64 = 65_536.0;

/// Fails unless the numbers agree within the tolerance of their type, relative to the largest of all and to four times the largest of the row.
/// First numbers of rows that the case makes so much larger or smaller are compared apart, in a unit of their own.
pub fn compare(case: &Case, name: &str, row: usize, expected: &[f64], actual: &[f64]) {
    let unit = match name {
        "output" | "query" if case.largest => LARGEST_FACTOR,
        "key" | "value" if case.largest => 1.0 / LARGEST_FACTOR,
        _ => return compare_in(1.0, case, name, row, [expected, actual]),
    };
    let first =
        |numbers: &[f64]| -> Vec<f64> { numbers.chunks(row).map(|row| row[0] / unit).collect() };
    let others = |numbers: &[f64]| -> Vec<f64> {
        numbers
            .chunks(row)
            .flat_map(|row| row[1..].to_vec())
            .collect()
    };
    let firsts = [&*first(expected), &first(actual)];
    compare_in(unit, case, name, firsts[0].len(), firsts);
    compare_in(
        1.0,
        case,
        name,
        row - 1,
        [&others(expected), &others(actual)],
    );
}

/// Compares numbers that are counted in `unit`.
fn compare_in(unit: f64, case: &Case, name: &str, row: usize, [expected, actual]: [&[f64]; 2]) {
    assert_eq!(expected.len(), actual.len(), "{name} of {case:?}");
    let largest_of = |numbers: &[f64], least: f64| {
        let finite = numbers.iter().filter(|number| number.is_finite());
        finite.fold(least, |largest, number| largest.max(number.abs()))
    };
    // Sums of thousands of products that cancel are no more exact than their terms.
    let least = 0.05 * case.upstream.min(1.0);
    let of_all = largest_of(expected, least);
    // Whatever the type of the tensors, these are in f32, and depend on no number that was rounded to that type.
    let elem = match name {
        "logsumexp" | "bias" | "slopes" | "sinks" => F32,
        _ => case.elem,
    };
    let rows = expected.chunks(row).zip(actual.chunks(row));
    for (at, (expected, actual)) in rows.enumerate() {
        // A row may be smaller than the terms that it sums: four times its largest number counts.
        let largest = of_all.min(4.0 * largest_of(expected, least));
        let tolerance = largest * tolerance(elem) + least_step(elem) / unit;
        let mut pairs = expected.iter().zip(actual);
        let differ = pairs.position(|(expected, actual)| {
            let both_nan = expected.is_nan() && actual.is_nan();
            !(both_nan || expected == actual || (expected - actual).abs() <= tolerance)
        });
        if let Some(column) = differ {
            let (expected, actual) = (expected[column], actual[column]);
            panic!("{name}[{at}][{column}] is {actual}, not {expected}, of {case:?}");
        }
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

/// Half the distance between neighbouring subnormal numbers of a type.
fn least_step(elem: ElemType) -> f64 {
    match elem {
        ElemType::Float(FloatKind::F16) => 2f64.powi(-25),
        _ => 0.0,
    }
}
