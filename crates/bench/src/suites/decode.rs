//! Generation: one query against the keys so far, 8 heads of width 64, forward.

use crate::case::{
    Case,
    Library::{Burn, Candle, Pytorch},
};
use crate::work::{Op, Pass, Work};

/// The cases.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for batch in [1, 8] {
        for len in [128, 512, 1024, 4096, 8192] {
            let op = Op {
                batch,
                len_q: 1,
                ..Op::new(Pass::Forward, len)
            };
            let case = Case::new(format!("one token on {len}, batch {batch}"), Work::Op(op))
                .against(&[Pytorch, Burn, Candle]);
            cases.push(if [128, 4096].contains(&len) {
                case
            } else {
                case.thorough()
            });
        }
    }
    cases
}
