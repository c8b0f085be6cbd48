//! One table embeds the tokens on the way in and scores them on the way out, and learns from both.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};
use burn_attn_tests::{compare::numbers, devices, numbers::tensor};

use super::{VOCABULARY, batch, model, sources};

/// Which rows of the table have a gradient.
fn touched(gradient: &Tensor<2>) -> Vec<i32> {
    numbers(gradient)
        .chunks(15)
        .enumerate()
        .filter(|(_, row)| row.iter().any(|&number| number != 0.0))
        .map(|(token, _)| token as i32)
        .collect()
}

#[test]
fn the_way_in_touches_the_tokens_of_the_source() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let model = model(1, &device);
        let (tokens, lengths) = batch(&[vec![5, 6, 7], vec![7, 9, 10]], 0, 3, &device);
        let states = model.encode(tokens, &lengths).states;
        let loss = (states * tensor([2, 3, 15], 3, &device)).sum();
        let table = model.embedding.weight.val();
        let gradient = table
            .grad(&loss.backward())
            .expect("the gradient of the table");
        assert_eq!(touched(&gradient), [5, 6, 7, 9, 10]);
    }
}

#[test]
fn the_way_out_touches_every_token() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let model = model(1, &device);
        let (tokens, lengths) = batch(&sources(), 0, 5, &device);
        let target = Tensor::<2, Int>::from_data([[0, 2], [0, 3], [0, 4]], &device);
        let logits = model.forward(tokens, &lengths, target);
        let loss = (logits * tensor([3, 2, VOCABULARY], 3, &device)).sum();
        let table = model.embedding.weight.val();
        let gradient = table
            .grad(&loss.backward())
            .expect("the gradient of the table");
        assert_eq!(
            touched(&gradient),
            (0..VOCABULARY as i32).collect::<Vec<_>>()
        );
    }
}

#[test]
fn both_ways_add_up() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let model = model(1, &device);
        let (tokens, lengths) = batch(&[vec![5, 6, 7]], 0, 3, &device);
        let target = Tensor::<2, Int>::from_data([[0, 2]], &device);
        let logits = model.forward(tokens, &lengths, target);
        // Token 11 is nowhere in the input: its row is touched on the way out alone, the others on the way in alone.
        let loss = logits.slice([0..1, 0..2, 11..12]).sum();
        let table = model.embedding.weight.val();
        let gradient = table
            .grad(&loss.backward())
            .expect("the gradient of the table");
        assert_eq!(touched(&gradient), [0, 2, 5, 6, 7, 11]);
    }
}

#[test]
fn there_is_one_table() {
    let model = model(1, &devices::any());
    let table = VOCABULARY * 15;
    assert_eq!(model.num_params() - model.transformer.num_params(), table);
}
