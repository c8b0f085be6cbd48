//! The element types of tensors in memory.

use core::ops::Range;

use half::{bf16, f16, slice::HalfFloatSliceExt};

use crate::{
    compiled::Compiled,
    simd::real::Real,
    view::rows::{Block, Head},
};

/// An element type of query, key, value and output. Half precision is computed in f32.
pub trait Element: Copy + Default + Send + Sync + 'static {
    /// The precision of the computation, and of the logsumexp.
    type Real: Real + Compiled;

    /// The slice itself, if it is already in the precision of the computation.
    fn as_real(slice: &[Self]) -> Option<&[Self::Real]>;
    /// The same numbers in the precision of the computation: exact.
    ///
    /// # Panics
    /// The lengths differ.
    fn to_reals(from: &[Self], to: &mut [Self::Real]);
    /// Rounds each number to the nearest element.
    ///
    /// # Panics
    /// The lengths differ.
    fn from_reals(from: &[Self::Real], to: &mut [Self]);
}

impl<T: Element> Head<T::Real> for Block<'_, T> {
    fn in_place(&self, row: usize) -> Option<Block<'_, T::Real>> {
        let data = T::as_real(self.after(row).data)?;
        let stride = self.stride;
        Some(Block { data, stride })
    }

    fn copy(&self, rows: Range<usize>, dim: usize, padded: usize, to: &mut [T::Real]) {
        for (row, to) in rows.zip(to.chunks_exact_mut(padded)) {
            T::to_reals(&self.after(row).data[..dim], &mut to[..dim]);
        }
    }
}

macro_rules! full {
    ($element:ident) => {
        impl Element for $element {
            type Real = Self;
            #[inline(always)]
            fn as_real(slice: &[Self]) -> Option<&[Self]> {
                Some(slice)
            }
            fn to_reals(from: &[Self], to: &mut [Self]) {
                to.copy_from_slice(from);
            }
            fn from_reals(from: &[Self], to: &mut [Self]) {
                to.copy_from_slice(from);
            }
        }
    };
}
full!(f32);
full!(f64);

macro_rules! half {
    ($element:ident, $to_reals:expr, $from_reals:expr) => {
        impl Element for $element {
            type Real = f32;
            #[inline(always)]
            fn as_real(_: &[Self]) -> Option<&[f32]> {
                None
            }
            fn to_reals(from: &[Self], to: &mut [f32]) {
                assert_eq!(from.len(), to.len());
                $to_reals(from, to);
            }
            fn from_reals(from: &[f32], to: &mut [Self]) {
                assert_eq!(from.len(), to.len());
                $from_reals(from, to);
            }
        }
    };
}
// Eight at a time, with an instruction whose support is checked once per slice, not once per number.
half!(
    f16,
    HalfFloatSliceExt::convert_to_f32_slice,
    |from: &[f32], to: &mut [f16]| to.convert_from_f32_slice(from)
);
// Shifts, which the compiler vectorises.
half!(
    bf16,
    |from: &[bf16], to: &mut [f32]| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.to_f32();
        }
    },
    |from: &[f32], to: &mut [bf16]| {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bf16::from_f32(from);
        }
    }
);
