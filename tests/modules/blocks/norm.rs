//! The norms on their own.

use burn::tensor::{DType, Tensor};
use burn_attn::NormConfig;
use burn_attn_tests::{
    compare::{assert_close, assert_same, numbers},
    devices,
    numbers::{filled, tensor},
    parameters,
};

use super::{D_MODEL, by_hand, norms};

/// The norms of the blocks, and each with a unit offset.
fn every_norm() -> Vec<NormConfig> {
    let with_offset = norms().map(NormConfig::with_unit_offset);
    norms().into_iter().chain(with_offset).collect()
}

#[test]
fn norms_are_their_formulas_in_any_rank() {
    for (name, device) in devices::cpu() {
        for config in every_norm() {
            let module = filled(config.init(D_MODEL, &device), 1);
            // Far from zero, so that subtracting the mean is seen.
            let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, &device) + 2.0;
            let expected = by_hand::norm(&config, &module, x.clone()).to_data();
            let actual = module.forward(x.clone());
            assert_close(name, &actual.to_data(), &expected, 1e-6);
            let rows = module.forward(x.reshape([14, D_MODEL]));
            let rows = rows.reshape([2, 7, D_MODEL]);
            assert_close(name, &rows.to_data(), &expected, 1e-6);
        }
    }
}

#[test]
fn empty_input_gives_empty_output() {
    for (_, device) in devices::cpu() {
        for config in every_norm() {
            let module = filled(config.init(D_MODEL, &device), 1);
            for shape in [[0, 7, D_MODEL], [2, 0, D_MODEL]] {
                assert_eq!(
                    module.forward(Tensor::<3>::zeros(shape, &device)).dims(),
                    shape
                );
            }
        }
    }
}

/// What is stored is the distance from 1: weight decay pulls the factor there, and norms start alike.
#[test]
fn a_unit_offset_is_stored_as_the_distance_from_one() {
    for (name, device) in devices::cpu() {
        for config in norms() {
            let plain = config.init(D_MODEL, &device);
            let offset = config.clone().with_unit_offset().init(D_MODEL, &device);
            assert_eq!(numbers(&plain.gamma.val()), [1.0; D_MODEL]);
            assert_eq!(numbers(&offset.gamma.val()), [0.0; D_MODEL]);
            let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, &device) + 2.0;
            let expected = plain.forward(x.clone()).to_data();
            assert_close(name, &offset.forward(x).to_data(), &expected, 0.0);
        }
    }
}

/// `1 + 1/512` is 1 in bf16.
#[cfg(feature = "flex")]
#[test]
fn half_precision_keeps_a_small_distance_from_one() {
    let device = burn::tensor::Device::flex();
    let x: Tensor<2> = tensor([7, D_MODEL], 3, &device);
    let x = x.cast(DType::BF16);
    for config in norms() {
        let norm = config.with_unit_offset().init(D_MODEL, &device);
        let norm = parameters::replace(norm, |path, _| match path {
            "gamma" => vec![1.0 / 512.0; D_MODEL],
            _ => vec![0.0; D_MODEL],
        });
        let expected = norm.forward(x.clone().cast(DType::F32)).cast(DType::BF16);
        let actual = parameters::in_dtype(norm, DType::BF16).forward(x.clone());
        assert_eq!(actual.dtype(), DType::BF16);
        assert_same(&actual, &expected);
    }
}

/// In training Burn computes a layer norm by operations that would each round.
#[cfg(feature = "flex")]
#[test]
fn half_precision_rounds_a_norm_once_in_training_too() {
    let device = burn::tensor::Device::flex().autodiff();
    let x: Tensor<2> = tensor([7, D_MODEL], 3, &device) * 3.0 + 2.0;
    let x = x.cast(DType::BF16);
    for config in norms() {
        let norm = config.init(D_MODEL, &device);
        let expected = norm.forward(x.clone().cast(DType::F32)).cast(DType::BF16);
        let actual = parameters::in_dtype(norm, DType::BF16).forward(x.clone());
        assert_same(&actual, &expected);
    }
}
