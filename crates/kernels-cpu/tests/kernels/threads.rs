//! Same input, same bits: on any number of threads.

use half::bf16;

use crate::{
    case::Case,
    determinism::{MANY_HEADS, ONE_QUERY, ONE_QUERY_MANY_HEADS, SPLIT, cases},
    number::Number,
    options::everything,
    run::{How, USUAL, bits, run},
};

/// Runs with five threads at hand, of which the kernels use some.
fn on_threads<T: Number>(case: &Case, threads: usize) -> Vec<(&'static str, Vec<u64>)> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(5)
        .build()
        .unwrap();
    pool.install(|| bits(&run::<T>(case, How { threads, ..USUAL })))
}

fn assert_threads_change_nothing<T: Number>(case: &Case) {
    let alone = bits(&run::<T>(case, USUAL));
    for threads in [2, 5] {
        assert!(
            on_threads::<T>(case, threads) == alone,
            "{}, {}, {threads} threads",
            case.name,
            T::NAME
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn the_same_on_any_number_of_threads() {
    for case in cases() {
        assert_threads_change_nothing::<f32>(&case);
    }
    assert_threads_change_nothing::<f32>(&Case::fine("many heads", ONE_QUERY_MANY_HEADS));
    for sizes in [MANY_HEADS, SPLIT, ONE_QUERY] {
        let mut case = Case::new("everything at once", sizes);
        everything(&mut case);
        assert_threads_change_nothing::<f64>(&case);
        assert_threads_change_nothing::<bf16>(&case);
    }
}
