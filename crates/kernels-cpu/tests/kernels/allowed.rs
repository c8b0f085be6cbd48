//! How far a result may be from the oracle, whatever the input is.

use core::f64::consts::LOG2_E;

use burn_attn_kernels_cpu::tiled::Real;

use super::{
    case::{Case, Tensors, tensor},
    number::Number,
    plain::{Plain, plain},
};

/// The largest error of each number of the oracle's tensors: some units in the last place of the terms that it sums, and what the rounding of
/// the stored output changes. `None` if a sum over visible pairs leaves the range of the type, where the contract promises little.
pub fn near<T: Number>(case: &Case, oracle: &Tensors) -> Option<Vec<Vec<f64>>> {
    let plain = of_parameters(case, plain::<T>(case));
    let units = |exponent: f64| (8.0 * (1.0 + exponent)).min(f64::MAX);
    // A row has nothing to do with the numbers of another.
    let logsumexp = tensor(oracle, "logsumexp");
    let units_of_row = |row: usize| {
        let units = units(plain.exponents[row]);
        // The change of a weight is proportional to that of its score only if both are small.
        let is_small = units * T::EPSILON_OF_REAL < 0.1;
        // In units of log 2, a number beyond the range counts as the largest.
        let is_in_range = LOG2_E * logsumexp[row].abs() < T::Real::MAX.to_f64();
        if is_small && is_in_range {
            units
        } else {
            f64::INFINITY
        }
    };
    let tensors = oracle
        .iter()
        .zip(plain.magnitudes.iter().zip(&plain.inherited_errors));
    let allowed = tensors.map(
        |((name, oracle), ((of_plain, magnitudes), (_, inherited_errors)))| {
            assert_eq!(name, of_plain, "{}", case.name);
            let units_in_last_place =
                units(plain.largest_exponent) * last_place::<T>(name, oracle, magnitudes);
            let of_all = (units_in_last_place + largest(inherited_errors)).min(f64::MAX);
            let of_each = oracle.iter().zip(magnitudes).enumerate();
            let of_each = of_each.map(|(at, (&oracle, &magnitude))| {
                let last_place = |magnitude| last_place::<T>(name, &[oracle], &[magnitude]);
                let of_row = match *name {
                    "output" => units_of_row(at / case.problem.dim_v) * last_place(magnitude),
                    // The relative error of the sum is an absolute error of its logarithm.
                    "logsumexp" if units_of_row(at).is_finite() => {
                        units(0.0) * last_place(1.0 + magnitude)
                    }
                    _ => f64::INFINITY,
                };
                of_row.min(of_all)
            });
            of_each.collect()
        },
    );
    let allowed = allowed.collect();
    plain.in_range.then_some(allowed)
}

pub fn of_parameters(case: &Case, plain: Plain) -> Plain {
    Plain {
        results: case.of_parameters(plain.results),
        magnitudes: case.of_parameters(plain.magnitudes),
        inherited_errors: case.of_parameters(plain.inherited_errors),
        ..plain
    }
}

/// A unit in the last place of the terms that were summed, and of the result in half precision. What is smaller than a normal number may be 0.
pub fn last_place<T: Number>(name: &str, oracle: &[f64], magnitudes: &[f64]) -> f64 {
    let of_terms = T::EPSILON_OF_REAL * largest(magnitudes) + T::Real::MIN_POSITIVE.to_f64();
    let is_element = ["output", "query gradient", "key gradient", "value gradient"].contains(&name);
    if is_element && T::EPSILON > T::EPSILON_OF_REAL {
        of_terms + T::EPSILON / 2.0 * largest(oracle) + T::SMALLEST / 2.0
    } else {
        of_terms
    }
}

/// The largest finite magnitude.
fn largest(data: &[f64]) -> f64 {
    let sizes = data.iter().map(|x| x.abs()).filter(|x| x.is_finite());
    sizes.fold(0.0, f64::max)
}

/// The differences; a NaN differs by infinity, and so does an infinity from anything else.
pub fn errors<'a>(actual: &'a [f64], expected: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    assert_eq!(actual.len(), expected.len());
    actual.iter().zip(expected).map(|(&a, &e)| {
        let error = (a - e).abs();
        match (a == e, error.is_nan()) {
            (true, _) => 0.0,
            (false, true) => f64::INFINITY,
            (false, false) => error,
        }
    })
}

/// The largest difference and where it is.
pub fn largest_error(actual: &[f64], expected: &[f64]) -> (f64, usize) {
    let larger = |largest: (f64, usize), (at, error)| {
        if error > largest.0 {
            (error, at)
        } else {
            largest
        }
    };
    let errors = errors(actual, expected).enumerate();
    errors.fold((0.0, 0), larger)
}
