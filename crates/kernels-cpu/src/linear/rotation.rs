//! Rotary positions: pairs of numbers rotated, in one pass over memory.

use pulp::{Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::{
    compiled::{Compiled, Kernel},
    extent::elements,
    simd::real::Real,
    threads::parallel::{Execution, TASK, for_each},
    view::{element::Element, rows::Rows},
};

/// Which two numbers of a head form a pair. Weights trained with one layout do not work with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RotaryLayout {
    /// Numbers `i` and `i + rotary_dim / 2`: GPT-NeoX, Llama and most models since (`rotate_half` of `transformers`).
    #[default]
    HalfSplit,
    /// Numbers `2i` and `2i + 1`: the paper, GPT-J, Llama's own code (`rotate_every_two` of `transformers`).
    Interleaved,
}

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
    /// As [`cos`](Self::cos).
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
    /// There are fewer numbers than pairs, or a slice is too short for the sizes.
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
        let of_x = self.x.extent([batch, heads, len], dim);
        let last = self.offsets.iter().max();
        let last = last.map_or(0, |last| last.saturating_add(len));
        for (name, available, needed) in [
            ("x", self.x.available(), of_x),
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
        let sign = T::Real::from_f64(if self.inverse { -1.0 } else { 1.0 });
        let work = |(item, first, out), _: &mut [T::Real]| {
            let offset = match self.offsets {
                [offset] => *offset,
                offsets => offsets[item],
            };
            let angles = [self.cos, self.sin].map(|table| &table[(offset + first) * pairs..]);
            let rows = RotaryRows {
                x: self.x,
                item,
                first,
                heads,
                dim,
                angles,
                pairs,
                layout: self.layout,
                sign,
                out,
            };
            T::Real::run(Kernel::Rotate(rows), execution);
        };
        for_each(workers, 0, tasks, work);
    }
}

/// Some rows of one batch item, with all their heads, which have the same angles.
pub struct RotaryRows<'a, R> {
    x: Rows<'a, R>,
    item: usize,
    /// The first row.
    first: usize,
    heads: usize,
    dim: usize,
    /// Cosines and sines from those of the first row on.
    angles: [&'a [R]; 2],
    pairs: usize,
    layout: RotaryLayout,
    /// The factor of the sines.
    sign: R,
    /// `[rows, heads, dim]`
    out: &'a mut [R],
}

impl<R: Real> WithSimd for RotaryRows<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (pairs, dim) = (self.pairs, self.dim);
        let width = 2 * pairs;
        let rows = self.out.chunks_exact_mut(self.heads * dim).enumerate();
        for (row, out) in rows {
            let angles = self.angles.map(|table| &table[row * pairs..][..pairs]);
            for (head, out) in out.chunks_exact_mut(dim).enumerate() {
                let x = &self.x.head(self.item, head).after(self.first + row).data[..dim];
                let (x, kept) = x.split_at(width);
                let (out, copied) = out.split_at_mut(width);
                match self.layout {
                    RotaryLayout::HalfSplit => halves(simd, x, angles, self.sign, out),
                    RotaryLayout::Interleaved => interleaved(x, angles, self.sign, out),
                }
                copied.copy_from_slice(kept);
            }
        }
    }
}

/// One row whose pairs are half a row apart.
#[inline(always)]
fn halves<R: Real, S: Simd>(simd: S, x: &[R], [cos, sin]: [&[R]; 2], sign: R, out: &mut [R]) {
    let pairs = cos.len();
    let (first, second) = x.split_at(pairs);
    let (out_first, out_second) = out.split_at_mut(pairs);
    let signs = R::splat(simd, sign);
    let whole = pairs / R::lanes::<S>() * R::lanes::<S>();
    let vectors = R::vectors::<S>(first)
        .iter()
        .zip(R::vectors::<S>(second))
        .zip(R::vectors::<S>(cos).iter().zip(R::vectors::<S>(sin)));
    let places = R::vectors_mut::<S>(out_first)
        .iter_mut()
        .zip(R::vectors_mut::<S>(out_second));
    for (((&a, &b), (&cos, &sin)), (place_a, place_b)) in vectors.zip(places) {
        let sin = R::times(simd, sin, signs);
        *place_a = R::minus(simd, R::times(simd, a, cos), R::times(simd, b, sin));
        *place_b = R::plus(simd, R::times(simd, b, cos), R::times(simd, a, sin));
    }
    for pair in whole..pairs {
        let (a, b) = (first[pair], second[pair]);
        let (cos, sin) = (cos[pair], sin[pair] * sign);
        out_first[pair] = a * cos - b * sin;
        out_second[pair] = b * cos + a * sin;
    }
}

/// One row whose pairs are side by side; LLVM vectorises it.
#[inline(always)]
fn interleaved<R: Real>(x: &[R], [cos, sin]: [&[R]; 2], sign: R, out: &mut [R]) {
    let pairs = x.chunks_exact(2).zip(cos.iter().zip(sin));
    for ((pair, (&cos, &sin)), out) in pairs.zip(out.chunks_exact_mut(2)) {
        let ([a, b], sin) = ([pair[0], pair[1]], sin * sign);
        out[0] = a * cos - b * sin;
        out[1] = b * cos + a * sin;
    }
}
