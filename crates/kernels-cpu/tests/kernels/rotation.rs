//! Rotary positions.

use burn_attn_kernels_cpu::tiled::{Execution, Real, RotaryLayout, Rotation, Rows};

use crate::{
    case::fine,
    number::Number,
    run::{executions, reals},
};

const LAYOUTS: [RotaryLayout; 2] = [RotaryLayout::HalfSplit, RotaryLayout::Interleaved];

/// A rotation that owns its numbers.
struct Owned<T: Number> {
    sizes: [usize; 4],
    pairs: usize,
    offsets: Vec<usize>,
    layout: RotaryLayout,
    inverse: bool,
    /// Rows of this tensor lie further apart than they are long.
    x: Vec<T::Real>,
    strides: [usize; 3],
    /// Cosines, then sines: of any size, as those of YaRN.
    tables: [Vec<T::Real>; 2],
}

impl<T: Number> Owned<T> {
    fn new(sizes: [usize; 4], pairs: usize, offsets: &[usize], layout: RotaryLayout) -> Self {
        let [batch, heads, len, dim] = sizes;
        let real = |stream, count| reals::<T>(&fine(stream, count));
        let positions = offsets.iter().max().map_or(0, |last| last + len);
        let strides = [len * 3 * heads * dim, dim, 3 * heads * dim];
        Self {
            sizes,
            pairs,
            offsets: offsets.to_vec(),
            layout,
            inverse: false,
            x: real(1, batch * strides[0]),
            strides,
            tables: [2, 3].map(|stream| real(stream, positions * pairs)),
        }
    }

    fn run(&self, execution: Execution) -> Vec<T::Real> {
        let rotation = Rotation::<T> {
            x: Rows::new(&self.x, self.strides),
            sizes: self.sizes,
            cos: &self.tables[0],
            sin: &self.tables[1],
            pairs: self.pairs,
            offsets: &self.offsets,
            layout: self.layout,
            inverse: self.inverse,
        };
        // A number that is never written is NaN.
        let mut out = vec![T::Real::from_f64(f64::NAN); self.sizes.iter().product()];
        rotation.run(&mut out, execution);
        out
    }

    /// The expected numbers in f64, with the magnitudes of their terms.
    fn naive(&self) -> Vec<(f64, f64)> {
        let [batch, heads, len, dim] = self.sizes;
        let [to_batch, to_head, to_row] = self.strides;
        let mut out = Vec::new();
        for item in 0..batch {
            for row in 0..len {
                let position = row + self.offsets[item % self.offsets.len()];
                for head in 0..heads {
                    let first = item * to_batch + head * to_head + row * to_row;
                    let x = |number: usize| self.x[first + number].to_f64();
                    out.extend((0..dim).map(|number| {
                        if number >= 2 * self.pairs {
                            return (x(number), 0.0);
                        }
                        let (pair, second) = match self.layout {
                            RotaryLayout::HalfSplit => (number % self.pairs, number >= self.pairs),
                            RotaryLayout::Interleaved => (number / 2, number % 2 == 1),
                        };
                        let other = match (self.layout, second) {
                            (RotaryLayout::HalfSplit, false) => number + self.pairs,
                            (RotaryLayout::HalfSplit, true) => number - self.pairs,
                            (RotaryLayout::Interleaved, false) => number + 1,
                            (RotaryLayout::Interleaved, true) => number - 1,
                        };
                        let [cos, sin] = [0, 1].map(|table: usize| {
                            self.tables[table][position * self.pairs + pair].to_f64()
                        });
                        let sign = if second != self.inverse { 1.0 } else { -1.0 };
                        let terms = [x(number) * cos, sign * x(other) * sin];
                        (terms[0] + terms[1], terms[0].abs() + terms[1].abs())
                    }));
                }
            }
        }
        out
    }
}

fn check<T: Number>() {
    for (sizes, offsets) in [
        ([1, 1, 1, 2], &[0][..]),
        ([1, 3, 5, 14], &[7]),
        ([2, 3, 5, 14], &[0]),
        ([3, 2, 7, 38], &[5, 0, 11]),
        ([2, 1, 3, 71], &[13, 2]),
        ([2, 5, 131, 67], &[3]),
    ] {
        let dim = sizes[3];
        for pairs in [0, 1, 5, 17, 33, dim / 2] {
            if 2 * pairs > dim {
                continue;
            }
            for layout in LAYOUTS {
                for inverse in [false, true] {
                    let mut rotation = Owned::<T>::new(sizes, pairs, offsets, layout);
                    rotation.inverse = inverse;
                    let found = rotation.run(Execution::sequential());
                    let what = format!(
                        "{} {sizes:?}, {pairs} pairs, {layout:?}, {inverse}",
                        T::NAME
                    );
                    for execution in executions(&[1]) {
                        assert!(rotation.run(execution) == found, "{what}, {execution:?}");
                    }
                    let naive = rotation.naive();
                    assert_eq!(naive.len(), found.len());
                    for (index, (actual, (expected, size))) in
                        found.into_iter().zip(naive).enumerate()
                    {
                        let error = (actual.to_f64() - expected).abs();
                        // Two products and a sum, rounded once each.
                        assert!(
                            error <= T::EPSILON * size,
                            "{what} at {index}: {actual:?} for {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn rotations_are_right_in_f32() {
    check::<f32>();
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn rotations_are_right_in_f64() {
    check::<f64>();
}

#[test]
fn nothing_is_rotated() {
    for sizes in [[0, 3, 5, 14], [2, 3, 0, 14]] {
        for layout in LAYOUTS {
            let rotation = Owned::<f32>::new(sizes, 7, &[11], layout);
            assert!(rotation.run(Execution::available()).is_empty());
        }
    }
}

#[cfg(feature = "rayon")]
#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn threads_change_nothing() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(5)
        .build()
        .unwrap();
    for layout in LAYOUTS {
        let rotation = Owned::<f32>::new([3, 5, 1009, 62], 23, &[7, 0, 331], layout);
        let on = |threads| {
            let execution = Execution {
                threads,
                ..Execution::sequential()
            };
            pool.install(|| rotation.run(execution))
        };
        let alone = on(1);
        assert!(on(2) == alone && on(5) == alone);
    }
}

#[test]
#[should_panic(
    expected = "sin needs 84 elements for sizes [2, 3, 5, 14], 7 pairs and positions below 12, but has 83"
)]
fn a_table_that_is_too_short() {
    let mut rotation = Owned::<f32>::new([2, 3, 5, 14], 7, &[0, 7], RotaryLayout::HalfSplit);
    rotation.tables[1].pop();
    rotation.run(Execution::sequential());
}

#[test]
#[should_panic(expected = "x needs 802 elements for sizes [2, 3, 5, 14], 7 pairs")]
fn rows_that_are_too_few() {
    let mut rotation = Owned::<f32>::new([2, 3, 5, 14], 7, &[0], RotaryLayout::HalfSplit);
    rotation.strides = [256, 14, 126];
    rotation.x.truncate(801);
    rotation.run(Execution::sequential());
}

#[test]
#[should_panic(expected = "3 offsets for 2 batch items")]
fn offsets_of_another_batch() {
    let mut rotation = Owned::<f32>::new([2, 3, 5, 14], 7, &[0], RotaryLayout::HalfSplit);
    rotation.offsets = vec![0; 3];
    rotation.run(Execution::sequential());
}

#[test]
#[should_panic(expected = "8 pairs do not fit into 14 numbers")]
fn more_pairs_than_numbers() {
    let rotation = Owned::<f32>::new([2, 3, 5, 14], 8, &[0], RotaryLayout::HalfSplit);
    rotation.run(Execution::sequential());
}

/// Runs a rotation of one row that repeats.
#[cfg(target_pointer_width = "64")]
fn of_one_row(sizes: [usize; 4], pairs: usize) {
    let rotation = Rotation::<f32> {
        x: Rows::new(&[0.0; 14], [0; 3]),
        sizes,
        cos: &[0.0; 7],
        sin: &[0.0; 7],
        pairs,
        offsets: &[0],
        layout: RotaryLayout::HalfSplit,
        inverse: false,
    };
    rotation.run(&mut [0.0; 14], Execution::sequential());
}

#[test]
#[should_panic(expected = "out needs 18446744073709551615 elements")]
#[cfg(target_pointer_width = "64")]
fn sizes_that_wrap_around() {
    // Modulo 2^64 there is nothing to write.
    of_one_row([1 << 32, 1 << 32, 1, 14], 7);
}

#[test]
#[should_panic(expected = "9223372036854775808 pairs do not fit into 14 numbers")]
#[cfg(target_pointer_width = "64")]
fn pairs_that_wrap_around() {
    of_one_row([1, 1, 1, 14], 1 << 63);
}
