//! Which experts a position uses.

use burn::tensor::{Bool, Int, Tensor};

/// `[positions, n_experts]`: whether the expert's score is among the `top_k` largest of the position.
///
/// By repeated maxima: sorting waits for the device on some backends of Burn 0.22.1.
pub(super) fn chosen(scores: Tensor<2>, top_k: usize) -> Tensor<2, Bool> {
    let [_, n_experts] = scores.dims();
    let mut left = scores.detach();
    let largest = |left: &Tensor<2>| {
        let expert = left.clone().argmax(1);
        let experts = Tensor::<1, Int>::arange(0..n_experts as i64, &left.device());
        experts.unsqueeze::<2>().equal(expert)
    };
    let mut chosen = largest(&left);
    for _ in 1..top_k {
        left = left.mask_fill(chosen.clone(), f64::NEG_INFINITY);
        chosen = chosen.bool_or(largest(&left));
    }
    chosen
}

/// `scores`, `[positions, n_experts]`, with −inf for the experts outside of the `top_k` groups with the largest scores. A group is
/// `n_experts / n_groups` experts in a row, and its score that of its best.
pub(super) fn within_groups(scores: Tensor<2>, n_groups: usize, top_k: usize) -> Tensor<2> {
    let [positions, n_experts] = scores.dims();
    let grouped = [positions, n_groups, n_experts / n_groups];
    let best = scores.clone().reshape(grouped).max_dim(2);
    let others = chosen(best.reshape([positions, n_groups]), top_k).bool_not();
    let others = others.unsqueeze_dim::<3>(2).expand(grouped);
    scores.mask_fill(others.reshape([positions, n_experts]), f64::NEG_INFINITY)
}
