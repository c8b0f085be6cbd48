//! The element types of the kernels, as these tests need them.

use core::convert::identity;

use burn_attn_kernels_cpu::tiled::{Element, Real};
use half::{bf16, f16};

/// An element type with its name and its rounding.
pub trait Number: Element {
    const NAME: &'static str;
    /// The distance from 1 to the next number.
    const EPSILON: f64;
    /// The distance from 1 to the next number in the precision in which the kernels compute.
    const EPSILON_OF_REAL: f64;
    /// The largest finite number.
    const LARGEST: f64;
    /// The smallest positive number, which is subnormal.
    const SMALLEST: f64;

    fn to_f64(self) -> f64;

    /// Rounds to this type, one number at a time and not as the kernels do it.
    fn from_real(x: Self::Real) -> Self;

    /// Rounds to this type.
    fn rounded(x: f64) -> f64 {
        Self::from_real(Self::Real::from_f64(x)).to_f64()
    }

    /// Rounds to the precision in which the kernels compute this type.
    fn rounded_to_real(x: f64) -> f64 {
        Self::Real::from_f64(x).to_f64()
    }
}

macro_rules! number {
    ($number:ident, $from_real:expr, $epsilon:expr, $of_real:expr, $largest:expr, $smallest:expr) => {
        impl Number for $number {
            const NAME: &'static str = stringify!($number);
            const EPSILON: f64 = $epsilon;
            const EPSILON_OF_REAL: f64 = $of_real;
            const LARGEST: f64 = $largest;
            const SMALLEST: f64 = $smallest;

            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn from_real(x: Self::Real) -> Self {
                $from_real(x)
            }
        }
    };
}
number!(
    f32,
    identity,
    f32::EPSILON as f64,
    f32::EPSILON as f64,
    f32::MAX as f64,
    f32::from_bits(1) as f64
);
number!(
    f64,
    identity,
    f64::EPSILON,
    f64::EPSILON,
    f64::MAX,
    f64::from_bits(1)
);
number!(
    f16,
    f16::from_f32,
    1.0 / 1024.0,
    f32::EPSILON as f64,
    65504.0,
    1.0 / 16_777_216.0
);
number!(
    bf16,
    bf16::from_f32,
    1.0 / 128.0,
    f32::EPSILON as f64,
    3.389_531_389_251_535_5e38,
    f32::from_bits(1 << 16) as f64
);
