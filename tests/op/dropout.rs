//! Dropout on the weights: counter-based, the same everywhere, gone at probability 0.

use burn::tensor::{DType, Device, Distribution, Tensor, TensorData};
use burn_attn::{
    AttentionOptions,
    ops::{attention, next_dropout_seed},
};
use burn_attn_tests::{compare::numbers, devices, numbers::uniform};

use crate::{case::Case, properties::output_with};

/// The output of the usual case with dropout of this probability and seed.
fn output(device: &Device, dropout: Option<(f64, u64)>) -> Vec<f32> {
    let options = AttentionOptions::default();
    let options = match dropout {
        Some((probability, seed)) => options.dropout(probability, seed),
        None => options,
    };
    numbers(&output_with(&Case::usual("dropout"), device, options))
}

#[test]
fn probability_zero_is_no_dropout() {
    for device in devices::all() {
        assert_eq!(output(&device, Some((0.0, 1))), output(&device, None));
    }
}

#[test]
fn the_seed_decides_and_nothing_else() {
    for device in devices::all() {
        let with = |seed| output(&device, Some((0.5, seed)));
        assert_eq!(with(5), with(5));
        assert_ne!(with(5), with(6));
        assert_ne!(with(5), output(&device, None));
    }
}

/// What two layers, or two steps, take from the stream of seeds.
#[test]
fn seeds_of_two_calls_drop_other_weights() {
    let device = devices::any();
    let [first, second] = [(); 2].map(|()| output(&device, Some((0.5, next_dropout_seed()))));
    assert_ne!(first, second);
}

#[test]
fn the_mean_over_many_weights_is_kept() {
    for device in devices::all() {
        // Equal scores and values of one: each output is the kept fraction of its row, scaled back.
        let query = Tensor::<4>::zeros([4, 4, 64, 8], &device);
        let key = Tensor::<4>::random([4, 4, 256, 8], Distribution::Default, &device);
        let value = Tensor::<4>::ones([4, 4, 256, 1], &device);
        let options = AttentionOptions::default().dropout(0.3, 9);
        let mean = attention(query, key, value, options)
            .mean()
            .into_scalar::<f32>();
        // 262,144 weights: the deviation of the mean is √(0.3 / 0.7 / 262144) = 0.0013.
        assert!((mean - 1.0).abs() < 5.0 * 0.0013, "mean {mean}");
    }
}

#[test]
fn what_is_kept_of_a_sublayer_is_scaled_in_its_own_precision() {
    for (name, device) in devices::cpu() {
        println!("on {name}");
        for (dtype, scale) in [
            (DType::F64, 1.0 / 0.9),
            (DType::F32, f64::from(1.0_f32 / 0.9)),
        ] {
            let ones = Tensor::<2>::ones([31, 37], (&device, dtype));
            let dropped = burn_attn::ops::dropout(ones, 0.1, 5).into_data();
            let kept = dropped.iter::<f64>().filter(|&x| x != 0.0);
            let epsilon = if dtype == DType::F64 { 1e-15 } else { 1e-7 };
            let mut count = 0;
            for number in kept {
                assert!((number - scale).abs() <= epsilon, "{number} in {dtype:?}");
                count += 1;
            }
            assert!((900..1147).contains(&count), "{count}");
        }
    }
}

/// What is kept, and its gradient, are larger by the scale that f32 has, whatever number the scale itself would become in half precision.
#[cfg(feature = "flex")]
#[test]
fn the_mean_is_kept_in_half_precision() {
    let (scale, device) = (1.0 / 0.9, Device::flex().autodiff());
    for dtype in [DType::BF16, DType::F16] {
        // Numbers of many sizes, whose rounding errors cancel; none is zero.
        let x: Vec<f32> = (uniform(3, 31 * 1009).iter())
            .map(|x| 1.5 + 0.49 * x)
            .collect();
        let x = TensorData::new(x, [31, 1009]);
        let x = Tensor::<2>::from_data(x, (&device, dtype)).require_grad();
        let y = burn_attn::ops::dropout(x.clone(), 0.1, 5);
        assert_eq!(y.dtype(), dtype);
        let gradients = (y.clone() * x.clone().detach()).sum().backward();
        let gradient = x.grad(&gradients).expect("the gradient of the input");
        let x: Vec<f64> = x.into_data().iter().collect();
        for (name, y) in [("output", y.inner()), ("gradient", gradient)] {
            let y: Vec<f64> = y.into_data().iter().collect();
            let kept = x.iter().zip(&y).filter(|(_, y)| **y != 0.0);
            let (before, after) = kept.fold((0.0, 0.0), |sums, (x, y)| (sums.0 + x, sums.1 + y));
            let error = after / before / scale - 1.0;
            // In bf16 a number that was scaled is off by 0.1 %, a mean of 28,000 of them by a hundredth of that.
            assert!(
                error.abs() < 1e-4,
                "{name} in {dtype:?}: off by {error:.1e}"
            );
        }
    }
}

/// The factors are constants, whatever a device keeps for the backward pass.
#[test]
fn gradient_checkpointing_changes_no_gradient_of_dropout() {
    for (name, device) in devices::cpu() {
        let gradient = |device: Device| {
            let x = TensorData::new(uniform(3, 20 * 30), [20, 30]);
            let x = Tensor::<2>::from_data(x, (&device, DType::F32)).require_grad();
            let y = burn_attn::ops::dropout(x.clone(), 0.5, 5);
            let gradients = y.square().sum().backward();
            x.grad(&gradients)
                .expect("the gradient of the input")
                .into_data()
        };
        let plain = gradient(device.clone().autodiff());
        let checkpointed = gradient(device.autodiff().gradient_checkpointing());
        assert_eq!(checkpointed, plain, "{name}");
    }
}
