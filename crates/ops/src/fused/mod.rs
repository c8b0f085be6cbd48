//! The operations by this workspace's kernels, forward and backward, and their gradient rules.
//!
//! A backend's kernels take some calls; the blockwise body takes the others, and the backward pass of a call whose gradients need too much memory.

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
