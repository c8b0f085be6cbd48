//! Threads and their memory.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `parallel.rs` | dividing work among threads |
//! | `helper_threads.rs` | threads that help if they arrive in time |
//! | `gate.rs` | when a call is over |
//! | `scratch.rs` | scratch memory, which each thread keeps |

#[cfg(feature = "rayon")]
mod gate;
#[cfg(feature = "rayon")]
mod helper_threads;
pub(crate) mod parallel;
pub(crate) mod scratch;
