//! Attention straight from the formula, in f64: what every kernel is tested against.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `inputs.rs` | [`Inputs`]: the tensors and options of one call |
//! | `score.rs` | one score and its softcap slope, or `None` if the key is hidden |
//! | `forward.rs` | [`forward`]: output, logsumexp, weights |
//! | `backward.rs` | [`backward`]: the gradients of all seven differentiable inputs |
//!
//! The oracle has index loops, no tiles, no tricks, and O(`len_q` · `len_kv`) memory, and is never optimised. It does not use the products, softmax and
//! gradients of the kernels; its gradients are checked against central differences of its forward pass. It shares only the following with the kernels,
//! besides the checks of its inputs; each is tested separately:
//!
//! | shared | checked against |
//! | --- | --- |
//! | [`Mask::visible`](crate::Mask::visible), [`Mask::position`](crate::Mask::position) | a second formulation in its tests |
//! | the rows, heads and default scale of [`Problem`](crate::Problem) | numbers written out by hand |
//! | [`Broadcast::get`](crate::Broadcast::get), [`Broadcast::index`](crate::Broadcast::index) | strides, for all sixteen shapes |
//! | [`RelativeBuckets::bucket`](crate::RelativeBuckets::bucket) | T5's table |
//! | [`AttentionDropout::keep`](crate::AttentionDropout::keep), [`AttentionDropout::kept_scale`](crate::AttentionDropout::kept_scale) | its pinned bits and frequencies |
//! | `exp`, `ln` and `tanh` of `std` or `libm` | nothing: this crate does not implement them |
//!
//! ```
//! use burn_attn_kernels_cpu::{CausalAlignment, Mask, Options, PositionMask, Problem, oracle};
//!
//! let problem = Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 2, len_kv: 2, dim_qk: 1, dim_v: 1 };
//! let by_position = PositionMask::causal(CausalAlignment::BottomRight);
//! let inputs = oracle::Inputs {
//!     options: Options { mask: Mask { by_position, ..Mask::default() }, ..Options::default() },
//!     ..oracle::Inputs::new(&[0.0, 0.0], &[1.0, 2.0], &[10.0, 30.0])
//! };
//! let forward = oracle::forward(&problem, &inputs).unwrap();
//! assert_eq!(forward.output, [10.0, 20.0]);
//! assert_eq!(forward.weights, [1.0, 0.0, 0.5, 0.5]);
//!
//! let gradients = oracle::backward(&problem, &inputs, &[1.0, 1.0], None).unwrap();
//! assert_eq!(gradients.v, [1.5, 0.5]);
//! ```

mod backward;
mod forward;
mod inputs;
mod score;
#[cfg(test)]
mod tests;

pub use backward::{Gradients, backward};
pub use forward::{Forward, forward};
pub use inputs::Inputs;
