//! Splits one projection into the heads of several operands, without copies.

use burn::{backend::Dispatch, tensor::Tensor};

use crate::backend::AttentionOps;

/// Splits a projection into heads, and the heads into operands, such as `[query | key | value]`.
///
/// The results are views where the backend has views; their gradients are written once, into one tensor of the shape of
/// the projection.
///
/// # Shapes
///
/// - `x`: `[batch, len, sum(heads) · d_head]`
/// - results, one per entry of `heads`: `[batch, heads[i], len, d_head]`
///
/// # Panics
///
/// When the width of `x` is not a multiple of the number of heads, or an operand has no heads.
///
/// # Cost
///
/// None forward, where the backend has views; backward, one pass over the gradients.
///
/// PyTorch equivalent: `unflatten`, `split` and `transpose`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::split_heads;
///
/// let projection = Tensor::<3>::zeros([2, 7, 3 * 32], &Device::default());
/// let [query, key, value] = split_heads(projection, [4, 4, 4]);
/// assert_eq!(query.dims(), [2, 4, 7, 8]);
/// ```
pub fn split_heads<const N: usize>(x: Tensor<3>, heads: [usize; N]) -> [Tensor<4>; N] {
    let [batch, len, width] = x.dims();
    let all: usize = heads.iter().sum();
    assert!(
        all > 0 && width % all == 0,
        "split_heads: a width of {width} is not a multiple of {all} heads"
    );
    assert!(
        !heads.contains(&0),
        "split_heads: every operand needs at least 1 head, but they have {heads:?}"
    );
    if [batch, len, width].contains(&0) {
        // A view of nothing divides by zero on ndarray.
        return heads.map(|heads| {
            Tensor::zeros([batch, heads, len, width / all], (&x.device(), x.dtype()))
        });
    }
    if N == 1 {
        let heads = x.reshape([batch, len, all, width / all]).swap_dims(1, 2);
        return core::array::from_fn(|_| heads.clone());
    }
    let parts = <Dispatch as AttentionOps>::split_heads(x.into_dispatch(), heads.to_vec());
    let parts: Vec<Tensor<4>> = parts.into_iter().map(Tensor::from_dispatch).collect();
    parts.try_into().expect("there is one part per entry")
}
