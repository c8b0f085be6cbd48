//! Rotary positions against complex numbers in f64.

use burn::{
    module::Module,
    tensor::{DType, Device, FloatDType, Tensor, TensorData},
};
use burn_attn::{
    ops::split_heads,
    positions::{Positions, Rotary, RotaryConfig, RotaryLayout, SinusoidalConfig},
};
use burn_attn_tests::{
    compare::{assert_close, assert_same, difference, numbers},
    devices,
    numbers::tensor,
};

const BATCH: usize = 2;
const HEADS: usize = 3;
const LEN: usize = 5;
/// Seven pairs.
const D_HEAD: usize = 14;
const MAX_LEN: usize = 1009;
const SHAPE: [usize; 4] = [BATCH, HEADS, LEN, D_HEAD];
const LAYOUTS: [RotaryLayout; 2] = [RotaryLayout::HalfSplit, RotaryLayout::Interleaved];

fn config(layout: RotaryLayout) -> RotaryConfig {
    RotaryConfig::new()
        .with_max_len(MAX_LEN)
        .with_layout(layout)
}

/// The two numbers of a pair, and its angle per token: equation 34 of RoFormer (arXiv:2104.09864).
fn pair(layout: RotaryLayout, rotary_dim: usize, i: usize) -> ([usize; 2], f64) {
    let angle = 10_000f64.powf(-2.0 * i as f64 / rotary_dim as f64);
    match layout {
        RotaryLayout::HalfSplit => ([i, i + rotary_dim / 2], angle),
        RotaryLayout::Interleaved => ([2 * i, 2 * i + 1], angle),
    }
}

/// `(a + ib) · e^(i · turns · angle)` for every pair, one by one.
fn naive(
    x: &Tensor<4>,
    layout: RotaryLayout,
    rotary_dim: usize,
    turns: impl Fn(usize, usize) -> f64,
) -> TensorData {
    let [batch, heads, len, d_head] = x.dims();
    let mut values: Vec<f64> = x.to_data().iter::<f64>().collect();
    for (row, values) in values.chunks_mut(d_head).enumerate() {
        let turns = turns(row / len / heads, row % len);
        for i in 0..rotary_dim / 2 {
            let ([a, b], angle) = pair(layout, rotary_dim, i);
            let (sin, cos) = (turns * angle).sin_cos();
            let (real, imaginary) = (values[a], values[b]);
            values[a] = real * cos - imaginary * sin;
            values[b] = real * sin + imaginary * cos;
        }
    }
    TensorData::new(values, [batch, heads, len, d_head])
}

#[test]
fn a_rotation_of_complex_numbers() {
    for (name, device) in devices::cpu() {
        let x = tensor(SHAPE, 1, &device);
        for layout in LAYOUTS {
            for rotary_dim in [2, 6, D_HEAD] {
                let rotary = config(layout)
                    .with_rotary_dim(rotary_dim)
                    .init(D_HEAD, &device);
                // The last one ends at the last position.
                for offset in [0, 1, 97, MAX_LEN - LEN] {
                    let expected = naive(&x, layout, rotary_dim, |_, i| (offset + i) as f64);
                    let actual = rotary.forward(x.clone(), &Positions::Offset(offset));
                    let what = format!("{name}, {layout:?}, {rotary_dim} numbers from {offset}");
                    assert_close(&what, &actual.to_data(), &expected, 2e-7);
                }
            }
        }
    }
}

#[test]
fn the_numbers_that_anyone_can_check() {
    // One pair: (1, 0) at position 1 becomes (cos 1, sin 1), and (0, 1) becomes (−sin 1, cos 1).
    let device = devices::any();
    for layout in LAYOUTS {
        let rotary = config(layout).init(2, &device);
        let x = Tensor::<4>::from_data([[[[1.0, 0.0]], [[0.0, 1.0]]]], &device);
        let rotated = numbers(&rotary.forward(x, &Positions::Offset(1)));
        assert_eq!(
            rotated,
            [0.540_302_3, 0.841_470_96, -0.841_470_96, 0.540_302_3]
        );
    }
}

#[test]
fn position_zero_changes_nothing() {
    for (_, device) in devices::cpu() {
        for layout in LAYOUTS {
            let x = tensor([BATCH, HEADS, 1, D_HEAD], 1, &device);
            let rotary = config(layout).init(D_HEAD, &device);
            let rotated = rotary.forward(x.clone(), &Positions::default());
            assert_same(&rotated, &x);
        }
    }
}

#[test]
fn scores_depend_on_distance_only() {
    let wide = |data: &TensorData| data.iter::<f64>().collect::<Vec<_>>();
    for (name, device) in devices::cpu() {
        let query = tensor([1, HEADS, 1, D_HEAD], 1, &device);
        let key = tensor([1, HEADS, 1, D_HEAD], 2, &device);
        for layout in LAYOUTS {
            let rotary = config(layout).init(D_HEAD, &device);
            let score = |query_at: usize, key_at: usize| {
                let query = rotary.forward(query.clone(), &Positions::Offset(query_at));
                let key = rotary.forward(key.clone(), &Positions::Offset(key_at));
                (query * key).sum_dim(3)
            };
            for distance in [0, 1, 5, 331] {
                let expected = score(distance, 0).to_data();
                for key_at in [1, 13, 600] {
                    let what = format!("{name}, {layout:?}, distance {distance} at {key_at}");
                    let actual = score(key_at + distance, key_at).to_data();
                    // The sums cancel: they are as exact as what they add up.
                    let error = difference(&wide(&actual), &wide(&expected));
                    assert!(error <= 2e-6, "{what}: off by {error:.1e}");
                }
            }
            // So they do depend on it.
            assert_ne!(numbers(&score(5, 0)), numbers(&score(0, 0)));
        }
    }
}

#[test]
fn both_layouts_are_the_same_rotation_of_permuted_numbers() {
    for (_, device) in devices::cpu() {
        for rotary_dim in [6, D_HEAD] {
            let rotate = |layout, x| {
                let config = config(layout).with_rotary_dim(rotary_dim);
                let rotary = config.init(D_HEAD, &device);
                rotary.forward(x, &Positions::Offset(7))
            };
            // Half-split number `n` is interleaved number `order[n]`.
            let mut order: Vec<i64> = (0..D_HEAD as i64).collect();
            for i in 0..rotary_dim / 2 {
                let ([first, second], _) = pair(RotaryLayout::HalfSplit, rotary_dim, i);
                order[first] = 2 * i as i64;
                order[second] = 2 * i as i64 + 1;
            }
            let permute = |x: Tensor<4>| {
                let order = Tensor::from_data(order.as_slice(), &device);
                x.select(3, order)
            };
            let x = tensor(SHAPE, 1, &device);
            let interleaved = rotate(RotaryLayout::Interleaved, x.clone());
            let half_split = rotate(RotaryLayout::HalfSplit, permute(x));
            assert_same(&permute(interleaved), &half_split);
        }
    }
}

#[test]
fn numbers_beyond_rotary_dim_are_untouched() {
    for (_, device) in devices::cpu() {
        let x = tensor(SHAPE, 1, &device);
        for layout in LAYOUTS {
            let partial = config(layout).with_rotary_dim(6).init(D_HEAD, &device);
            let rotated = partial.forward(x.clone(), &Positions::Offset(7));
            assert_same(&rotated.clone().narrow(3, 6, 8), &x.clone().narrow(3, 6, 8));
            // What is rotated is a narrower head.
            let narrow = config(layout).init(6, &device);
            let expected = narrow.forward(x.clone().narrow(3, 0, 6), &Positions::Offset(7));
            assert_same(&rotated.narrow(3, 0, 6), &expected);
        }
    }
}

#[test]
fn a_view_of_a_projection_is_rotated_as_its_copy() {
    for (_, device) in devices::cpu() {
        let projection = tensor([BATCH, LEN, 3 * HEADS * D_HEAD], 1, &device);
        let [_, key, _] = split_heads(projection, [HEADS; 3]);
        let copy = Tensor::from_data(key.to_data(), &device);
        for layout in LAYOUTS {
            for rotary_dim in [6, D_HEAD] {
                let config = config(layout).with_rotary_dim(rotary_dim);
                let rotary = config.init(D_HEAD, &device);
                let rotate = |x| rotary.forward(x, &Positions::Offset(7));
                assert_same(&rotate(key.clone()), &rotate(copy.clone()));
            }
        }
    }
}

#[test]
fn the_gradient_is_rotated_back() {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        for layout in LAYOUTS {
            for rotary_dim in [6, D_HEAD] {
                let config = config(layout).with_rotary_dim(rotary_dim);
                let rotary = config.init(D_HEAD, &device);
                let x = tensor(SHAPE, 1, &device).require_grad();
                let upstream = tensor(SHAPE, 2, &device);
                let rotated = rotary.forward(x.clone(), &Positions::from(vec![7, 331]));
                let gradients = (rotated * upstream.clone()).sum().backward();
                let gradient = x.grad(&gradients).expect("the gradient of the input");
                let expected = naive(&upstream, layout, rotary_dim, |sequence, i| {
                    -(([7, 331][sequence] + i) as f64)
                });
                let what = format!("{name}, {layout:?}, {rotary_dim} numbers");
                assert_close(&what, &gradient.to_data(), &expected, 2e-7);
            }
        }
    }
}

/// Flex alone computes in half precision.
#[test]
#[cfg(feature = "flex")]
fn tables_follow_the_type_of_the_input() {
    let device = Device::flex();
    let tolerances = [(DType::F64, 2e-15), (DType::F16, 2e-3), (DType::BF16, 2e-2)];
    let each = [331, 7].map(|offset| (offset..offset + LEN).collect());
    for (dtype, tolerance) in tolerances {
        let x = tensor(SHAPE, 1, &device).cast(dtype);
        for layout in LAYOUTS {
            let rotary = config(layout).init(D_HEAD, &device);
            for (positions, offsets) in [
                (Positions::Offset(331), [331, 331]),
                (Positions::Offsets(vec![331, 7]), [331, 7]),
                (Positions::PerToken(each.to_vec()), [331, 7]),
            ] {
                let rotated = rotary.forward(x.clone(), &positions);
                assert_eq!(rotated.dtype(), dtype);
                let expected = naive(&x, layout, D_HEAD, |sequence, i| {
                    (offsets[sequence] + i) as f64
                });
                let what = format!("{dtype:?}, {layout:?}, {positions:?}");
                assert_close(&what, &rotated.to_data(), &expected, tolerance);
            }
        }
    }
}

/// A process sets the default type of a device once, so this test runs itself in a process of its own.
#[test]
#[cfg(feature = "flex")]
fn tables_are_not_rounded_to_the_default_type() {
    const ALONE: &str = "BURN_ATTN_TEST_BF16";
    if std::env::var_os(ALONE).is_none() {
        // Not `current_exe`, which is the loader where cargo's runner is one.
        let program = std::env::args_os().next().expect("a program");
        let name = "positions::rotary::tables_are_not_rounded_to_the_default_type";
        let mut process = std::process::Command::new(program);
        process.args(["--exact", name]).env(ALONE, "1");
        let output = process.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let mut device = Device::flex();
    let configured = device.configure(FloatDType::BF16);
    configured.expect("there are no tensors yet");
    let x = tensor(SHAPE, 1, &device).cast(DType::F32);
    let layout = RotaryLayout::HalfSplit;
    let rotary = config(layout).init(D_HEAD, &device);
    let rotated = rotary.forward(x.clone(), &Positions::Offset(331));
    let expected = naive(&x, layout, D_HEAD, |_, i| (331 + i) as f64);
    assert_close("rotary", &rotated.to_data(), &expected, 1e-6);
    let sinusoidal = SinusoidalConfig::new(2).with_max_len(MAX_LEN).init(&device);
    let zeros = Tensor::zeros([1, 1, 2], (&device, DType::F32));
    let wave = sinusoidal.forward_from(zeros, 331).to_data();
    let expected = TensorData::from([[[331f64.sin(), 331f64.cos()]]]);
    assert_close("sinusoidal", &wave, &expected, 1e-6);
}

#[test]
fn nothing_to_rotate() {
    for (_, device) in devices::cpu() {
        for layout in LAYOUTS {
            let rotary = config(layout).init(D_HEAD, &device);
            for (shape, positions) in [
                ([0, HEADS, LEN, D_HEAD], Positions::Offsets(vec![])),
                ([BATCH, HEADS, 0, D_HEAD], Positions::Offset(MAX_LEN)),
            ] {
                let rotated = rotary.forward(Tensor::zeros(shape, &device), &positions);
                assert_eq!(rotated.dims(), shape);
            }
        }
    }
}

#[test]
fn the_tables_are_no_parameters_and_move_with_their_module() {
    let rotate = |rotary: &Rotary, device: &Device| {
        let x = tensor(SHAPE, 1, device);
        rotary.forward(x, &Positions::from(vec![7, 331]))
    };
    for (_, device) in devices::cpu() {
        let rotary = config(RotaryLayout::Interleaved).init(D_HEAD, &device);
        assert_eq!(rotary.num_params(), 0);
        for (_, other) in devices::cpu() {
            let expected = config(RotaryLayout::Interleaved).init(D_HEAD, &other);
            let expected = rotate(&expected, &other);
            for moved in [
                rotary.clone().to_device(&other),
                rotary.clone().fork(&other),
            ] {
                assert_eq!(moved.devices(), std::slice::from_ref(&other));
                assert_same(&rotate(&moved, &other), &expected);
            }
        }
        // A trained module and its inference twin.
        let training = config(RotaryLayout::Interleaved).init(D_HEAD, &device.clone().autodiff());
        assert_same(
            &rotate(&training.valid(), &device),
            &rotate(&rotary, &device),
        );
    }
}
