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
    type Real: Real + Compiled + Element<Real = Self::Real>;

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

macro_rules! element {
    ($element:ident, $real:ident, $as_real:expr, $to_reals:expr, $from_reals:expr) => {
        impl Element for $element {
            type Real = $real;
            #[inline(always)]
            fn as_real(slice: &[Self]) -> Option<&[$real]> {
                $as_real(slice)
            }
            fn to_reals(from: &[Self], to: &mut [$real]) {
                assert_eq!(from.len(), to.len());
                $to_reals(from, to);
            }
            fn from_reals(from: &[$real], to: &mut [Self]) {
                assert_eq!(from.len(), to.len());
                $from_reals(from, to);
            }
        }
    };
}
element!(f32, f32, Some, copy, copy);
element!(f64, f64, Some, copy, copy);
// Eight at a time, with an instruction whose support is checked once per slice, not once per number.
element!(
    f16,
    f32,
    |_| None,
    HalfFloatSliceExt::convert_to_f32_slice,
    |from: &[f32], to: &mut [f16]| to.convert_from_f32_slice(from)
);
// bf16 is converted by integer operations, which the compiler vectorises.
element!(
    bf16,
    f32,
    |_| None,
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

fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    to.copy_from_slice(from);
}
