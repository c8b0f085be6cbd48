//! How far a kernel may be from the oracle.

use crate::{
    allowed::{errors, largest_error, last_place, near, of_parameters},
    case::{Case, Tensors},
    number::Number,
    plain::plain,
    run::{How, run},
};

/// Fails unless every result of the kernels is about as near to the oracle as a plain implementation is.
///
/// The largest error of a tensor is at most 2 times that of the plain implementation, 3 times for a gradient. A few units in the last
/// place are always allowed, because a plain implementation may be lucky. In f64 it always is, since the oracle computes in f64 as
/// well, so f64 is checked with [`assert_near`] alone.
#[track_caller]
pub fn assert_as_good_as_plain<T: Number>(case: &Case, oracle: &Tensors, hows: &[How]) {
    let plain = of_parameters(case, plain::<T>(case));
    for &how in hows {
        if T::EPSILON == f64::EPSILON {
            assert!(
                assert_near::<T>(case, oracle, how),
                "{} is not checked",
                case.name
            );
            continue;
        }
        let actual = case.of_parameters(run::<T>(case, how));
        for (index, (name, actual)) in actual.iter().enumerate() {
            let (oracle, plain, sizes) = (
                &oracle[index].1,
                &plain.results[index].1,
                &plain.magnitudes[index].1,
            );
            let factor = if name.ends_with("gradient") { 3.0 } else { 2.0 };
            let allowed = factor * largest_error(plain, oracle).0
                + 4.0 * last_place::<T>(name, oracle, sizes);
            let allowed = vec![allowed; oracle.len()];
            assert_errors::<T>(case, how, name, [actual, oracle], &allowed);
        }
    }
}

/// Fails unless every result of the kernels is within some units in the last place of the oracle.
///
/// For arbitrary inputs, because it does not compare with the error of a plain implementation, which may be lucky. `false`, without a check,
/// if the inputs leave the range.
#[must_use]
#[track_caller]
pub fn assert_near<T: Number>(case: &Case, oracle: &Tensors, how: How) -> bool {
    let Some(allowed) = near::<T>(case, oracle) else {
        return false;
    };
    let actual = case.of_parameters(run::<T>(case, how));
    assert_eq!(actual.len(), oracle.len(), "{}", case.name);
    for ((name, actual), ((expected, oracle), allowed)) in
        actual.iter().zip(oracle.iter().zip(allowed))
    {
        assert_eq!(name, expected, "{}", case.name);
        assert_errors::<T>(case, how, name, [actual, oracle], &allowed);
    }
    true
}

#[track_caller]
fn assert_errors<T: Number>(
    case: &Case,
    how: How,
    name: &str,
    [actual, oracle]: [&Vec<f64>; 2],
    allowed: &[f64],
) {
    let errors = errors(actual, oracle).zip(allowed).enumerate();
    for (at, (error, &allowed)) in errors {
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
