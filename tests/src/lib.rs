//! What the suites share.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`devices`] | the devices of this build |
//! | [`numbers`] | numbers that are the same on every machine and backend |
//! | [`parameters`] | the parameters of any module by name |
//! | [`compare`] | how close is close |
//! | [`sentence`] | what a call panics with |
//! | [`golden`] | the files of `tests/golden` |

pub mod compare;
pub mod devices;
pub mod golden;
pub mod numbers;
pub mod parameters;
mod sentence;

/// The README's first example.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

pub use sentence::sentence;
