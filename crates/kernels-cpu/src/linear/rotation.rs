//! Rotary positions: pairs of numbers rotated, in one pass over memory.

use crate::{
    compiled::{Compiled, Kernel},
    extent::elements,
    linear::rotary_rows::{RotaryLayout, RotaryRows},
    simd::real::Real,
    threads::parallel::{Execution, TASK, for_each},
    view::{element::Element, rows::Rows},
};

/// `first' = first · cos − second · sin` and `second' = second · cos + first · sin` for every pair of a row.
///
/// Each product and each sum is rounded, so that every instruction set gives the same bits.
///
/// ```
/// use burn_attn_kernels_cpu::tiled::{Execution, RotaryLayout, Rotation, Rows};
///
/// let x = [1.0, 2.0];
/// let rotation = Rotation::<f32> {
///     x: Rows::contiguous(&x, 1, 1, 2),
///     sizes: [1, 1, 1, 2],
///     cos: &[1.0, 0.0],
///     sin: &[0.0, 1.0],
///     pairs: 1,
///     offsets: &[1],
///     layout: RotaryLayout::HalfSplit,
///     inverse: false,
/// };
/// let mut out = [0.0; 2];
/// rotation.run(&mut out, Execution::available());
/// assert_eq!(out, [-2.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a, T: Element> {
    /// `[batch, heads, len, dim]`
    pub x: Rows<'a, T::Real>,
    /// Batch, heads, len and dim.
    pub sizes: [usize; 4],
    /// `[positions, pairs]`, contiguous.
    pub cos: &'a [T::Real],
    /// `[positions, pairs]`, contiguous.
    pub sin: &'a [T::Real],
    /// The first `2 · pairs` numbers of a row are rotated, the others copied.
    pub pairs: usize,
    /// The position of the first row: one for all batch items, or one for each.
    pub offsets: &'a [usize],
    /// Which numbers form a pair.
    pub layout: RotaryLayout,
    /// Rotates by the negative angle: the gradient of a rotation.
    pub inverse: bool,
}

impl<T: Element> Rotation<'_, T> {
    /// Writes `[batch, len, heads, dim]`, contiguous: the layout that a model's heads have before they are split.
    ///
    /// # Panics
    /// A row has fewer than `2 · pairs` numbers, there is neither one offset nor one per batch item, or a slice is too short for the sizes.
    ///
    /// # Cost
    /// `3 · batch · heads · len · 2 · pairs` operations; most of the time goes into reading and writing every number once.
    pub fn run(&self, out: &mut [T::Real], execution: Execution) {
        let [batch, heads, len, dim] = self.sizes;
        let pairs = self.pairs;
        let numbers = elements(self.sizes);
        if numbers == 0 {
            return;
        }
        assert!(
            pairs <= dim / 2,
            "{pairs} pairs do not fit into {dim} numbers"
        );
        assert!(
            self.offsets.len() == 1 || self.offsets.len() == batch,
            "{} offsets for {batch} batch items",
            self.offsets.len()
        );
        let last = self.offsets.iter().max();
        let last = last.map_or(0, |last| last.saturating_add(len));
        for (name, available, needed) in [
            (
                "x",
                self.x.available(),
                self.x.extent([batch, heads, len], dim),
            ),
            ("cos", self.cos.len(), elements([last, pairs])),
            ("sin", self.sin.len(), elements([last, pairs])),
            ("out", out.len(), numbers),
        ] {
            assert!(
                available >= needed,
                "{name} needs {needed} elements for sizes {:?}, {pairs} pairs and positions below {last}, but has {available}",
                self.sizes
            );
        }
        let row = heads * dim;
        let rows = (TASK / row).max(1);
        // A number costs as much as several operations: it comes from memory, and goes to memory that the system may have to allocate first.
        let workers = execution.workers(batch * len.div_ceil(rows), 16.0 * numbers as f64);
        let items = out[..numbers].chunks_exact_mut(len * row).enumerate();
        let tasks = items.flat_map(|(item, out)| {
            let tasks = out.chunks_mut(rows * row).enumerate();
            tasks.map(move |(task, out)| (item, task * rows, out))
        });
        for_each(
            workers,
            0,
            tasks,
            |(item, first, out), _: &mut [T::Real]| {
                let rows = RotaryRows {
                    x: self.x,
                    item,
                    first,
                    heads,
                    dim,
                    cos: self.cos,
                    sin: self.sin,
                    pairs,
                    position: first
                        + match self.offsets {
                            [offset] => *offset,
                            offsets => offsets[item],
                        },
                    layout: self.layout,
                    sign: T::Real::from_f64(if self.inverse { -1.0 } else { 1.0 }),
                    out,
                };
                T::Real::run(Kernel::Rotate(rows), execution);
            },
        );
    }
}
