//! Tests of the tiled kernels against the f64 oracle and the contract of attention.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `case.rs` | one problem with its data and options, as the oracle, the plain implementation and the kernels read it |
//! | `options.rs`, `paths.rs` | every option alone and all together; the sizes that lead through every loop of the kernels |
//! | `run.rs`, `number.rs` | one call of the kernels, in any precision, layout and execution |
//! | `plain.rs`, `allowed.rs`, `tolerance.rs` | the error of a plain implementation in the same precision, and the error that a kernel may have |
//! | the others | the tests, by subject |
//!
//! Every call of a kernel in these tests finds NaN in its scratch (that is what debug assertions put there), in its outputs and between the rows of
//! strided inputs, so that a number that is read before it is written, or never written, fails every test.
//!
//! Miri takes minutes for a millisecond of these tests, so it runs only the small ones.

mod activation;
mod activation_backward;
mod allowed;
mod case;
mod dropout;
mod errors;
mod extreme;
mod functions;
mod gradients;
mod hidden;
mod linear;
#[cfg(not(miri))]
mod matrix;
#[cfg(not(miri))]
mod nan_padding;
mod number;
mod offsets;
mod options;
mod paths;
mod plain;
mod poisons;
mod propagation;
#[cfg(not(miri))]
mod properties;
mod random;
mod range;
mod rotation;
mod run;
mod sizes;
mod skinny_gemm;
#[cfg(feature = "rayon")]
mod threads;
mod tolerance;
