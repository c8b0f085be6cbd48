//! Rotary positions of some rows.

use pulp::{Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::{simd::real::Real, view::rows::Rows};

/// Which two numbers of a head form a pair. Weights trained with one layout do not work with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RotaryLayout {
    /// Numbers `i` and `i + rotary_dim / 2`: GPT-NeoX, Llama and most models since (`rotate_half` of `transformers`).
    #[default]
    HalfSplit,
    /// Numbers `2i` and `2i + 1`: the paper, GPT-J, Llama's own code (`rotate_every_two` of `transformers`).
    Interleaved,
}

/// Some rows of one batch item, with all their heads, which have the same angles.
pub struct RotaryRows<'a, R> {
    pub(crate) x: Rows<'a, R>,
    pub(crate) item: usize,
    /// The first row.
    pub(crate) first: usize,
    pub(crate) heads: usize,
    pub(crate) dim: usize,
    pub(crate) cos: &'a [R],
    pub(crate) sin: &'a [R],
    pub(crate) pairs: usize,
    /// The position of the first row.
    pub(crate) position: usize,
    pub(crate) layout: RotaryLayout,
    /// The factor of the sines.
    pub(crate) sign: R,
    /// `[rows, heads, dim]`
    pub(crate) out: &'a mut [R],
}

impl<R: Real> WithSimd for RotaryRows<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (pairs, dim) = (self.pairs, self.dim);
        let width = 2 * pairs;
        let rows = self.out.chunks_exact_mut(self.heads * dim).enumerate();
        for (row, out) in rows {
            let angles = (self.position + row) * pairs..(self.position + row + 1) * pairs;
            let angles = [&self.cos[angles.clone()], &self.sin[angles]];
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

/// One row whose pairs are side by side; LLVM vectorises the loop.
#[inline(always)]
fn interleaved<R: Real>(x: &[R], [cos, sin]: [&[R]; 2], sign: R, out: &mut [R]) {
    let pairs = x.chunks_exact(2).zip(cos.iter().zip(sin));
    for ((pair, (&cos, &sin)), out) in pairs.zip(out.chunks_exact_mut(2)) {
        let ([a, b], sin) = ([pair[0], pair[1]], sin * sign);
        out[0] = a * cos - b * sin;
        out[1] = b * cos + a * sin;
    }
}
