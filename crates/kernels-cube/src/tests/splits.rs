//! Several cubes share a tile: with two splits, and with five, which is more than some ranges have tiles.

use burn_attn_kernels_cpu::{CausalAlignment, Window};

use super::{
    case::{Case, in_halves},
    device::{F32, U32, client, floats, read, unwritten, upload},
    oracle::{check, computed, numbers},
};
use crate::{
    Gradients, Inputs, Operand, Upstream, backward,
    call::Call,
    forward,
    supports::{Pass, is_in_software},
    tile::Tile,
};

/// What a split may change: sizes, ranges of tiles that differ from tile to tile, some of them empty, tensors and numbers of every kind, and tiles that a
/// table hides as a whole, of which some splits have more than others.
fn cases() -> [Case; 6] {
    [
        Case::new([1, 1, 1, 5, 200, 64, 64]),
        Case::new([2, 4, 1, 70, 100, 40, 20]),
        Case {
            causal: Some(CausalAlignment::BottomRight),
            lengths: true,
            padding_is_nan: true,
            sinks: true,
            ..Case::new([2, 4, 2, 100, 150, 16, 16])
        },
        Case {
            window: Some(Window {
                left: Some(20),
                right: Some(5),
            }),
            offsets: Some(-3),
            lengths: true,
            first_keys: Some(true),
            padding_is_nan: true,
            ..Case::new([2, 2, 1, 100, 150, 16, 16])
        },
        Case {
            masked: Some([true; 4]),
            bias: Some([true, true, false, true]),
            alibi: true,
            sinks: true,
            softcap: Some(0.7),
            dropout: Some(0.3),
            interleaved: Some(8),
            ..Case::new([2, 4, 2, 70, 90, 16, 24])
        },
        Case {
            blocks: Some([64, 64]),
            lengths: true,
            padding_is_nan: true,
            ..Case::new([2, 4, 2, 100, 330, 16, 16])
        },
    ]
}

fn split(case: &Case) {
    for splits in [2, 5] {
        check(&Case {
            splits: Some(splits),
            ..case.clone()
        });
    }
}

#[test]
fn every_case_in_f32() {
    cases().iter().for_each(split);
}

#[test]
fn every_case_in_half_precision() {
    cases()
        .iter()
        .flat_map(in_halves)
        .for_each(|case| split(&case));
}

#[test]
fn the_same_bits_every_time() {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        splits: Some(3),
        ..Case::new([1, 4, 2, 130, 200, 64, 64])
    };
    let [first, second] = [(); 2].map(|()| computed(&case));
    assert_eq!(first, second);
}

/// The splits that calls choose, in every pass but the forward pass of few queries.
#[test]
fn splits_of_the_call() {
    for [len_q, len_kv] in [[3, 700], [5, 700], [700, 5]] {
        check(&Case {
            sinks: true,
            bias: Some([true, false, true, false]),
            masked: Some([true, false, true, true]),
            ..Case::new([2, 4, 1, len_q, len_kv, 16, 24])
        });
    }
}

/// Biases that are broadcast over several combinations of dimensions.
#[test]
fn gradients_of_biases() {
    let case = Case::new([2, 4, 2, 150, 200, 16, 24]);
    for whole in [
        [false; 4],
        [true, false, true, false],
        [false, true, false, true],
        [false, false, true, true],
        [true; 4],
    ] {
        split(&Case {
            bias: Some(whole),
            alibi: true,
            causal: Some(CausalAlignment::BottomRight),
            ..case.clone()
        });
    }
}

/// A split that begins and ends within a row of tiles of keys, beside a window that hides the first and the last of them.
#[test]
fn gradients_of_biases_within_a_row_of_tiles() {
    for whole in [[false; 4], [false, true, true, false]] {
        split(&Case {
            bias: Some(whole),
            window: Some(Window {
                left: Some(90),
                right: Some(70),
            }),
            ..Case::new([1, 2, 1, 130, 330, 16, 16])
        });
    }
}

/// At least two cubes for each of 132 multiprocessors, if the other side is long enough.
#[test]
fn a_call_has_enough_cubes() {
    let Some(client) = client() else { return };
    // Cubes, and heads of a cube.
    let of_call = |[heads_q, heads_kv, len_q, len_kv]: [usize; 4], pass, elem| {
        let tensor = |heads, len| unwritten(&client, elem, &[1, heads, len, 64]);
        let (query, key) = (tensor(heads_q, len_q), tensor(heads_kv, len_kv));
        let inputs = Inputs::new(query, key.clone(), key, 0.1);
        let call = Call::new(&client, &inputs, pass);
        let [_, _, tiles_q, tiles_kv] = call.tiles();
        let tiles = match pass {
            Pass::KeyAndValue => heads_kv * tiles_kv,
            _ => call.heads_of_grid() * tiles_q,
        };
        (tiles * call.splits, call.config.heads)
    };
    let of_units = Case {
        tile: Some(Tile::square(64, 4, 4)),
        ..Case::new([1; 7])
    };
    let cubes = |sizes, pass| of_units.forced(|| of_call(sizes, pass, F32).0);
    for len_q in [5, 63] {
        assert!(cubes([8, 1, len_q, 8192], Pass::Forward) >= 264);
    }
    // On matrix units, as many heads are in a cube as leave enough cubes, and as fit.
    for case in in_halves(&Case::new([1, 8, 1, 5, 8192, 64, 64])) {
        for (sizes, expected) in [
            ([8, 1, 5, 8192], 1),
            ([8, 1, 63, 8192], 1),
            ([8, 1, 5, 16_896], 4),
            ([8, 1, 5, 33_792], 8),
            ([32, 8, 5, 8192], 4),
            ([64, 8, 8, 8192], 8),
            ([64, 8, 65, 8192], 1),
            ([1088, 136, 1, 8192], 1),
            ([1088, 136, 2, 8192], 4),
        ] {
            let (cubes, heads) = of_call(sizes, Pass::Forward, case.elem);
            assert_eq!(heads, expected, "{sizes:?}");
            assert!(cubes >= 264, "{sizes:?}: {cubes}");
        }
        // A mask for all heads, and one that differs from head to head.
        for (heads, expected) in [(1, 4), (32, 1)] {
            let tensor = |heads, len| unwritten(&client, case.elem, &[1, heads, len, 64]);
            let key = tensor(8, 8192);
            let inputs = Inputs {
                masked: Some(upload(
                    &client,
                    &vec![0u32; heads * 8192],
                    &[1, heads, 1, 8192],
                    U32,
                )),
                ..Inputs::new(tensor(32, 5), key.clone(), key, 0.1)
            };
            let call = Call::new(&client, &inputs, Pass::Forward);
            assert_eq!(call.config.heads, expected);
        }
    }
    let sizes = [8, 1, 1024, 1024];
    for pass in [Pass::Forward, Pass::Query, Pass::KeyAndValue] {
        assert!(cubes(sizes, pass) >= 264, "{pass:?}");
        for case in in_halves(&Case::new([1, 8, 1, 1024, 1024, 64, 64])) {
            let (cubes, _) = of_call(sizes, pass, case.elem);
            assert!(cubes >= 264, "{pass:?} on matrix units: {cubes}");
        }
    }
    // A side too short to split, enough cubes, and no bias.
    assert_eq!(cubes([1, 1, 64, 64], Pass::Forward), 1);
    assert_eq!(cubes([8, 8, 1088, 1088], Pass::Forward), 8 * 17);
    assert_eq!(cubes([1, 1, 64, 1024], Pass::Bias), 1);
    // Enough cubes, but too many rounds for a driver in software.
    let repeated = |len| Operand {
        shape: vec![1, 140, len, 4],
        strides: vec![0, 0, 0, 1],
        ..unwritten(&client, F32, &[4])
    };
    let inputs = Inputs::new(repeated(16_385), repeated(64), repeated(64), 0.1);
    let in_software = is_in_software(&client);
    let splits = Call::new(&client, &inputs, Pass::KeyAndValue).splits;
    assert_eq!(splits, if in_software { 3 } else { 1 });
    // Each head of queries has a tile, however short.
    let keys = || Operand {
        shape: vec![1, 1, 64, 4],
        ..repeated(64)
    };
    let query = Operand {
        shape: vec![1, 300, 1, 4],
        ..repeated(1)
    };
    let inputs = Inputs::new(query, keys(), keys(), 0.1);
    let splits = Call::new(&client, &inputs, Pass::KeyAndValue).splits;
    assert_eq!(splits, if in_software { 3 } else { 2 });
    let splits = |shape: [usize; 4]| {
        let tensor = || unwritten(&client, F32, &[2, 8, 1024, 64]);
        let inputs = Inputs {
            bias: Some(unwritten(&client, F32, &shape)),
            ..Inputs::new(tensor(), tensor(), tensor(), 0.1)
        };
        Call::new(&client, &inputs, Pass::Bias).splits
    };
    assert_eq!(splits([1; 4]), 264);
    assert_eq!(splits([1, 8, 1, 1]), 33);
    assert_eq!(splits([1, 1, 1, 1024]), 17);
    assert_eq!(splits([1, 8, 1024, 1024]), 1);
}

/// A bias of one number adds itself to the logsumexp of every row and changes no output: its gradient is the sum of the logsumexps' gradients.
///
/// Mesa's lavapipe leaves all loops of a kernel after 65,535 rounds, which one cube would need here.
#[test]
fn a_bias_of_one_number_over_many_tiles() {
    let Some(client) = client() else { return };
    let tensor = |seed| floats(&client, &numbers(8 * 1024 * 64, seed), &[1, 8, 1024, 64]);
    let [query, key, value, output_gradient] = [1, 2, 3, 4].map(tensor);
    let bias = floats(&client, &[0.5], &[1; 4]);
    let inputs = Inputs {
        bias: Some(bias),
        ..Inputs::new(query, key, value, 0.125)
    };
    let output = unwritten(&client, F32, &[1, 8, 1024, 64]);
    let logsumexp = unwritten(&client, F32, &[1, 8, 1024]);
    forward(&client, &inputs, &output, &logsumexp).unwrap();
    let of_rows = numbers(8 * 1024, 5);
    let upstream = Upstream {
        output,
        logsumexp,
        output_gradient,
        logsumexp_gradient: floats(&client, &of_rows, &[1, 8, 1024]),
    };
    let gradient = unwritten(&client, F32, &[1; 4]);
    let gradients = Gradients {
        bias: Some(gradient.clone()),
        ..Gradients::default()
    };
    backward(&client, &inputs, &upstream, &gradients).unwrap();
    let (actual, expected) = (read(&client, &gradient)[0], of_rows.iter().sum::<f64>());
    assert!((actual - expected).abs() < 1e-3, "{actual}, not {expected}");
}
