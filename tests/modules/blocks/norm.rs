//! The norms on their own.

use burn::tensor::Tensor;

use super::{D_MODEL, by_hand, norms};
use crate::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

#[test]
fn norms_are_their_formulas_in_any_rank() {
    for (name, device) in devices::cpu() {
        for config in norms() {
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
fn nothing_in_nothing_out() {
    for (_, device) in devices::cpu() {
        for config in norms() {
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
