//! Attention by kernels of our own, forward and backward, and the gradient rules of all operations.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod.rs` | the trait of a backend's kernels |
//! | `host.rs` | the kernels of `kernels-cpu`, for any backend whose tensors are in host memory |
//! | `readable.rs` | such tensors, as the kernels read them |
//! | `flex.rs`, `ndarray.rs` | how the tensors of one backend are read and made |
//! | `cube.rs` | the kernels of `kernels-cube`, for tensors in a GPU's memory |
//! | `fusion.rs`, `fusion/` | the same where Burn records operations and runs them later |
//! | `linear.rs` | linear layers for the few rows of decoding, and for many |
//! | `rotation.rs` | rotary positions |
//! | `activation.rs` | bias, activation and gate between linear layers, forward and backward |
//! | `autodiff.rs`, `autodiff/` | the gradient rules |

#[cfg(any(feature = "flex", feature = "ndarray"))]
mod activation;
#[cfg(feature = "autodiff")]
mod autodiff;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "cube")]
mod fusion;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod host;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod linear;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod readable;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod rotation;
#[cfg(all(test, feature = "flex", feature = "autodiff"))]
mod tests;

#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) use activation::{activate, activate_backward};
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) use linear::linear;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) use rotation::rotate;

#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use burn::backend::{Backend, TensorMetadata, tensor::FloatTensor};
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use burn_attn_kernels_cpu::Problem;

#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use crate::{Gradients, Results, ScoreInputs, Upstream, Wanted};

/// Kernels of a backend.
///
/// Forward and backward come together: both ask `supports` about the same operands, so no call gets one without the other.
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
pub(crate) trait AttentionKernels: Backend {
    /// Whether the kernels support this call; the blockwise body takes the others.
    fn supports(inputs: &ScoreInputs<Self>, value: &FloatTensor<Self>) -> bool;

    /// Output and logsumexp; see [`AttentionOps::attention`](crate::AttentionOps::attention).
    fn forward(inputs: &ScoreInputs<Self>, value: &FloatTensor<Self>) -> Results<Self>;

    /// See [`AttentionOps::attention_backward`](crate::AttentionOps::attention_backward).
    fn backward(
        inputs: &ScoreInputs<Self>,
        value: &FloatTensor<Self>,
        upstream: Upstream<Self>,
        wanted: Wanted,
    ) -> Gradients<Self>;
}

/// The sizes of a call.
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
fn problem_of<B: Backend>(inputs: &ScoreInputs<B>, value: &FloatTensor<B>) -> Problem {
    let [batch, heads_q, len_q, dim_qk] = inputs.query.shape().dims();
    let [_, heads_kv, len_kv, dim_v] = value.shape().dims();
    Problem {
        batch,
        heads_q,
        heads_kv,
        len_q,
        len_kv,
        dim_qk,
        dim_v,
    }
}
