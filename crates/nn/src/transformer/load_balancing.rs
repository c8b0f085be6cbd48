//! The loss that balances the load of a router's experts.

use burn::tensor::{Bool, Tensor, activation::softmax, assert_shape};

use super::choice::chosen;
use crate::parameter::wide;

/// The loss that balances the load of the experts, to be added to the loss of the model with a small factor. It equals
/// `top_k` where the load is balanced. The loss assumes that a position chooses the experts of its `top_k` largest logits, with the softmax as
/// shares. So it is not for routers with [`sigmoid`](crate::MixtureOfExpertsConfig::sigmoid),
/// [`expert_bias`](crate::MixtureOfExpertsConfig::expert_bias) or several [groups](crate::MixtureOfExpertsConfig::n_groups).
///
/// ```text
/// used[e]  = mean over the positions of all layers: 1 if they chose e, else 0
/// share[e] = mean over the positions of all layers: softmax(logits)[e]
/// loss     = n_experts · Σ used[e] · share[e]
/// ```
///
/// # Shapes
///
/// - `router_logits`: `[positions, n_experts]` for every layer
/// - `counted`: `[positions]`, false for padding; if `None`, all positions count
/// - output: `[1]`
///
/// # Panics
///
/// When there are no layers, layers differ in shape, `top_k` is not between 1 and the number of experts, or `counted` has
/// another length.
///
/// # Source
///
/// "Switch transformers" (arXiv:2101.03961), equations 4 to 6, for several experts per position. PyTorch equivalent:
/// `load_balancing_loss_func` of Hugging Face's `transformers` (Mixtral).
pub fn load_balancing_loss(
    router_logits: &[Tensor<2>],
    top_k: usize,
    counted: Option<Tensor<1, Bool>>,
) -> Tensor<1> {
    let first = router_logits
        .first()
        .expect("load_balancing_loss: there are no router logits");
    let [positions, n_experts] = first.dims();
    assert!(
        (1..=n_experts).contains(&top_k),
        "load_balancing_loss: top_k must be between 1 and the {n_experts} experts, got {top_k}"
    );
    for logits in router_logits {
        assert_shape!(logits, [positions, n_experts]);
    }
    if let Some(counted) = &counted {
        assert_shape!(counted, [positions]);
    }
    let dtype = wide(first.dtype());
    if positions == 0 {
        return Tensor::zeros([1], (&first.device(), dtype));
    }
    // Logits of padding may be NaN, which a product with 0 would keep.
    let uncounted = counted.map(|counted| counted.unsqueeze_dim::<2>(1).bool_not());
    let of_counted = |x: Tensor<2>| match &uncounted {
        Some(uncounted) => {
            let uncounted = uncounted.clone().expand(x.dims());
            x.mask_fill(uncounted, 0.0)
        }
        None => x,
    };
    let (mut used, mut share) = (Vec::new(), Vec::new());
    for logits in router_logits {
        let logits = of_counted(logits.clone().cast(dtype));
        let chosen = chosen(logits.clone(), top_k).float().cast(dtype);
        used.push(of_counted(chosen).sum_dim(0));
        share.push(of_counted(softmax(logits, 1)).sum_dim(0));
    }
    let layers = router_logits.len() as f64;
    let count = of_counted(Tensor::ones([positions, 1], (&first.device(), dtype))).sum();
    let count = count.clamp_min(1.0) * layers;
    let sum = |parts: Vec<Tensor<2>>| Tensor::cat(parts, 0).sum_dim(0);
    let products = sum(used) * sum(share);
    products.sum() * n_experts as f64 / count.square()
}
