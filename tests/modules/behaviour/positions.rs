//! Positions are the formula's, and a sequence may go on where it stopped.

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor},
};
use burn_attn::positions::{Learned, LearnedConfig, Positions, Sinusoidal, SinusoidalConfig};
use burn_attn_tests::{
    compare::{assert_same, numbers},
    devices,
    numbers::{filled, tensor},
};

const D_MODEL: usize = 15;
const MAX_LEN: usize = 5000;

fn sinusoidal(device: &Device) -> Sinusoidal {
    SinusoidalConfig::new(D_MODEL)
        .with_max_len(MAX_LEN)
        .init(device)
}

fn learned(device: &Device) -> Learned {
    filled(LearnedConfig::new(D_MODEL, 31).init(device), 1)
}

/// The table of a module: what it adds to zeros.
fn table(module: &Sinusoidal, len: usize, device: &Device) -> Vec<f32> {
    numbers(&module.forward(Tensor::zeros([1, len, D_MODEL], device)))
}

#[test]
fn sinusoidal_is_the_papers_formula() {
    for (_, device) in devices::cpu() {
        let table = table(&sinusoidal(&device), MAX_LEN, &device);
        for position in [0, 1, 2, 10, 511, 4999] {
            for i in 0..D_MODEL.div_ceil(2) {
                let angle = position as f64 / 10_000f64.powf(2.0 * i as f64 / D_MODEL as f64);
                let row = &table[position * D_MODEL..][..D_MODEL];
                assert_eq!(row[2 * i], angle.sin() as f32, "PE({position}, 2·{i})");
                // An odd width ends with a sine.
                if let Some(&cosine) = row.get(2 * i + 1) {
                    assert_eq!(cosine, angle.cos() as f32, "PE({position}, 2·{i} + 1)");
                }
            }
        }
    }
}

#[test]
fn sinusoidal_with_another_timescale() {
    let device = devices::any();
    let module = SinusoidalConfig::new(4)
        .with_max_timescale(100)
        .init(&device);
    let row = numbers(&module.forward_from(Tensor::zeros([1, 1, 4], &device), 7));
    let expected = [7f64.sin(), 7f64.cos(), 0.7f64.sin(), 0.7f64.cos()];
    assert_eq!(row, expected.map(|value| value as f32));
}

#[test]
fn a_sequence_goes_on_where_it_stopped() {
    for (_, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, 13, D_MODEL], 3, &device);
        let sinusoidal = sinusoidal(&device);
        let learned = learned(&device);
        let all = [sinusoidal.forward(x.clone()), learned.forward(x.clone())];
        for (first, len) in [(0, 13), (0, 1), (5, 3), (12, 1)] {
            let part = x.clone().narrow(1, first, len);
            let parts = [
                sinusoidal.forward_from(part.clone(), first),
                learned.forward_from(part, first),
            ];
            for (part, all) in parts.iter().zip(&all) {
                assert_same(part, &all.clone().narrow(1, first, len));
            }
        }
    }
}

#[test]
fn the_last_position_is_reached() {
    let device = devices::any();
    let x: Tensor<3> = tensor([1, 1, D_MODEL], 3, &device);
    let learned = learned(&device);
    let row = learned.table.val().narrow(0, 30, 1).unsqueeze::<3>();
    assert_same(&learned.forward_from(x.clone(), 30), &(x + row));
}

#[test]
fn only_used_rows_of_learned_positions_get_a_gradient() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let module = learned(&device);
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, &device);
        let weight: Tensor<3> = tensor([2, 7, D_MODEL], 4, &device);
        let loss = (module.forward_from(x, 5) * weight.clone()).sum();
        let table = module.table.val();
        let gradient = table.grad(&loss.backward()).expect("a gradient");
        // Both batch items use the same rows.
        let used = weight.sum_dim(0).squeeze_dim::<2>(0).inner();
        assert_same(&gradient.clone().narrow(0, 5, 7), &used);
        let unused = Tensor::cat(
            vec![gradient.clone().narrow(0, 0, 5), gradient.narrow(0, 12, 19)],
            0,
        );
        assert!(numbers(&unused).iter().all(|&number| number == 0.0));
    }
}

#[test]
fn sinusoidal_has_nothing_to_learn_and_moves_with_its_module() {
    for (_, device) in devices::cpu() {
        let module = sinusoidal(&device);
        assert_eq!(module.num_params(), 0);
        for (_, other) in devices::cpu() {
            let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, &other);
            let moved = module.clone().to_device(&other).forward(x.clone());
            assert_same(&moved, &sinusoidal(&other).forward(x));
        }
        // A gradient passes through unchanged.
        let training = device.autodiff();
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, &training).require_grad();
        let gradients = sinusoidal(&training).forward(x.clone()).sum().backward();
        let gradient = x.grad(&gradients).expect("the gradient of the input");
        assert!(numbers(&gradient).iter().all(|&number| number == 1.0));
    }
}

#[test]
fn tables_follow_the_type_of_the_input() {
    for (_, device) in devices::cpu() {
        let x = Tensor::<3>::zeros([2, 5, D_MODEL], (&device, DType::F64));
        let last = MAX_LEN - 5;
        for (positions, offsets) in [
            (Positions::from(last), [last, last]),
            (Positions::from(vec![3, last]), [3, last]),
            (
                Positions::padded(vec![last + 2, 7], vec![3, 5]),
                [last + 2, 7],
            ),
        ] {
            let output = sinusoidal(&device).forward_from(x.clone(), positions);
            assert_eq!(output.dtype(), DType::F64);
            let output: Vec<f64> = output.into_data().iter().collect();
            for (row, numbers) in output.chunks(D_MODEL).enumerate() {
                let position = offsets[row / 5] + row % 5;
                // The last two of the third case are padding.
                if position >= MAX_LEN {
                    continue;
                }
                for (column, &number) in numbers.iter().enumerate() {
                    let exponent = (column / 2 * 2) as f64 / D_MODEL as f64;
                    let angle = position as f64 / 10_000f64.powf(exponent);
                    let expected = [angle.sin(), angle.cos()][column % 2];
                    assert!((number - expected).abs() < 1e-15, "{position}, {column}");
                }
            }
            let empty = Tensor::<3>::zeros([2, 0, D_MODEL], (&device, DType::F64));
            assert_eq!(
                sinusoidal(&device).forward_from(empty, 3).dims(),
                [2, 0, D_MODEL]
            );
        }
    }
}
