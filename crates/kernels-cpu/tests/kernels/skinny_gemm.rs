//! Products of few rows.

use burn_attn_kernels_cpu::tiled::{Execution, Real, SKINNY_ROWS, SkinnyGemm};

use crate::{
    case::coarse,
    number::Number,
    run::{executions, reals},
};

const DEPTHS: [usize; 6] = [0, 1, 15, 17, 131, 1024];
const COLUMNS: [usize; 6] = [1, 7, 8, 16, 67, 256];
/// The sums of each row are added up in several pieces, by several threads.
const WIDE: [usize; 3] = [SKINNY_ROWS, 61, 13001];

fn run<T: Number>(
    [rows, depth, columns]: [usize; 3],
    x: &[T::Real],
    weight: &[T::Real],
    execution: Execution,
) -> Vec<T::Real> {
    let product = SkinnyGemm::<T> {
        x,
        weight,
        rows,
        depth,
        columns,
    };
    // A number of the output that is read before it is written, or never written, is NaN.
    let nan = T::Real::from_f64(f64::NAN);
    let mut out = vec![nan; rows * columns];
    product.run(&mut out, execution);
    out
}

fn check_sizes<T: Number>([rows, depth, columns]: [usize; 3]) {
    let real = |stream, count| reals::<T>(&coarse(stream, count));
    let (x, weight) = (real(1, rows * depth), real(2, depth * columns));
    for execution in executions(&[1]) {
        let out = run::<T>([rows, depth, columns], &x, &weight, execution);
        for (index, actual) in out.into_iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let terms = (0..depth)
                .map(|k| x[row * depth + k].to_f64() * weight[k * columns + column].to_f64());
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term: f64| {
                (sum + term, size + term.abs())
            });
            // Each addition rounds by at most half an epsilon of the sum so far.
            let bound = T::EPSILON * size * (1.0 + (depth as f64).sqrt());
            assert!(
                (actual.to_f64() - sum).abs() <= bound,
                "{} rows {rows}, depth {depth}, columns {columns} at {row}, {column}: {actual:?} for {sum}, {execution:?}",
                T::NAME
            );
        }
    }
}

fn check<T: Number>() {
    for rows in [1, 2, 5, 6, 7, 8, SKINNY_ROWS] {
        for depth in DEPTHS {
            for columns in COLUMNS {
                check_sizes::<T>([rows, depth, columns]);
            }
        }
    }
    check_sizes::<T>(WIDE);
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn sums_are_right_in_f32() {
    check::<f32>();
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn sums_are_right_in_f64() {
    check::<f64>();
}

#[cfg(feature = "rayon")]
#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn threads_change_nothing() {
    let numbers = |stream, count| reals::<f32>(&coarse(stream, count));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(5)
        .build()
        .unwrap();
    for sizes in [[8, 2048, 513], WIDE] {
        let [rows, depth, columns] = sizes;
        let (x, weight) = (numbers(1, rows * depth), numbers(2, depth * columns));
        let on = |threads| {
            let execution = Execution {
                threads,
                ..Execution::sequential()
            };
            pool.install(|| run::<f32>(sizes, &x, &weight, execution))
        };
        let alone = on(1);
        assert!(on(2) == alone && on(5) == alone, "{sizes:?}");
    }
}

#[test]
#[should_panic(expected = "weight needs 35 elements for 3 rows, 5 terms and 7 columns, but has 34")]
fn a_matrix_that_is_too_short() {
    run::<f32>([3, 5, 7], &[0.0; 15], &[0.0; 34], Execution::sequential());
}

#[test]
#[should_panic(expected = "x needs 18446744073709551615 elements")]
#[cfg(target_pointer_width = "64")]
fn lengths_that_wrap_around() {
    // Modulo 2^64, the rows of `x` and of the result are one.
    let product = SkinnyGemm::<f32> {
        x: &[0.0; 32],
        weight: &[0.0; 32 * 32],
        rows: (1 << 59) + 1,
        depth: 32,
        columns: 32,
    };
    product.run(&mut [0.0; 32], Execution::sequential());
}
