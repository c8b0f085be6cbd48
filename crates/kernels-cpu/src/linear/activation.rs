//! The activation functions of feed-forward networks, and their gradients.

use core::f32::consts::LOG2_E;

use pulp::Simd;

use crate::simd::real::{Real, polynomial};

/// The activation function of a feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x`
    Identity,
    /// `max(x, 0)`
    Relu,
    /// `max(x, 0)²`
    ReluSquared,
    /// `x · (1 + erf(x / √2)) / 2`
    Gelu,
    /// `x · (1 + tanh(√(2 / π) · (x + 0.044715 · x³))) / 2`
    GeluTanh,
    /// `x · sigmoid(1.702 · x)`
    QuickGelu,
    /// `x · sigmoid(x)`
    Silu,
    /// `QuickGelu` of `min(x, 7)`. If it is a gate, the number that it multiplies is clamped to ±7, and then 1 is added to it.
    ClampedQuickGelu,
}

impl Activation {
    /// The limit of [`ClampedQuickGelu`](Self::ClampedQuickGelu).
    pub const LIMIT: f64 = 7.0;
    /// The factor of [`QuickGelu`](Self::QuickGelu).
    pub const QUICK: f64 = 1.702;
}

const LIMIT: f32 = Activation::LIMIT as f32;

/// An [`Activation`] and its derivative.
///
/// Where a function is cut off, zeros are selected, not multiplied by 0, so that a NaN gradient does not leak.
pub(crate) trait Function {
    /// The function of `x`.
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s;
    /// `gradient` times the derivative at `x`.
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s;
    /// The factor on the gate.
    #[inline(always)]
    fn up<S: Simd>(_: S, up: S::f32s) -> S::f32s {
        up
    }
    /// `gradient` times the derivative of [`up`](Self::up).
    #[inline(always)]
    fn up_gradient<S: Simd>(_: S, gradient: S::f32s, _up: S::f32s) -> S::f32s {
        gradient
    }
}

pub(crate) struct Identity;
pub(crate) struct Relu;
pub(crate) struct ReluSquared;
pub(crate) struct Gelu;
pub(crate) struct GeluTanh;
pub(crate) struct QuickGelu;
pub(crate) struct Silu;
pub(crate) struct ClampedQuickGelu;

impl Function for Identity {
    #[inline(always)]
    fn value<S: Simd>(_: S, x: S::f32s) -> S::f32s {
        x
    }
    #[inline(always)]
    fn gradient<S: Simd>(_: S, gradient: S::f32s, _: S::f32s) -> S::f32s {
        gradient
    }
}

impl Function for Relu {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        let zero = simd.splat_f32s(0.0);
        f32::select_less(simd, x, zero, zero, loaded(simd, x))
    }
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        where_positive(simd, loaded(simd, gradient), x)
    }
}

impl Function for ReluSquared {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        let zero = simd.splat_f32s(0.0);
        let x = f32::select_less(simd, x, zero, zero, x);
        simd.mul_f32s(x, x)
    }
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        let gradient = simd.mul_f32s(gradient, simd.add_f32s(x, x));
        where_positive(simd, gradient, x)
    }
}

impl Function for Gelu {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        let factor = simd.splat_f32s(core::f32::consts::FRAC_1_SQRT_2);
        half_of_one_plus(simd, x, erf(simd, simd.mul_f32s(x, factor)))
    }
    /// The derivative is `Φ(x) + x · φ(x)`, the distribution function and the density of the normal distribution.
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        use core::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
        // Beyond 14.5 the density is below the smallest number, and ∞ · 0 is NaN.
        let x = within(simd, x, 14.5);
        let error = erf(simd, simd.mul_f32s(x, simd.splat_f32s(FRAC_1_SQRT_2)));
        let distribution = half_of_one_plus(simd, simd.splat_f32s(1.0), error);
        let square = simd.mul_f32s(x, x);
        let exponent = simd.mul_f32s(square, simd.splat_f32s(-0.5 * LOG2_E));
        let density = simd.mul_f32s(
            f32::exp2_of_negative(simd, exponent),
            simd.splat_f32s(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2),
        );
        simd.mul_f32s(gradient, simd.mul_add_e_f32s(x, density, distribution))
    }
}

impl GeluTanh {
    // Twice the factor of the formula, and the coefficient of the cube.
    const FACTOR: f64 = 2.0 * core::f64::consts::FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2;
    const CUBE: f64 = 0.044715 * Self::FACTOR;

    /// `y · log2(e)` of `(1 + tanh(y / 2)) / 2 = sigmoid(y)`, which does not cancel where the tanh is near −1, and the square of `x`.
    #[inline(always)]
    fn argument<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
        let square = simd.mul_f32s(x, x);
        let [factor, cube] = [Self::FACTOR, Self::CUBE]
            .map(|x| simd.splat_f32s((x * core::f64::consts::LOG2_E) as f32));
        let factor = simd.mul_add_e_f32s(square, cube, factor);
        (simd.mul_f32s(factor, x), square)
    }
}

impl Function for GeluTanh {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        let (y, _) = Self::argument(simd, x);
        swish(simd, x, y)
    }
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        // Beyond 10.2 the sigmoid is 0 or 1.
        let x = within(simd, x, 10.2);
        let (y, square) = Self::argument(simd, x);
        let [factor, cube] = [Self::FACTOR, 3.0 * Self::CUBE].map(|x| simd.splat_f32s(x as f32));
        let slope = simd.mul_add_e_f32s(square, cube, factor);
        let derivative = of_sigmoid(simd, y, simd.mul_f32s(x, slope));
        simd.mul_f32s(gradient, derivative)
    }
}

impl Function for QuickGelu {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        let factor = Activation::QUICK * core::f64::consts::LOG2_E;
        swish(simd, x, simd.mul_f32s(x, simd.splat_f32s(factor as f32)))
    }
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        let factor = simd.splat_f32s(Activation::QUICK as f32);
        Silu::gradient(simd, gradient, simd.mul_f32s(x, factor))
    }
}

impl Function for Silu {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        swish(simd, x, simd.mul_f32s(x, simd.splat_f32s(LOG2_E)))
    }
    /// The derivative of `x · sigmoid(factor · x)` has the same form for every factor: here `x` stands for `factor · x`.
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        // Beyond 95 the sigmoid is 0 or 1.
        let x = within(simd, x, 95.0);
        let y = simd.mul_f32s(x, simd.splat_f32s(LOG2_E));
        simd.mul_f32s(gradient, of_sigmoid(simd, y, x))
    }
}

impl Function for ClampedQuickGelu {
    #[inline(always)]
    fn value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        let limit = simd.splat_f32s(LIMIT);
        QuickGelu::value(simd, f32::select_less(simd, limit, x, limit, x))
    }
    #[inline(always)]
    fn gradient<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
        let (zero, limit) = (simd.splat_f32s(0.0), simd.splat_f32s(LIMIT));
        let gradient = QuickGelu::gradient(simd, gradient, x);
        f32::select_less(simd, limit, x, zero, gradient)
    }
    #[inline(always)]
    fn up<S: Simd>(simd: S, up: S::f32s) -> S::f32s {
        simd.add_f32s(within(simd, up, LIMIT), simd.splat_f32s(1.0))
    }
    #[inline(always)]
    fn up_gradient<S: Simd>(simd: S, gradient: S::f32s, up: S::f32s) -> S::f32s {
        let [low, zero, high] = [-LIMIT, 0.0, LIMIT].map(|x| simd.splat_f32s(x));
        let gradient = f32::select_less(simd, up, low, zero, gradient);
        f32::select_less(simd, high, up, zero, gradient)
    }
}

/// The gradient where `x` is positive or NaN, 0 elsewhere.
#[inline(always)]
fn where_positive<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
    let smallest = simd.splat_f32s(f32::from_bits(1));
    f32::select_less(simd, x, smallest, simd.splat_f32s(0.0), gradient)
}

/// `x`, with −0 as 0.
///
/// Without the addition, LLVM turns a selection that overwrites `x` into a masked store, which takes 20 cycles on Zen 3.
#[inline(always)]
fn loaded<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    simd.add_f32s(x, simd.splat_f32s(0.0))
}

/// `x` between `±limit`; NaN stays NaN.
#[inline(always)]
fn within<S: Simd>(simd: S, x: S::f32s, limit: f32) -> S::f32s {
    f32::bound(simd, x, simd.splat_f32s(-limit), simd.splat_f32s(limit))
}

/// `x · (1 + y) / 2`
#[inline(always)]
fn half_of_one_plus<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
    let half = simd.splat_f32s(0.5);
    simd.mul_f32s(x, simd.mul_add_e_f32s(y, half, half))
}

/// `x · sigmoid(y)`, from `y · log2(e)`.
#[inline(always)]
fn swish<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
    let (numerator, _, denominator) = sigmoid(simd, y);
    simd.mul_f32s(x, simd.div_f32s(numerator, denominator))
}

/// The derivative of `x · sigmoid(y)`, from `y · log2(e)`, where `slope = x · y'`: `s · (1 + slope · (1 − s))`.
#[inline(always)]
fn of_sigmoid<S: Simd>(simd: S, y: S::f32s, slope: S::f32s) -> S::f32s {
    // 1 − s without cancellation.
    let (numerator, complement, denominator) = sigmoid(simd, y);
    let s = simd.div_f32s(numerator, denominator);
    let rest = simd.div_f32s(complement, denominator);
    simd.mul_f32s(s, simd.mul_add_e_f32s(slope, rest, simd.splat_f32s(1.0)))
}

/// The numerators of `sigmoid(y)` and of `sigmoid(−y)`, and their denominator, from `y · log2(e)`.
#[inline(always)]
fn sigmoid<S: Simd>(simd: S, y: S::f32s) -> (S::f32s, S::f32s, S::f32s) {
    let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
    // With exp(−|y|), which never overflows.
    let e = f32::exp2_of_negative(simd, simd.neg_f32s(simd.abs_f32s(y)));
    let numerator = f32::select_less(simd, y, zero, e, one);
    let complement = f32::select_less(simd, y, zero, one, e);
    (numerator, complement, simd.add_f32s(one, e))
}

/// The error function, never beyond ±1: relative error below 4e-7.
#[inline(always)]
fn erf<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // x · P(x²) / Q(x²), minimax in the relative error (1.9e-8) up to the bound, where f32 has rounded to 1.
    const NUMERATOR: [f64; 6] = [
        1.128_379_145_740_915_1,
        0.190_591_860_781_631_42,
        0.052_769_048_509_621_13,
        0.003_772_470_352_758_687_8,
        0.000_284_842_056_415_121_97,
        2.046_045_480_138_368_5e-6,
    ];
    const DENOMINATOR: [f64; 6] = [
        1.0,
        0.502_240_369_362_084_9,
        0.114_181_939_835_529_18,
        0.014_983_036_165_100_563,
        0.001_163_839_121_735_308_7,
        3.804_788_611_546_258_8e-5,
    ];
    let bounded = within(simd, x, 3.925);
    let square = simd.mul_f32s(bounded, bounded);
    let numerator = polynomial::<f32, S>(simd, square, &NUMERATOR);
    let denominator = polynomial::<f32, S>(simd, square, &DENOMINATOR);
    let ratio = simd.div_f32s(simd.mul_f32s(bounded, numerator), denominator);
    within(simd, ratio, 1.0)
}
