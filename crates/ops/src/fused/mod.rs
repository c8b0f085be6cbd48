//! The operations by this workspace's kernels, forward and backward, and the gradient rules of all operations.
//!
//! A backend's kernels take some calls, forward and backward alike; the blockwise body takes the others.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `host/` | the kernels of `kernels-cpu`, for backends whose tensors are in host memory: flex and ndarray |
//! | `cube.rs` | the kernels of `kernels-cube`, for tensors in a GPU's memory |
//! | `fusion.rs` | the kernels of `kernels-cube` where Burn records operations and runs them later |
//! | `autodiff.rs`, `autodiff/` | the gradient rules |

#[cfg(feature = "autodiff")]
mod autodiff;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "cube")]
mod fusion;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod host;
#[cfg(all(test, feature = "flex", feature = "autodiff"))]
mod tests;
