//! The numbers that functions compute with.

use core::ops::{Add, Div, Mul, Neg, Sub};

use crate::{math, simd::real::Real};

/// A number that a function of scores computes with: f32 or f64.
///
/// Sums, products and comparisons are compiled to vectors. The other functions are computed one number at a time.
pub trait Number:
    Real
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// An index or a distance.
    fn from_i32(x: i32) -> Self;

    /// A constant.
    fn constant(x: f64) -> Self {
        Self::from_f64(x)
    }

    /// The magnitude.
    fn abs(self) -> Self {
        if self < Self::default() { -self } else { self }
    }

    /// The exponential.
    fn exp(self) -> Self {
        Self::from_f64(math::exp(self.to_f64()))
    }

    /// The natural logarithm.
    fn ln(self) -> Self {
        Self::from_f64(math::ln(self.to_f64()))
    }

    /// The square root.
    fn sqrt(self) -> Self {
        Self::from_f64(math::sqrt(self.to_f64()))
    }

    /// The hyperbolic tangent.
    fn tanh(self) -> Self {
        Self::from_f64(math::tanh(self.to_f64()))
    }
}

impl Number for f32 {
    #[inline]
    fn from_i32(x: i32) -> Self {
        x as f32
    }
}

impl Number for f64 {
    #[inline]
    fn from_i32(x: i32) -> Self {
        x.into()
    }
}
