//! The types in which tensors lie in memory.

use half::{bf16, f16};

use super::{compiled::Compiled, kernel::real::Real};

/// An element of query, key, value and output. Half precision is computed in f32.
pub trait Element: Copy + Default + Send + Sync + 'static {
    /// The precision of the computation, and of the logsumexp.
    type Real: Real + Compiled;

    /// The slice itself, if it is already in the precision of the computation.
    fn as_real(slice: &[Self]) -> Option<&[Self::Real]>;
    /// Exact.
    fn to_real(self) -> Self::Real;
    /// Rounds to the nearest.
    fn from_real(x: Self::Real) -> Self;
}

macro_rules! full {
    ($element:ident) => {
        impl Element for $element {
            type Real = Self;
            #[inline(always)]
            fn as_real(slice: &[Self]) -> Option<&[Self]> {
                Some(slice)
            }
            #[inline(always)]
            fn to_real(self) -> Self {
                self
            }
            #[inline(always)]
            fn from_real(x: Self) -> Self {
                x
            }
        }
    };
}
full!(f32);
full!(f64);

macro_rules! half {
    ($element:ident) => {
        impl Element for $element {
            type Real = f32;
            #[inline(always)]
            fn as_real(_: &[Self]) -> Option<&[f32]> {
                None
            }
            #[inline(always)]
            fn to_real(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn from_real(x: f32) -> Self {
                Self::from_f32(x)
            }
        }
    };
}
half!(f16);
half!(bf16);
