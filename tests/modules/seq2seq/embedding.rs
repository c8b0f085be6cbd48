//! One table embeds the tokens on the way in and scores them on the way out, and learns from both.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};
use burn_attn_tests::{compare::numbers, devices};

use super::{VOCABULARY, batch, model};

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
        let gradient = table.grad(&loss.backward()).expect("a gradient");
        assert_eq!(touched(&gradient), [0, 2, 5, 6, 7, 11]);
    }
}

#[test]
fn there_is_one_table() {
    let model = model(1, &devices::any());
    let table = VOCABULARY * 15;
    assert_eq!(model.num_params() - model.transformer.num_params(), table);
}
