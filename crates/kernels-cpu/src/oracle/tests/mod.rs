//! Tests of the oracle: equations, cases done by hand, and central differences.
//!
//! | file | what it checks |
//! | --- | --- |
//! | `case.rs` | one problem with all its buffers, reproducibly random |
//! | `distance.rs` | ALiBi and the relative bias against the equal dense bias |
//! | `forward.rs` | the forward against the equations that define it |
//! | `hidden.rs` | hidden keys and rows, and NaN in them |
//! | `differences.rs` | the gradients of one case against central differences of its forward |
//! | `gradients.rs` | the gradients of every option against differences |
//! | `masked_gradients.rs` | the gradients under every mask against differences |
//! | `errors.rs` | one test per malformed input |

mod case;
mod differences;
mod distance;
mod errors;
mod forward;
mod gradients;
mod hidden;
mod masked_gradients;
