//! Numbers and sizes near the largest, and what is said of them.

use burn_attn_kernels_cpu::{AttentionDropout, Problem};

use super::{
    case::{Case, in_halves},
    device::{F32, client, floats, read, unwritten},
    refused::sentence,
};
use crate::{
    Gradients, Inputs, Operand, Upstream, backward, call::Call, forward, supports, supports::Pass,
    tile::Tile,
};

/// Equal weights of three values whose sum f32 holds. Twice the sum of two of them overflows.
#[test]
fn kept_weights_are_scaled_once_they_are_summed() {
    let Some(client) = client() else { return };
    let most = f64::from(f32::MAX);
    // By the kernels of few queries, and by those with tiles.
    for (len_q, splits) in [(3, 1), (40, 1), (40, 2)] {
        let tensor =
            |number: f64, len: usize| floats(&client, &vec![number; 8 * len * 4], &[1, 8, len, 4]);
        let (query, key, value) = (tensor(0.0, len_q), tensor(0.0, 3), tensor(most / 3.2, 3));
        let inputs = Inputs {
            dropout: Some(AttentionDropout {
                probability: 0.5,
                seed: 7,
            }),
            ..Inputs::new(query, key, value, 1.0)
        };
        let output = unwritten(&client, F32, &[1, 8, len_q, 4]);
        let logsumexp = unwritten(&client, F32, &[1, 8, len_q]);
        let case = Case {
            splits: Some(splits),
            ..Case::new([1; 7])
        };
        let call = || forward(&client, &inputs, &output, &logsumexp);
        case.forced(call).unwrap();
        let output = read(&client, &output);
        assert!(output.iter().all(|it| it.is_finite()), "{output:?}");
        let largest = output.into_iter().fold(0.0, f64::max);
        assert!(largest > 0.41 * most, "{largest} of {len_q} queries");
    }
}

#[test]
fn memory_for_diagonals_is_wanted_for_the_gradient_of_a_distance_bias_alone() {
    let Some(client) = client() else { return };
    let problem = Case::new([128, 64, 1, 1, 131_072, 1, 1]).problem;
    let can = |distance_gradient| supports(&client, &problem, F32, None, 1, distance_gradient);
    assert_eq!([false, true].map(can), [true, false]);
    // One item's keys for all.
    let keys = || Operand {
        shape: vec![128, 1, 131_072, 1],
        strides: vec![0, 131_072, 1, 1],
        ..unwritten(&client, F32, &[1, 1, 131_072, 1])
    };
    let query = unwritten(&client, F32, &[128, 64, 1, 1]);
    let inputs = Inputs {
        distance_bias: Some(unwritten(&client, F32, &[64, 131_072])),
        ..Inputs::new(query, keys(), keys(), 1.0)
    };
    let splits = |pass| Call::new(&client, &inputs, pass).splits;
    assert!(splits(Pass::Forward) > 0);
    let said = sentence(|| splits(Pass::Query));
    let expected = "these kernels cannot compute attention of f32 with Problem {";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn sums_of_more_tiles_than_can_be_counted_are_refused() {
    let Some(client) = client() else { return };
    let tensor = || unwritten(&client, F32, &[1, 1, 1, 4]);
    let bias = unwritten(&client, F32, &[1; 4]);
    let inputs = Inputs {
        bias: Some(bias.clone()),
        ..Inputs::new(tensor(), tensor(), tensor(), 1.0)
    };
    let of_bias = |len| {
        let call = Call::new(&client, &inputs, Pass::Query);
        let problem = Problem {
            len_q: len,
            len_kv: len,
            ..call.problem
        };
        Call { problem, ..call }.of_pass(Pass::Bias)
    };
    of_bias(1 << 16).check_sums(&bias);
    let call = of_bias(1 << 22);
    let said = sentence(|| call.check_sums(&bias));
    let expected = "each number of the gradient of a bias of shape [1, 1, 1, 1] is the sum of ";
    assert!(said.starts_with(expected), "{said}");

    // So many splits that not one tile can be counted: the backward pass asks before it takes memory for them.
    let rows = || unwritten(&client, F32, &[1; 3]);
    let upstream = Upstream {
        output: tensor(),
        logsumexp: rows(),
        output_gradient: tensor(),
        logsumexp_gradient: rows(),
    };
    let gradients = Gradients {
        bias: Some(bias.clone()),
        ..Gradients::default()
    };
    let split = Case {
        splits: Some(usize::MAX),
        ..Case::new([1; 7])
    };
    let call = || sentence(|| backward(&client, &inputs, &upstream, &gradients));
    let said = split.forced(call);
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_refusal_on_matrix_units_says_how_to_do_without() {
    let Some(client) = client() else { return };
    let advice = "; `BURN_ATTN_MATRIX_UNITS=off` computes without matrix units";
    let inputs = |elem| {
        let tensor = || unwritten(&client, elem, &[1, 1, 8, 16]);
        Inputs::new(tensor(), tensor(), tensor(), 1.0)
    };
    let output = unwritten(&client, F32, &[1, 1, 8, 16]);
    let logsumexp = unwritten(&client, F32, &[1, 1, 8]);
    let too_large = Case {
        tile: Some(Tile::square(128, 8, 8)),
        ..Case::new([1; 7])
    };
    let call = || forward(&client, &inputs(F32), &output, &logsumexp);
    let said = too_large.forced(call).unwrap_err().to_string();
    assert!(!said.ends_with(advice), "{said}");
    // The output stays uncomputed, whichever call asks for it.
    for case in in_halves(&Case::new([1, 1, 1, 8, 8, 16, 16])) {
        let inputs = inputs(case.elem);
        let call = Call::new(&client, &inputs, Pass::Forward);
        let refusal = call.confirm(Pass::Forward, 1, &[Some(&output)]);
        let said = refusal.unwrap_err().to_string();
        assert!(said.ends_with(advice), "{said}");
    }
}
