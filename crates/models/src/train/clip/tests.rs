//! The norm of all gradients.

use burn::nn::LinearConfig;
use burn::tensor::Device;

use super::*;

#[test]
fn the_norm_of_all_gradients_is_limited() {
    let device = Device::default().autodiff();
    let linear = LinearConfig::new(3, 5).init(&device);
    let norm = |limit: f64| {
        let loss = linear.forward(Tensor::<2>::ones([2, 3], &device)).sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &linear);
        let clipped = clip_by_global_norm(gradients, &linear, limit);
        squares(&clipped, &linear)
            .unwrap()
            .sqrt()
            .into_scalar::<f32>()
    };
    // Every weight and every bias has the gradient 2: the norm is sqrt(4 · 20).
    assert!((norm(100.0) - 80f32.sqrt()).abs() < 1e-5);
    assert!((norm(1.5) - 1.5).abs() < 1e-5);
}

#[test]
#[should_panic(expected = "clip_by_global_norm: the limit must be above 0, got -1")]
fn a_limit_below_zero_is_refused() {
    let linear = LinearConfig::new(3, 5).init(&Device::default().autodiff());
    clip_by_global_norm(GradientsParams::new(), &linear, -1.0);
}
