//! Tiles on matrix units that calls of [`matrix`](super::matrix) do not have: with one operand at a time, of several heads, and of the widest.

use burn_attn_kernels_cpu::{CausalAlignment, Window};

use super::{
    case::{Case, in_halves, matrices, read_ahead},
    device::{client, unwritten},
    matrix::{of_halves, with_options},
    oracle::{check, computed},
};
use crate::{Inputs, call::Call, matrix::shape::Forced, supports::Pass};

/// Heads so wide that shared memory holds one operand at a time.
#[test]
fn wide_heads() {
    let case = Case {
        matrix: Forced {
            one_operand: true,
            ..Forced::default()
        },
        // Its first queries see no key.
        causal: Some(CausalAlignment::BottomRight),
        offsets: Some(-3),
        unseeing_are_nan: true,
        ..with_options([2, 2, 1, 70, 90, 80, 24])
    };
    for case in in_halves(&case) {
        for it in matrices(&client().unwrap(), &case) {
            assert_eq!(it.operands, 1, "{it:?}");
        }
        check(&case);
    }
}

/// Tiles that have a few queries of several heads, with one and with two splits. In the last case the last two cubes have heads in common.
#[test]
fn tiles_of_several_heads() {
    // How many heads fit, on devices with little and with much shared memory.
    let cases = [
        ([8, 8], Case::new([1, 8, 1, 5, 130, 64, 64])),
        // A step of generation.
        ([8, 8], Case::new([1, 8, 1, 1, 130, 64, 64])),
        (
            [4, 4],
            Case {
                bias: Some([true; 4]),
                softcap: Some(0.7),
                ..with_options([2, 8, 2, 5, 90, 16, 24])
            },
        ),
        (
            [3, 4],
            Case {
                window: Some(Window {
                    left: Some(40),
                    right: Some(0),
                }),
                offsets: Some(60),
                first_keys: Some(true),
                interleaved: Some(8),
                matrix: Forced {
                    unscaled: true,
                    ..read_ahead(true)
                },
                ..Case::new([2, 7, 1, 20, 100, 16, 16])
            },
        ),
        // Most tiles are hidden as a whole.
        (
            [8, 8],
            Case {
                causal: Some(CausalAlignment::TopLeft),
                segments: true,
                ..Case::new([2, 8, 1, 5, 130, 16, 16])
            },
        ),
    ];
    for (expected, case) in cases {
        for splits in [1, 2] {
            let case = Case {
                splits: Some(splits),
                gradients: false,
                ..case.clone()
            };
            for case in in_halves(&case) {
                let heads = case.forced(|| heads_of_tile(&case));
                assert!(expected.contains(&heads), "{heads} of {:?}", case.problem);
                check(&case);
                assert_eq!(computed(&case), computed(&case), "{:?}", case.problem);
            }
        }
    }
}

/// How many heads a tile of the case has, without mask and table.
fn heads_of_tile(case: &Case) -> usize {
    let p = &case.problem;
    let client = client().unwrap();
    let tensor = |heads, len, dim| unwritten(&client, case.elem, &[p.batch, heads, len, dim]);
    let inputs = Inputs::new(
        tensor(p.heads_q, p.len_q, p.dim_qk),
        tensor(p.heads_kv, p.len_kv, p.dim_qk),
        tensor(p.heads_kv, p.len_kv, p.dim_v),
        0.1,
    );
    Call::new(&client, &inputs, Pass::Forward).config.heads
}

/// With `BURN_ATTN_LONG=1`: on a driver in software, compiling for one of these heads takes minutes.
#[test]
fn the_widest_heads() {
    if std::env::var_os("BURN_ATTN_LONG").is_none_or(|value| value != "1") {
        eprintln!("skipped without BURN_ATTN_LONG=1");
        return;
    }
    for [dim_qk, dim_v] in [[200, 24], [256, 256]] {
        of_halves(&Case {
            causal: Some(CausalAlignment::BottomRight),
            alibi: true,
            matrix: read_ahead(true),
            ..Case::new([1, 2, 1, 33, 40, dim_qk, dim_v])
        });
    }
}
