//! Unit tests of the two ways of computing.

use burn::tensor::{Distribution, Tolerance};

use super::*;

/// The two ways of computing give the same outputs and gradients.
#[test]
fn experts_on_the_chosen_and_on_all_positions_agree() {
    let device = Device::default().autodiff();
    for (norm_topk_prob, sigmoid) in [(false, false), (true, false), (false, true), (true, true)] {
        let mixture = MixtureOfExpertsConfig::new(6, 5, 7, 3)
            .with_norm_topk_prob(norm_topk_prob)
            .with_sigmoid(sigmoid)
            .with_expert_bias(sigmoid)
            .with_routed_scale(2.5)
            .with_bias(true)
            .init(&device);
        // Fewer positions than experts: some are not chosen.
        let rows = Tensor::<2>::random([2, 6], Distribution::Default, &device).require_grad();
        let run = |on_chosen: bool| {
            let logits = apply_to_rows(&mixture.router, rows.clone());
            let (weights, chosen) = mixture.weights(logits);
            let y = match on_chosen {
                true => mixture.of_chosen(rows.clone(), weights, chosen),
                false => mixture.of_all(rows.clone(), weights, chosen),
            };
            let gradients = y.clone().square().sum().backward();
            let of_rows = rows.grad(&gradients).expect("a gradient");
            let router = mixture.router.weight.val();
            let of_router = router.grad(&gradients).expect("a gradient");
            [y.inner(), of_rows, of_router].map(Tensor::into_data)
        };
        for (some, all) in run(true).into_iter().zip(run(false)) {
            some.assert_approx_eq::<f32>(&all, Tolerance::absolute(1e-5));
        }
    }
}
