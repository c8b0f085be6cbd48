//! How far a kernel may be from the oracle.

use crate::{
    case::{Case, Tensors},
    number::Number,
    plain::{Plain, plain},
    run::{How, run},
};

/// Fails unless every result of the kernels is about as near to the oracle as a plain implementation is.
///
/// The rule of the house: the largest error of a tensor is at most 2 times that of the plain implementation, 3 times for a gradient. A
/// few units in the last place are always allowed, because a plain implementation may be lucky. In f64 it always is, since the oracle
/// computes in f64 as well: there, [`assert_near`] is all there is to go by.
#[track_caller]
pub fn assert_as_good_as_plain<T: Number>(case: &Case, oracle: &Tensors, hows: &[How]) {
    let plain = of_parameters(case, plain::<T>(case));
    for &how in hows {
        if T::EPSILON == f64::EPSILON {
            assert_near::<T>(case, oracle, how);
            continue;
        }
        assert_errors::<T>(
            case,
            oracle,
            &plain,
            how,
            |name, error_of_plain, last_place| {
                let factor = if name.ends_with("gradient") { 3.0 } else { 2.0 };
                factor * error_of_plain + 4.0 * last_place
            },
        );
    }
}

/// Fails unless every result of the kernels is within some units in the last place of the oracle.
///
/// Does without a plain implementation, which may be lucky: for inputs that no one has looked at.
#[track_caller]
pub fn assert_near<T: Number>(case: &Case, oracle: &Tensors, how: How) {
    let plain = of_parameters(case, plain::<T>(case));
    let units = 8.0 * (1.0 + plain.largest_exponent);
    assert_errors::<T>(case, oracle, &plain, how, |_, _, last_place| {
        units * last_place
    });
}

fn of_parameters(case: &Case, plain: Plain) -> Plain {
    Plain {
        results: case.of_parameters(plain.results),
        magnitudes: case.of_parameters(plain.magnitudes),
        ..plain
    }
}

/// `allowed` gets the name of a tensor, the error of the plain implementation, and a unit in the last place of the tensor.
#[track_caller]
fn assert_errors<T: Number>(
    case: &Case,
    oracle: &Tensors,
    plain: &Plain,
    how: How,
    allowed: impl Fn(&str, f64, f64) -> f64,
) {
    let actual = case.of_parameters(run::<T>(case, how));
    let names = |tensors: &Tensors| tensors.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(names(&actual), names(oracle), "{}", case.name);
    for (index, (name, actual)) in actual.iter().enumerate() {
        let oracle = &oracle[index].1;
        let last_place = last_place::<T>(name, oracle, &plain.magnitudes[index].1);
        let allowed = allowed(
            name,
            largest_error(&plain.results[index].1, oracle).0,
            last_place,
        );
        let (error, at) = largest_error(actual, oracle);
        assert!(
            error <= allowed,
            "{}, {}, {how:?}: {name}[{at}] is {} instead of {}, an error of {error:e} where {allowed:e} is allowed",
            case.name,
            T::NAME,
            actual[at],
            oracle[at],
        );
    }
}

/// A unit in the last place of the terms that were summed, and of the result in half precision.
fn last_place<T: Number>(name: &str, oracle: &[f64], magnitudes: &[f64]) -> f64 {
    let largest = |data: &[f64]| {
        let sizes = data.iter().map(|x| x.abs()).filter(|x| x.is_finite());
        sizes.fold(0.0, f64::max)
    };
    let of_terms = T::EPSILON_OF_REAL * largest(magnitudes);
    let is_element = ["output", "query gradient", "key gradient", "value gradient"].contains(&name);
    if is_element && T::EPSILON > T::EPSILON_OF_REAL {
        of_terms + T::EPSILON / 2.0 * largest(oracle)
    } else {
        of_terms
    }
}

/// The largest difference and where it is; a NaN differs by infinity, and so does an infinity from anything else.
pub fn largest_error(actual: &[f64], expected: &[f64]) -> (f64, usize) {
    assert_eq!(actual.len(), expected.len());
    let errors = actual.iter().zip(expected).map(|(&a, &e)| {
        let error = (a - e).abs();
        match (a == e, error.is_nan()) {
            (true, _) => 0.0,
            (false, true) => f64::INFINITY,
            (false, false) => error,
        }
    });
    let larger = |largest: (f64, usize), (at, error)| {
        if error > largest.0 {
            (error, at)
        } else {
            largest
        }
    };
    errors.enumerate().fold((0.0, 0), larger)
}
