//! One table, both ways.

use burn::tensor::{Device, Int, Tensor};
use burn_attn::{TiedEmbedding, TiedEmbeddingConfig};

use super::D_MODEL;
use crate::{
    compare::{assert_close, numbers},
    devices,
    numbers::{alone, filled, tensor},
};

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
fn nothing_in_nothing_out() {
    for (_, device) in devices::cpu() {
        let module = embedding(true, &device);
        for [batch, len] in [[0, 3], [2, 0]] {
            let x = module.forward(Tensor::zeros([batch, len], &device));
            assert_eq!(x.dims(), [batch, len, D_MODEL]);
            assert_eq!(module.logits(x).dims(), [batch, len, VOCABULARY]);
        }
    }
}
