//! A projection that several layers share starts as each of them would alone.

use burn::{nn::Initializer, tensor::Tensor};
use burn_attn::{
    CrossAttentionConfig, FeedForwardActivation, FeedForwardConfig, SelfAttentionConfig,
};
use burn_attn_tests::{compare::assert_close, compare::numbers, devices, numbers::alone};

const D_MODEL: usize = 30;

/// The largest number of each part, of columns of these widths.
fn largest(weight: &Tensor<2>, widths: &[usize]) -> Vec<f64> {
    let mut first = 0;
    let parts = widths.iter().map(|&width| {
        let part = weight.clone().narrow(1, first, width);
        first += width;
        part.abs().max().into_scalar::<f64>()
    });
    let parts = parts.collect();
    assert_eq!(first, weight.dims()[1]);
    parts
}

/// Xavier's bound of a layer by itself, `√(6 / (fan_in + fan_out))`.
fn xavier(d_input: usize, d_output: usize) -> f64 {
    (6.0 / (d_input + d_output) as f64).sqrt()
}

/// Panics unless the parts are as large as Xavier's bound lets them: of hundreds of uniform numbers, the largest is close.
#[track_caller]
fn assert_xavier(weight: &Tensor<2>, widths: &[usize]) {
    let [d_input, _] = weight.dims();
    for (largest, &width) in largest(weight, widths).into_iter().zip(widths) {
        let bound = xavier(d_input, width);
        assert!(
            largest <= bound * (1.0 + 1e-6) && largest > 0.97 * bound,
            "a part of width {width} starts within {largest}, not {bound}"
        );
    }
}

#[test]
fn fused_projections_start_as_separate_ones() {
    let _alone = alone();
    let initializer = Initializer::XavierUniform { gain: 1.0 };
    for (_, device) in devices::with_and_without_autodiff() {
        device.seed(1);
        // Queries 30 wide, keys and values 10.
        let module = SelfAttentionConfig::new(D_MODEL, 6)
            .with_n_kv_heads(2)
            .with_initializer(initializer.clone())
            .init(&device);
        let fused = &module.query_key_value;
        assert!(!fused.weight.is_initialized(), "drawn when it is needed");
        assert_xavier(&fused.weight.val(), &[30, 10, 10]);
        let bias = fused.bias.as_ref().expect("a bias").val().unsqueeze();
        let drawn = largest(&bias, &[30, 10, 10]);
        let bounds = [30, 10, 10].map(|width| xavier(D_MODEL, width));
        for (drawn, bound) in drawn.into_iter().zip(bounds) {
            assert!(0.0 < drawn && drawn <= bound, "{drawn}, {bound}");
        }
        assert_eq!(fused.weight.is_require_grad(), device.is_autodiff());

        let module = CrossAttentionConfig::new(D_MODEL, 6)
            .with_d_memory(21)
            .with_initializer(initializer.clone())
            .init(&device);
        assert_xavier(&module.key_value.weight.val(), &[30, 30]);

        let module = FeedForwardConfig::new(D_MODEL, 29)
            .with_activation(FeedForwardActivation::SwiGlu)
            .with_initializer(initializer.clone())
            .init(&device);
        assert_xavier(&module.linear_inner.weight.val(), &[29, 29]);
    }
}

/// Each part of an orthogonal start is orthogonal: that of the whole would be so between its rows only.
#[test]
fn an_orthogonal_start_is_orthogonal_in_each_part() {
    let _alone = alone();
    let initializer = Initializer::Orthogonal { gain: 1.0 };
    for (backend, device) in devices::cpu() {
        let attention = SelfAttentionConfig::new(D_MODEL, 6)
            .with_bias(burn_attn::ProjectionBias::none())
            .with_initializer(initializer.clone())
            .init(&device);
        let feed_forward = FeedForwardConfig::new(D_MODEL, 29)
            .with_activation(FeedForwardActivation::GeGlu)
            .with_bias(false)
            .with_initializer(initializer.clone())
            .init(&device);
        for (weight, width) in [
            (attention.query_key_value.weight.val(), 30),
            (feed_forward.linear_inner.weight.val(), 29),
        ] {
            for first in (0..weight.dims()[1]).step_by(width) {
                let part = weight.clone().narrow(1, first, width);
                let products = part.clone().transpose().matmul(part);
                let identity = Tensor::<2>::eye(width, &device);
                assert_close(backend, &products.into_data(), &identity.into_data(), 1e-5);
            }
        }
    }
}

#[test]
fn a_constant_start_is_that_constant() {
    let device = devices::any().autodiff();
    let module = SelfAttentionConfig::new(D_MODEL, 6)
        .with_initializer(Initializer::Constant { value: 0.25 })
        .init(&device);
    let weight = numbers(&module.query_key_value.weight.val());
    assert!(weight.iter().all(|&number| number == 0.25));
}
