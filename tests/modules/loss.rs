//! The closed-form loss against Burn's, which differentiates it.

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn_models::loss::{smoothed_cross_entropy, validation_loss};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest},
    devices,
};

/// Logits from a small formula, and targets of which the last is padding.
fn case(device: &Device) -> (Tensor<3>, Tensor<2, Int>, Tensor<2>) {
    let logits: Vec<f32> = (0..2 * 3 * 7)
        .map(|i| ((i * 37 % 23) as f32 - 11.0) * 0.7)
        .collect();
    (
        Tensor::from_data(TensorData::new(logits, [2, 3, 7]), device),
        Tensor::from_data(TensorData::from([[3i64, 6, 2], [1, 2, 0]]), device),
        Tensor::from_data(TensorData::from([[1f32, 1., 1.], [1., 1., 0.]]), device),
    )
}

#[test]
fn value_and_gradient_are_those_of_burn() {
    let devices = devices::cpu().into_iter();
    let cases =
        devices.flat_map(|(_, device)| [0.0, 0.1].map(|smoothing| (device.clone(), smoothing)));
    for (device, smoothing) in cases {
        let device = device.autodiff();
        let (logits, expected, weights) = case(&device);
        let logits = logits.require_grad();
        let loss = smoothed_cross_entropy(logits.clone(), expected.clone(), weights, 5, smoothing);
        let gradient = logits.grad(&loss.surrogate.backward()).unwrap();

        let burn = CrossEntropyLossConfig::new()
            .with_pad_tokens(Some(vec![0]))
            .with_smoothing((smoothing > 0.0).then_some(smoothing as f32))
            .init(&device)
            .forward(logits.clone().reshape([6, 7]), expected.reshape([6]));
        let expected_gradient = logits.grad(&burn.backward()).unwrap();
        let (value, expected) = (loss.value.into_data(), burn.into_data());
        assert_close("loss", &value, &expected, 2e-6);
        let (gradient, expected) = (gradient.into_data(), expected_gradient.into_data());
        assert_close_to_largest("gradient", &gradient, &expected, 2e-6, 0.0);
    }
}

/// Half precision rounds the logits and their gradient, not what is between.
#[test]
fn the_loss_of_half_precision_is_computed_in_f32() {
    let cases = devices::cpu()
        .into_iter()
        .flat_map(|(_, device)| [DType::F16, DType::BF16].map(|dtype| (device.clone(), dtype)));
    for (device, dtype) in cases.filter(|(device, dtype)| device.supports_dtype(*dtype)) {
        let device = device.autodiff();
        let (logits, expected, weights) = case(&device);
        let logits = logits.cast(dtype);
        let step = |logits: Tensor<3>| {
            let logits = logits.detach().require_grad();
            let (expected, weights) = (expected.clone(), weights.clone());
            let loss = smoothed_cross_entropy(logits.clone(), expected, weights, 5, 0.1);
            let gradient = logits.grad(&loss.surrogate.backward()).unwrap();
            (loss.value.into_data(), gradient)
        };
        let (value, gradient) = step(logits.clone());
        let (expected_value, expected_gradient) = step(logits.cast(DType::F32));
        assert_eq!(value, expected_value, "{dtype:?}");
        assert_eq!(gradient.dtype(), dtype);
        let expected_gradient = expected_gradient.cast(dtype);
        assert_eq!(gradient.into_data(), expected_gradient.into_data());
    }
}

#[test]
fn validation_is_the_loss_without_smoothing() {
    let device = Device::default();
    let (logits, expected, weights) = case(&device);
    let valid = validation_loss(logits.clone(), expected.clone(), weights.clone(), 5);
    let training = smoothed_cross_entropy(logits, expected, weights, 5, 0.0);
    assert_eq!(
        valid.into_scalar::<f32>(),
        training.value.into_scalar::<f32>()
    );
}

#[test]
fn a_hopeless_prediction_has_a_finite_loss() {
    let device = Device::default();
    let logits = Tensor::<3>::from_data(TensorData::from([[[500f32, -500.0]]]), &device);
    let expected = Tensor::<2, Int>::from_data(TensorData::from([[1i64]]), &device);
    let loss = validation_loss(logits, expected, Tensor::ones([1, 1], &device), 1);
    assert_eq!(loss.into_scalar::<f32>(), 1000.0);
}

#[test]
fn a_token_that_cannot_be_has_no_share() {
    let device = Device::default();
    // The second token is padding.
    let logits = TensorData::from([[[f32::NEG_INFINITY, 0.0, 0.0]; 2]]);
    let logits = Tensor::<3>::from_data(logits, &device);
    let expected = Tensor::<2, Int>::from_data(TensorData::from([[1i64, 0]]), &device);
    let weights = Tensor::<2>::from_data([[1.0, 0.0]], &device);
    let loss = validation_loss(logits, expected, weights, 1);
    assert!((loss.into_scalar::<f32>() - 2f32.ln()).abs() < 1e-6);
}

#[test]
#[should_panic(expected = "loss: there are no tokens, only padding")]
fn padding_alone_is_refused() {
    let (logits, expected, weights) = case(&Device::default());
    validation_loss(logits, expected, weights.zeros_like(), 0);
}

#[test]
#[should_panic(expected = "loss: smoothing must be from 0 to 1, got 1.5")]
fn a_share_above_one_is_refused() {
    let (logits, expected, weights) = case(&Device::default().autodiff());
    smoothed_cross_entropy(logits, expected, weights, 5, 1.5);
}

#[test]
#[should_panic(
    expected = "loss: expected and weights are [2, 3] and [3, 2], but the logits are of [2, 3] tokens"
)]
fn weights_of_another_shape_are_refused() {
    let device = Device::default();
    let (logits, expected, weights) = case(&device);
    validation_loss(logits, expected, weights.swap_dims(0, 1), 5);
}
