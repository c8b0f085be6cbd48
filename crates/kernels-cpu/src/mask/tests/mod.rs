//! Tests of masks.
//!
//! | file | what it checks |
//! | --- | --- |
//! | `drawings.rs` | each part against its drawing in the docs |
//! | `dense.rs` | all parts together against a dense matrix |
//! | `errors.rs` | one sentence per malformed part |

mod dense;
mod drawings;
mod errors;

use crate::Problem;

fn problem(batch: usize, heads_q: usize, len_q: usize, len_kv: usize) -> Problem {
    Problem {
        batch,
        heads_q,
        heads_kv: 1,
        len_q,
        len_kv,
        dim_qk: 1,
        dim_v: 1,
    }
}
