//! What parent and contestant say to each other, a line each, on the contestant's standard input and output.
//!
//! ```text
//! parent       contestant
//! {Task}       prepares, checks, warms up
//!              ready {Ready}      or, now and later: failed <why>
//! go           one sample
//!              <seconds per iteration>
//! …
//! end          ends; a Python process waits for the next task
//!
//! {Task}       if its goal is memory: one iteration
//!              ready <bytes or null>
//! ```
//!
//! A contestant waits in a blocking read, so that only one of them computes at a time.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// Before the JSON of [`Ready`].
pub const READY: &str = "ready ";
/// Before a sentence that says why there is no result.
pub const FAILED: &str = "failed ";
/// Asks for a sample.
pub const GO: &str = "go";
/// Ends a contestant.
pub const END: &str = "end";

/// A sample has enough iterations to take this long (seconds): the clock and the scheduler stay small beside it.
pub const SAMPLE_SECONDS: f64 = 0.03;
/// What a sample takes on a GPU (seconds), where it ends with a wait of coarse resolution.
pub const GPU_SAMPLE_SECONDS: f64 = 0.1;
/// Iterations are repeated for this long (seconds) to warm up.
pub const WARM_UP_SECONDS: f64 = 0.1;
/// An iteration that takes longer than this (seconds) needs no warming up.
pub const LONG_SECONDS: f64 = 2.0;

/// What a contestant knows before the first sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Iterations in a sample.
    pub iterations: usize,
    /// Seconds per iteration, roughly.
    pub seconds: f64,
    pub results: Vec<Digest>,
    /// How it computes, where that is not the library's fastest.
    pub note: Option<String>,
}
