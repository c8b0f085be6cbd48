//! The two precisions in which kernels compute, as vectors of whatever width the machine has.

use core::{
    any::TypeId,
    fmt::Debug,
    ops::{Add, Mul, Sub},
};

use pulp::{
    Scalar512b, Simd,
    bytemuck::{self, Pod},
};

#[cfg(test)]
mod tests;

/// The most numbers that a vector of any machine holds: 64 bytes of f32.
pub(crate) const MAX_LANES: usize = 16;

/// A number that kernels compute with: f32 or f64.
///
/// Vectors come from `pulp`, which picks the instruction set at run time; every function is inlined into the caller's
/// dispatched code, so that it is compiled once per instruction set.
pub trait Real:
    Copy
    + Default
    + PartialOrd
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Pod
{
    /// Minus infinity: the score of a hidden key.
    const NEG_INFINITY: Self;
    /// The largest finite number.
    const MAX: Self;
    /// The smallest positive number that is not subnormal.
    const MIN_POSITIVE: Self;
    /// The distance from 1 to the next number.
    const EPSILON: Self;

    /// A vector register of these numbers.
    type Vector<S: Simd>: Copy + Debug;

    /// Numbers per vector.
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }

    /// Rounds to this precision.
    fn from_f64(x: f64) -> Self;
    /// Rounds to this precision, whose largest number stands for all larger ones.
    fn saturated(x: f64) -> Self {
        let most = Self::MAX.to_f64();
        Self::from_f64(x.clamp(-most, most))
    }
    /// Exact.
    fn to_f64(self) -> f64;

    /// The slice as vectors; what does not fill a vector is left out.
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    /// The slice as vectors; what does not fill a vector is left out.
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];

    /// `x` in every lane.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// `a + b`
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a − b`
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a · b`
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a / b`
    fn over<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a · b + c`, rounded once where the machine can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// The larger; which of the two if one is NaN is up to the machine.
    fn max<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The smaller; which of the two if one is NaN is up to the machine.
    fn min<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `then` where `a < b`, `otherwise` elsewhere, also where one is NaN.
    fn select_less<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        then: Self::Vector<S>,
        otherwise: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `min(max(x, low), high)`, but NaN stays NaN.
    #[inline(always)]
    fn bound<S: Simd>(
        simd: S,
        x: Self::Vector<S>,
        low: Self::Vector<S>,
        high: Self::Vector<S>,
    ) -> Self::Vector<S> {
        if S::IS_SCALAR || TypeId::of::<S>() == TypeId::of::<Scalar512b>() {
            // Rust's `min` and `max` would drop a NaN.
            let x = Self::select_less(simd, x, low, low, x);
            Self::select_less(simd, high, x, high, x)
        } else {
            // x86 returns the second operand if one is NaN; the others return NaN.
            Self::min(simd, high, Self::max(simd, low, x))
        }
    }

    /// Four vectors of structures of four numbers, as one vector for each member. The order of the structures depends on the machine.
    fn deinterleave<S: Simd>(simd: S, x: [Self::Vector<S>; 4]) -> [Self::Vector<S>; 4];
    /// The sum of all lanes.
    fn reduce_sum<S: Simd>(simd: S, x: Self::Vector<S>) -> Self;

    /// `2^min(x, 0)`: 0 from half a power of two below the smallest normal number on, NaN for NaN, and never more than 1.
    ///
    /// Relative error below 1.1e-7 (f32) and 5e-16 (f64) down to the smallest normal number.
    fn exp2_of_negative<S: Simd>(simd: S, x: Self::Vector<S>) -> Self::Vector<S>;
    /// The hyperbolic tangent, never beyond ±1: relative error below 4.1e-7 (f32) and 5e-16 (f64).
    fn tanh<S: Simd>(simd: S, x: Self::Vector<S>) -> Self::Vector<S>;
}

/// Everything that differs between the two precisions by name only.
macro_rules! operations {
    ($real:ident, $vector:ident, $as_simd:ident, $as_mut_simd:ident, $deinterleave:ident, $reduce_sum:ident, $splat:ident, $less:ident,
     $select:ident; $($name:ident($($x:ident),*) = $pulp:ident;)*) => {
        const NEG_INFINITY: Self = $real::NEG_INFINITY;
        const MAX: Self = $real::MAX;
        const MIN_POSITIVE: Self = $real::MIN_POSITIVE;
        const EPSILON: Self = $real::EPSILON;

        type Vector<S: Simd> = S::$vector;

        #[inline(always)]
        fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>] {
            S::$as_simd(slice).0
        }
        #[inline(always)]
        fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>] {
            S::$as_mut_simd(slice).0
        }
        #[inline(always)]
        fn deinterleave<S: Simd>(simd: S, x: [Self::Vector<S>; 4]) -> [Self::Vector<S>; 4] {
            simd.$deinterleave(x)
        }
        #[inline(always)]
        fn reduce_sum<S: Simd>(simd: S, x: Self::Vector<S>) -> Self {
            simd.$reduce_sum(x)
        }
        #[inline(always)]
        fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S> {
            simd.$splat(x)
        }
        #[inline(always)]
        fn select_less<S: Simd>(
            simd: S,
            a: Self::Vector<S>,
            b: Self::Vector<S>,
            then: Self::Vector<S>,
            otherwise: Self::Vector<S>,
        ) -> Self::Vector<S> {
            simd.$select(simd.$less(a, b), then, otherwise)
        }
        $(
            #[inline(always)]
            fn $name<S: Simd>(simd: S, $($x: Self::Vector<S>),*) -> Self::Vector<S> {
                simd.$pulp($($x),*)
            }
        )*
    };
}

/// `sum_k coefficients[k] · x^k` by Horner's rule.
#[inline(always)]
pub(crate) fn polynomial<R: Real, S: Simd>(
    simd: S,
    x: R::Vector<S>,
    coefficients: &[f64],
) -> R::Vector<S> {
    let mut terms = coefficients.iter().rev().map(|&c| R::from_f64(c));
    let mut sum = R::splat(simd, terms.next().unwrap_or_default());
    for term in terms {
        sum = R::mul_add(simd, sum, x, R::splat(simd, term));
    }
    sum
}

impl Real for f32 {
    operations! {
        f32, f32s, as_simd_f32s, as_mut_simd_f32s, deinterleave_shfl_f32s, reduce_sum_f32s, splat_f32s, less_than_f32s,
        select_f32s; plus(a, b) = add_f32s; minus(a, b) = sub_f32s; times(a, b) = mul_f32s; over(a, b) = div_f32s;
        max(a, b) = max_f32s; min(a, b) = min_f32s; mul_add(a, b, c) = mul_add_e_f32s;
    }

    fn from_f64(x: f64) -> Self {
        x as Self
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn exp2_of_negative<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        // A minimax polynomial of 2^r on [−1/2, 1/2], relative error 1.9e-9 before rounding.
        const COEFFICIENTS: [f64; 7] = [
            1.000_000_000_554_166_3,
            0.693_147_205_737_267_7,
            0.240_226_468_906_345_7,
            0.055_503_287_769_655_53,
            0.009_618_488_957_086_268,
            0.001_339_993_121_912_692_5,
            0.000_153_458_120_084_345_74,
        ];
        // Adding 1.5 · 2^23 rounds to an integer and leaves it in the low bits. The bias of the exponent is added with it.
        let magic = simd.splat_f32s(12_582_912.0 + 127.0);
        // At 2^−127 the biased exponent is 0, which encodes the number 0.
        let bounded = Self::bound(simd, x, simd.splat_f32s(-127.0), simd.splat_f32s(0.0));
        let shifted = simd.add_f32s(bounded, magic);
        let rest = simd.sub_f32s(bounded, simd.sub_f32s(shifted, magic));
        let power =
            simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
        let power = simd.transmute_f32s_u32s(power);
        simd.mul_f32s(polynomial::<f32, S>(simd, rest, &COEFFICIENTS), power)
    }

    #[inline(always)]
    fn tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        // x · P(x²) / Q(x²), minimax in the relative error (2.1e-8) up to the bound, where f32 has rounded to 1.
        const NUMERATOR: [f64; 5] = [
            0.999_999_979_046_985,
            0.133_797_017_545_191_2,
            0.003_494_015_248_588_613_7,
            2.058_316_458_783_143e-5,
            1.331_864_364_134_006_8e-8,
        ];
        const DENOMINATOR: [f64; 5] = [
            1.0,
            0.467_130_170_062_461_44,
            0.025_870_999_907_524_634,
            0.000_328_306_124_656_342_8,
            7.761_841_511_943_488e-7,
        ];
        let bounded = Self::bound(simd, x, simd.splat_f32s(-9.02), simd.splat_f32s(9.02));
        let square = simd.mul_f32s(bounded, bounded);
        let numerator = polynomial::<f32, S>(simd, square, &NUMERATOR);
        let denominator = polynomial::<f32, S>(simd, square, &DENOMINATOR);
        let ratio = simd.div_f32s(simd.mul_f32s(bounded, numerator), denominator);
        // The ratio rounds to as much as 1 + 2.4e-7, where the slope of a softcap would be negative.
        Self::bound(simd, ratio, simd.splat_f32s(-1.0), simd.splat_f32s(1.0))
    }
}

impl Real for f64 {
    operations! {
        f64, f64s, as_simd_f64s, as_mut_simd_f64s, deinterleave_shfl_f64s, reduce_sum_f64s, splat_f64s, less_than_f64s,
        select_f64s; plus(a, b) = add_f64s; minus(a, b) = sub_f64s; times(a, b) = mul_f64s; over(a, b) = div_f64s;
        max(a, b) = max_f64s; min(a, b) = min_f64s; mul_add(a, b, c) = mul_add_e_f64s;
    }

    fn from_f64(x: f64) -> Self {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn exp2_of_negative<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
        // Taylor's series of exp(r ln 2) on [−1/2, 1/2]: the first term left out is 4e-18.
        const LN_2: f64 = core::f64::consts::LN_2;
        const COEFFICIENTS: [f64; 14] = {
            let mut coefficients = [1.0; 14];
            let mut k = 1;
            while k < 14 {
                coefficients[k] = coefficients[k - 1] * LN_2 / k as f64;
                k += 1;
            }
            coefficients
        };
        let magic = simd.splat_f64s(6_755_399_441_055_744.0 + 1023.0);
        let bounded = Self::bound(simd, x, simd.splat_f64s(-1023.0), simd.splat_f64s(0.0));
        let shifted = simd.add_f64s(bounded, magic);
        let rest = simd.sub_f64s(bounded, simd.sub_f64s(shifted, magic));
        // pulp has no 64-bit shift; LLVM makes one of this loop.
        let mut power = simd.transmute_u64s_f64s(shifted);
        for word in bytemuck::cast_slice_mut::<_, u64>(core::slice::from_mut(&mut power)) {
            *word <<= 52;
        }
        let power = simd.transmute_f64s_u64s(power);
        simd.mul_f64s(polynomial::<f64, S>(simd, rest, &COEFFICIENTS), power)
    }

    #[inline(always)]
    fn tanh<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
        // S. Moshier's Cephes (`tanh.c`): the split at 0.625 and the coefficients of the small part.
        const NUMERATOR: [f64; 3] = [
            -1.614_687_684_417_084_5e3,
            -9.928_772_310_019_186e1,
            -9.643_991_794_250_522e-1,
        ];
        const DENOMINATOR: [f64; 4] = [
            4.844_063_053_251_255e3,
            2.235_488_390_601_004_5e3,
            1.128_116_784_916_329_3e2,
            1.0,
        ];
        let square = simd.mul_f64s(x, x);
        let ratio = simd.div_f64s(
            polynomial::<f64, S>(simd, square, &NUMERATOR),
            polynomial::<f64, S>(simd, square, &DENOMINATOR),
        );
        let small = simd.mul_add_e_f64s(simd.mul_f64s(ratio, square), x, x);

        // (1 − e) / (1 + e) with e = exp(−2|x|) never overflows.
        let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
        let absolute = simd.abs_f64s(x);
        let factor = simd.splat_f64s(-2.0 * core::f64::consts::LOG2_E);
        let e = Self::exp2_of_negative(simd, simd.mul_f64s(absolute, factor));
        let large = simd.div_f64s(simd.sub_f64s(one, e), simd.add_f64s(one, e));
        let large = Self::select_less(simd, x, zero, simd.neg_f64s(large), large);
        Self::select_less(simd, absolute, simd.splat_f64s(0.625), small, large)
    }
}
