//! One table, both ways.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn::{TiedEmbedding, TiedEmbeddingConfig, softcap};
use burn_attn_tests::{
    compare::{assert_close, numbers},
    devices,
    numbers::{alone, filled, tensor},
    parameters,
};

use super::D_MODEL;

const VOCABULARY: usize = 23;

fn embedding(scaled: bool, device: &Device) -> TiedEmbedding {
    let config = TiedEmbeddingConfig::new(VOCABULARY, D_MODEL).with_scaled(scaled);
    filled(config.init(device), 1)
}

fn tokens(device: &Device) -> Tensor<2, Int> {
    Tensor::from_data([[5, 6, 7], [8, 22, 0]], device)
}

#[test]
fn tokens_are_rows_of_the_table() {
    for (name, device) in devices::cpu() {
        for (scaled, factor) in [(false, 1.0), (true, 15f64.sqrt())] {
            let module = embedding(scaled, &device);
            let x = module.forward(tokens(&device));
            let rows = Tensor::<1, Int>::from_data([5, 6, 7, 8, 22, 0], &device);
            let expected = module.weight.val().select(0, rows) * factor;
            let expected = expected.reshape([2, 3, D_MODEL]);
            assert_close(name, &x.to_data(), &expected.to_data(), 1e-6);
        }
    }
}

#[test]
fn logits_are_products_with_the_rows_whatever_the_scale() {
    for (name, device) in devices::cpu() {
        for scaled in [false, true] {
            let module = embedding(scaled, &device);
            let states: Tensor<3> = tensor([2, 7, D_MODEL], 3, &device);
            let rows: Tensor<4> = module.weight.val().unsqueeze();
            let expected = (states.clone().unsqueeze_dim::<4>(2) * rows).sum_dim(3);
            let expected = expected.squeeze_dim::<3>(3).to_data();
            let logits = module.logits(states.clone());
            assert_eq!(logits.dims(), [2, 7, VOCABULARY]);
            assert_close(name, &logits.to_data(), &expected, 1e-6);
            let rows = module.logits(states.reshape([14, D_MODEL]));
            let rows = rows.reshape([2, 7, VOCABULARY]);
            assert_close(name, &rows.to_data(), &expected, 1e-6);
        }
    }
}

#[test]
fn factors_and_bias_are_where_they_belong() {
    for (name, device) in devices::cpu() {
        let config = TiedEmbeddingConfig::new(VOCABULARY, D_MODEL);
        let plain = filled(config.clone().with_scaled(false).init(&device), 1);
        // The factor of its own counts, whatever `scaled` says.
        for scaled in [false, true] {
            let config = config.clone().with_scaled(scaled).with_bias(true);
            let config = config.with_input_factor(12.0).with_output_factor(0.25);
            let initial = config.init(&device);
            let bias = initial.bias.as_ref().expect("a bias").val();
            assert_eq!(numbers(&bias), [0.0; VOCABULARY]);
            let module = parameters::replace(initial, |path, shape| match path {
                "weight" => numbers(&plain.weight.val()),
                "bias" => (0..shape[0]).map(|token| token as f32 / 7.0).collect(),
                other => panic!("{other}"),
            });
            let expected = (plain.forward(tokens(&device)) * 12.0).to_data();
            assert_close(
                name,
                &module.forward(tokens(&device)).to_data(),
                &expected,
                1e-6,
            );
            let states: Tensor<3> = tensor([2, 7, D_MODEL], 3, &device);
            let bias = module.bias.as_ref().expect("a bias").val();
            let expected = plain.logits(states.clone()) * 0.25 + bias.unsqueeze();
            let logits = module.logits(states).to_data();
            assert_close(name, &logits, &expected.to_data(), 1e-6);
        }
    }
}

#[test]
fn softcap_is_its_formula() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let logits = [-1000.0, -31.0, -0.5, 0.0, 2.0, 29.0, 500.0];
        let data = TensorData::new(logits.to_vec(), [7]);
        let x = Tensor::<1>::from_data(data, (&device, DType::F64)).require_grad();
        let capped = softcap(x.clone(), 30.0);
        let gradient = x
            .grad(&capped.clone().sum().backward())
            .expect("a gradient");
        let [capped, gradient] = [capped.inner(), gradient]
            .map(|tensor| tensor.into_data().iter::<f64>().collect::<Vec<f64>>());
        for (index, logit) in logits.into_iter().enumerate() {
            let tanh = (logit / 30.0f64).tanh();
            assert!((capped[index] - 30.0 * tanh).abs() < 1e-12, "{logit}");
            assert!(
                (gradient[index] - (1.0 - tanh * tanh)).abs() < 1e-12,
                "{logit}"
            );
        }
    }
}

#[test]
#[should_panic(expected = "softcap: cap must be positive and finite, got -1")]
fn a_negative_cap_is_refused() {
    softcap(Tensor::<1>::zeros([1], &devices::any()), -1.0);
}

#[test]
fn the_table_learns_from_both_ways() {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        let module = embedding(true, &device);
        let gradient = |loss: Tensor<1>| {
            let table = module.weight.val();
            table
                .grad(&loss.backward())
                .expect("the gradient of the table")
        };
        let goal = || tensor([2, 3, D_MODEL], 3, &device);
        let way_in = || (module.forward(tokens(&device)) * goal()).sum();
        let way_out = || module.logits(goal()).square().sum();
        let touched = |gradient: &Tensor<2>| -> Vec<usize> {
            let rows = numbers(gradient);
            let rows = rows.chunks(D_MODEL).enumerate();
            let rows = rows.filter(|(_, row)| row.iter().any(|&number| number != 0.0));
            rows.map(|(token, _)| token).collect()
        };
        let (of_in, of_out) = (gradient(way_in()), gradient(way_out()));
        assert_eq!(touched(&of_in), [0, 5, 6, 7, 8, 22]);
        assert_eq!(touched(&of_out).len(), VOCABULARY);
        let both = gradient(way_in() + way_out());
        assert_close(name, &both.to_data(), &(of_in + of_out).to_data(), 1e-5);
    }
}

#[test]
fn it_starts_with_tokens_and_logits_of_variance_one() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        burn_attn::seed(&device, 7);
        let module = TiedEmbeddingConfig::new(211, 61).init(&device);
        let variance = |numbers: Vec<f32>| {
            let squares: f32 = numbers.iter().map(|number| number * number).sum();
            squares / numbers.len() as f32
        };
        let all = Tensor::<1, Int>::arange(0..211, &device).unsqueeze();
        let embedded = variance(numbers(&module.forward(all)));
        assert!((embedded - 1.0).abs() < 0.1, "{embedded}");
        // Uniform numbers in [-1, 1) have a variance of 1 / 3.
        let states: Tensor<2> = tensor([97, 61], 3, &device) * 3f64.sqrt();
        let logits = variance(numbers(&module.logits(states)));
        assert!((logits - 1.0).abs() < 0.1, "{logits}");
    }
}

#[test]
fn empty_input_gives_empty_output() {
    for (_, device) in devices::cpu() {
        let module = embedding(true, &device);
        for [batch, len] in [[0, 3], [2, 0]] {
            let x = module.forward(Tensor::zeros([batch, len], &device));
            assert_eq!(x.dims(), [batch, len, D_MODEL]);
            assert_eq!(module.logits(x).dims(), [batch, len, VOCABULARY]);
        }
    }
}

/// A sum of ones ends at 256 in bf16.
#[cfg(feature = "flex")]
#[test]
fn half_precision_adds_up_the_gradient_of_a_frequent_token() {
    let device = Device::flex().autodiff();
    let config = TiedEmbeddingConfig::new(VOCABULARY, D_MODEL).with_scaled(false);
    let module = parameters::in_dtype(config.init(&device), DType::BF16);
    let tokens = Tensor::<2, Int>::full([1, 1009], 3, &device);
    let rows = module.forward(tokens);
    assert_eq!(rows.dtype(), DType::BF16);
    let table = module.weight.val();
    let gradient = table.grad(&rows.sum().backward()).expect("a gradient");
    assert_eq!(gradient.dtype(), DType::BF16);
    let of_token: Vec<f32> = gradient.narrow(0, 3, 1).into_data().iter().collect();
    // The nearest number to 1009.
    assert_eq!(of_token, [1008.0; D_MODEL]);
}
