//! Same input, same bits.

use crate::{
    case::{Case, coarse},
    options::{everything, shapes},
    run::{USUAL, bits, run},
};

/// Enough work for five threads on every path.
pub const MANY_HEADS: [usize; 7] = [2, 8, 4, 211, 197, 16, 13];
pub const SPLIT: [usize; 7] = [1, 3, 1, 307, 293, 16, 13];
pub const ONE_QUERY: [usize; 7] = [1, 2, 1, 1, 8209, 31, 37];
/// So many query heads for one key/value head that several threads add up what the tasks of a single query have summed.
pub const ONE_QUERY_MANY_HEADS: [usize; 7] = [1, 503, 1, 1, 4099, 3, 67];

/// Almost all options together, and a bias of every shape, to whose gradient several tasks add.
pub fn cases() -> Vec<Case> {
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

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn the_same_twice() {
    for case in cases() {
        assert!(
            bits(&run::<f32>(&case, USUAL)) == bits(&run::<f32>(&case, USUAL)),
            "{}",
            case.name
        );
    }
}
