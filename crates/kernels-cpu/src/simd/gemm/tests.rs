//! Every loop of the GEMM, on slices of exactly the length that it needs.

use pulp::{Scalar, Scalar512b};

use super::*;

/// Whole numbers, whose sums are exact.
fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|index| (index * 7 % 11) as f32 - 5.0)
        .collect()
}

/// Runs the GEMM on slices of exactly the length that it needs, and checks every number of the output.
fn check<S: Simd>(simd: S, rows: usize, depth: usize, vectors: usize, start: usize) {
    let columns = vectors * f32::lanes::<S>();
    // Rows with gaps, and terms that lie side by side.
    let (lhs_rs, rhs_rs, out_rs) = (depth + 3, columns + 2, columns + 5);
    let length = |rows: usize, row: usize, len: usize| match rows {
        0 => 0,
        rows => (rows - 1) * row + len,
    };
    let lhs = numbers(length(rows, lhs_rs, depth));
    let rhs = numbers(length(depth, rhs_rs, columns));
    let mut out = numbers(length(rows, out_rs, columns));
    let before = out.clone();
    let factors = numbers(rows);
    Gemm {
        rows,
        depth,
        lhs: &lhs,
        lhs_rs,
        lhs_cs: 1,
        rhs: &rhs,
        rhs_rs,
        out: &mut out,
        out_rs,
        beta: match start {
            0 => Beta::Zero,
            1 => Beta::One,
            _ => Beta::PerRow(&factors),
        },
    }
    .run(simd, columns);
    for (at, (&actual, &before)) in out.iter().zip(&before).enumerate() {
        let (row, column) = (at / out_rs, at % out_rs);
        let kept = [0.0, 1.0, factors[row]][start] * before;
        let terms = (0..depth).map(|k| lhs[row * lhs_rs + k] * rhs[k * rhs_rs + column]);
        let expected = if column < columns {
            kept + terms.sum::<f32>()
        } else {
            before
        };
        assert_eq!(
            actual, expected,
            "{rows} rows, {depth} terms, {vectors} vectors, at {at}"
        );
    }
}

#[test]
fn every_loop_keeps_to_its_slices() {
    for rows in 0..=14 {
        for depth in [0, 1, 5] {
            for vectors in [1, 2, 3, 4, 8] {
                for start in 0..3 {
                    check(Scalar, rows, depth, vectors, start);
                }
            }
        }
    }
    // As wide as AVX-512, with micro-kernels of twelve and eight rows.
    for rows in 0..=40 {
        for vectors in [1, 2, 3, 4] {
            check(Scalar512b, rows, 5, vectors, rows % 3);
        }
    }
}

/// A GEMM of two rows and nine terms whose strides are those given, in slices of 32 numbers.
fn strided(lhs_rs: usize, rhs_rs: usize, out_rs: usize) {
    let (lhs, rhs, mut out) = (numbers(32), numbers(32), numbers(32));
    Gemm {
        rows: 2,
        depth: 9,
        lhs: &lhs,
        lhs_rs,
        lhs_cs: 1,
        rhs: &rhs,
        rhs_rs,
        out: &mut out,
        out_rs,
        beta: Beta::Zero,
    }
    .run(Scalar, 1);
}

// These strides, times the last row or term, wrap around to an offset inside the slices.

#[test]
#[should_panic(expected = "assertion failed: self.lhs.len()")]
fn a_left_matrix_whose_offsets_wrap_around() {
    strided(usize::MAX - 7, 1, 1);
}

#[test]
#[should_panic(expected = "assertion failed: self.rhs.len()")]
fn a_right_matrix_whose_offsets_wrap_around() {
    strided(1, 1 << (usize::BITS - 3), 1);
}

#[test]
#[should_panic(expected = "assertion failed: self.out.len()")]
fn an_output_whose_offsets_wrap_around() {
    strided(1, 1, usize::MAX);
}
