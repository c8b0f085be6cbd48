//! The error bounds that the docs of [`Real`] state, over dense sweeps of the arguments.

use pulp::{Simd, WithSimd};

use crate::{
    simd::real::Real,
    tiled::{Execution, Instructions},
};

#[derive(Clone, Copy)]
enum Function {
    Exp2OfNegative,
    Tanh,
}

/// Applies the function to every number.
struct Apply<'a, R> {
    function: Function,
    numbers: &'a mut [R],
}

impl<R: Real> WithSimd for Apply<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for x in R::vectors_mut::<S>(self.numbers) {
            *x = match self.function {
                Function::Exp2OfNegative => R::exp2_of_negative(simd, *x),
                Function::Tanh => R::tanh(simd, *x),
            };
        }
    }
}

/// The function of each argument, once with every kind of vectors.
fn every<R: Real>(function: Function, arguments: &[R]) -> impl Iterator<Item = Vec<R>> {
    let all = [
        Instructions::Widest,
        Instructions::Portable,
        #[cfg(debug_assertions)]
        Instructions::Emulated512,
    ];
    all.into_iter().map(move |instructions| {
        // The widest vectors have 16 numbers; what does not fill one is left out.
        let mut numbers = arguments.to_vec();
        numbers.resize(arguments.len().next_multiple_of(16), R::default());
        let execution = Execution {
            threads: 1,
            instructions,
        };
        execution.dispatch(Apply {
            function,
            numbers: &mut numbers,
        });
        numbers.truncate(arguments.len());
        numbers
    })
}

/// Fails unless the relative error against the function of f64 is below the bound.
fn check<R: Real>(function: Function, bound: f64, arguments: impl Iterator<Item = R>) {
    let exact = match function {
        Function::Exp2OfNegative => f64::exp2,
        Function::Tanh => f64::tanh,
    };
    let arguments: Vec<R> = arguments.collect();
    for values in every(function, &arguments) {
        for (&x, value) in arguments.iter().zip(values) {
            let exact = exact(x.to_f64());
            let error = if exact == 0.0 {
                value.to_f64().abs()
            } else {
                (value.to_f64() / exact - 1.0).abs()
            };
            assert!(error < bound, "{value:?} of {x:?}, off by {error:e}");
        }
    }
}

/// Every `step`-th f32 from `first` to `last`, both of one sign, towards or away from zero.
fn floats(first: f32, last: f32, step: usize) -> impl Iterator<Item = f32> {
    (first.to_bits()..=last.to_bits())
        .step_by(step)
        .map(f32::from_bits)
}

/// `count` numbers from `first` to `last`, at irregular distances.
fn doubles(first: f64, last: f64, count: usize) -> impl Iterator<Item = f64> {
    let golden = 0.618_033_988_749_894_9;
    (0..count).map(move |at| first + (last - first) * (at as f64 * golden).fract())
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn exp2_of_f32() {
    // From −0 down to the last argument whose value is a normal number.
    check(Function::Exp2OfNegative, 1.1e-7, floats(-0.0, -126.0, 101));
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn exp2_of_f64() {
    for first in [-1022.0, -2.0] {
        let arguments = doubles(first, 0.0, 3_000_000);
        check(Function::Exp2OfNegative, 5e-16, arguments);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn tanh_of_f32() {
    check(Function::Tanh, 4.1e-7, floats(f32::MIN_POSITIVE, 20.0, 101));
    let negative = floats(-f32::MIN_POSITIVE, -20.0, 101);
    check(Function::Tanh, 4.1e-7, negative);
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn tanh_of_f64() {
    for last in [-20.0, -1.0, -1e-3, 1e-3, 1.0, 20.0] {
        check(Function::Tanh, 5e-16, doubles(0.0, last, 500_000));
    }
}

#[test]
fn the_ends_of_the_range() {
    fn check<R: Real>() {
        let number = R::from_f64;
        let [inf, nan] = [f64::INFINITY, f64::NAN].map(number);
        // Half a power of two below the smallest normal number, powers become 0.
        let last = R::MIN_POSITIVE.to_f64().log2() - 0.5;
        let arguments = [last + 0.01, last - 0.01].map(number);
        for values in every(Function::Exp2OfNegative, &arguments) {
            assert!(values[0] > number(0.0) && values[1] == number(0.0));
        }
        let arguments = [
            R::NEG_INFINITY,
            number(-1e4),
            number(0.0),
            number(1.0),
            inf,
            nan,
        ];
        for values in every(Function::Exp2OfNegative, &arguments) {
            assert_eq!(values[..5], [0.0, 0.0, 1.0, 1.0, 1.0].map(number));
            assert!(values[5].to_f64().is_nan());
        }
        let arguments = [
            R::NEG_INFINITY,
            R::default() - R::MAX,
            number(0.0),
            R::MAX,
            inf,
            nan,
        ];
        for values in every(Function::Tanh, &arguments) {
            assert_eq!(values[..5], [-1.0, -1.0, 0.0, 1.0, 1.0].map(number));
            assert!(values[5].to_f64().is_nan());
        }
    }
    check::<f32>();
    check::<f64>();
}

/// A weight is at most 1, and a tanh above 1 would make the slope of a softcap negative.
#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn values_stay_within_one() {
    fn check<R: Real>(function: Function, arguments: impl Iterator<Item = R>) {
        for values in every(function, &arguments.collect::<Vec<_>>()) {
            assert!(values.into_iter().all(|x| x <= R::from_f64(1.0)));
        }
    }
    check(Function::Tanh, floats(0.5, 100.0, 7));
    check(Function::Exp2OfNegative, floats(-1e-9, -1.0, 7));
    check(Function::Tanh, doubles(0.5, 30.0, 1_000_000));
    check(Function::Exp2OfNegative, doubles(-1.0, 0.0, 1_000_000));
}
