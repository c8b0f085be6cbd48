//! Same input, same bits: on any number of threads.

use half::bf16;

use crate::{
    case::{Case, coarse},
    number::Number,
    options::{everything, shapes},
    run::{How, USUAL, bits, run},
};

/// Enough work for five threads on every path.
const MANY_HEADS: [usize; 7] = [2, 8, 4, 211, 197, 16, 13];
const SPLIT: [usize; 7] = [1, 3, 1, 307, 293, 16, 13];
const ONE_QUERY: [usize; 7] = [1, 2, 1, 1, 8209, 31, 37];
/// So many query heads for one key/value head that several threads add up what the tasks of a single query have summed.
const ONE_QUERY_MANY_HEADS: [usize; 7] = [1, 503, 1, 1, 4099, 3, 67];

/// Almost all options together, and a bias of every shape, to whose gradient several tasks add.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for sizes in [MANY_HEADS, SPLIT, ONE_QUERY] {
        let plain = Case::fine(&format!("{sizes:?}"), sizes);
        let mut all = plain.clone();
        everything(&mut all);
        cases.push(all);
        // Which tasks add to which part of the gradient of a bias depends on the shape of the bias.
        for shape in shapes(plain.scores()) {
            let mut case = plain.clone();
            case.name = format!("{}, bias of shape {shape:?}", case.name);
            case.bias = Some((shape, coarse(6, shape.iter().product())));
            cases.push(case);
        }
    }
    cases
}

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
