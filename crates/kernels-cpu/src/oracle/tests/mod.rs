//! The oracle against everything that is not the oracle.
//!
//! | file | what it checks |
//! | --- | --- |
//! | `case.rs` | one problem with all its buffers, reproducibly random |
//! | `distance.rs` | ALiBi and the relative bias against the dense bias that spells them out |
//! | `forward.rs` | the forward against the equations that define it |
//! | `hidden.rs` | what hidden keys and rows may never do |
//! | `differences.rs` | the gradients of one case against central differences of its forward |
//! | `gradients.rs` | that for every option |
//! | `masked_gradients.rs` | that for every mask |
//! | `errors.rs` | one test per malformed input |

mod case;
mod differences;
mod distance;
mod errors;
mod forward;
mod gradients;
mod hidden;
mod masked_gradients;
