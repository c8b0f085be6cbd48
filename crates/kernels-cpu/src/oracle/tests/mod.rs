//! The oracle against everything that is not the oracle.
//!
//! | file | what it checks |
//! | --- | --- |
//! | `case.rs` | one problem with all its buffers, reproducibly random |
//! | `distance.rs` | ALiBi and the relative bias against the dense bias that spells them out |
//! | `forward.rs` | the forward against the equations that define it |
//! | `hidden.rs` | what hidden keys and rows may never do |
//! | `gradients.rs` | the backward against central differences of the forward |
//! | `errors.rs` | one test per malformed input |

mod case;
mod distance;
mod errors;
mod forward;
mod gradients;
mod hidden;
