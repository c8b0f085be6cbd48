//! Every option in half precision on matrix units, if the device has any.

use burn_attn_kernels_cpu::{CausalAlignment, Window};
use cubecl::ir::{ElemType, FloatKind};

use super::{
    case::{Case, in_halves, matrices, read_ahead},
    device::client,
    oracle::{check, computed},
};
use crate::matrix::shape::{Forced, Matrix};

/// Most options at once.
pub(super) fn with_options(sizes: [usize; 7]) -> Case {
    Case {
        masked: Some([true, false, true, true]),
        alibi: true,
        sinks: true,
        softcap: Some(30.0),
        dropout: Some(0.3),
        lengths: true,
        padding_is_nan: true,
        ..Case::new(sizes)
    }
}

pub(super) fn of_halves(case: &Case) {
    for case in in_halves(case) {
        check(&case);
    }
}

#[test]
fn sizes() {
    let ahead = Case {
        matrix: read_ahead(true),
        ..Case::new([1, 2, 1, 130, 65, 64, 64])
    };
    for case in in_halves(&ahead) {
        let all = matrices(&client().unwrap(), &case);
        assert!(all.iter().all(|it| it.ahead), "{all:?}");
        check(&case);
    }
    for sizes in [
        [2, 4, 2, 70, 100, 40, 20],
        [1, 2, 2, 33, 40, 7, 3],
        // One case beyond 128 numbers, in one operand: in drivers in software compile time grows faster than dim, and wider heads differ in nothing else.
        [1, 2, 1, 33, 40, 24, 144],
    ] {
        of_halves(&Case::new(sizes));
    }
}

#[test]
fn positions() {
    let case = Case::new([2, 2, 1, 100, 150, 16, 16]);
    let taller = Case::new([2, 2, 1, 150, 100, 16, 16]);
    for causal in [CausalAlignment::BottomRight, CausalAlignment::TopLeft] {
        for case in [&case, &taller] {
            of_halves(&Case {
                causal: Some(causal),
                // The first rows of the taller one.
                unseeing_are_nan: case.problem == taller.problem
                    && causal == CausalAlignment::BottomRight,
                ..case.clone()
            });
        }
    }
    for is_causal in [true, false] {
        of_halves(&Case {
            window: Some(Window {
                left: Some(20),
                right: Some(5),
            }),
            offsets: Some(-3),
            lengths: true,
            first_keys: Some(is_causal),
            padding_is_nan: true,
            matrix: read_ahead(is_causal),
            ..case.clone()
        });
    }
    of_halves(&Case {
        causal: Some(CausalAlignment::BottomRight),
        lengths: true,
        segments: true,
        padding_is_nan: true,
        ..case
    });
}

#[test]
fn tensors_and_numbers() {
    let case = Case::new([2, 4, 2, 70, 90, 16, 24]);
    of_halves(&Case {
        masked: Some([true; 4]),
        bias: Some([true; 4]),
        ..case.clone()
    });
    of_halves(&Case {
        alibi: true,
        sinks: true,
        softcap: Some(0.7),
        dropout: Some(0.3),
        ..case.clone()
    });
    // What the gradient of the query computes for others, alone.
    of_halves(&Case {
        alibi: true,
        sinks: true,
        frozen: true,
        splits: Some(2),
        ..case.clone()
    });
    // Rows that begin at a multiple of eight numbers, and anywhere.
    for padding in [8, 3] {
        of_halves(&Case {
            blocks: Some([9, 20]),
            masked: Some([false, false, true, true]),
            causal: Some(CausalAlignment::BottomRight),
            interleaved: Some(padding),
            matrix: read_ahead(padding == 8),
            ..case.clone()
        });
    }
}

/// The gradient of a bias is the sum of tiles in any dimension, by one cube and by several, in small tiles and in large ones.
#[test]
fn broadcast_biases() {
    let wholes = [
        [false, false, true, true],
        [true, false, false, true],
        [false, true, true, false],
        [false; 4],
    ];
    for (at, whole) in wholes.into_iter().enumerate() {
        let len_q = if at == 0 { 20 } else { 70 };
        let case = Case {
            bias: Some(whole),
            splits: Some([3, 1][at / 2]),
            // Other kernels would compile for minutes.
            frozen: true,
            // Rows with two tiles of keys.
            matrix: read_ahead(at >= 2),
            ..Case::new([2, 4, 2, len_q, 90, 16, 24])
        };
        for case in in_halves(&case) {
            let [.., of_bias] = matrices(&client().unwrap(), &case);
            let Matrix {
                rows,
                columns,
                operands,
                ..
            } = of_bias;
            let size = if at == 0 { 32 } else { 64 };
            assert_eq!([rows, columns, operands], [size, size, 2]);
            check(&case);
        }
    }
}

/// Tiles that a table hides or leaves visible as a whole, which the kernels skip or do not test. Rows of values that not all units copy.
#[test]
fn masks_of_whole_tiles() {
    of_halves(&Case {
        blocks: Some([128, 64]),
        segments: true,
        matrix: read_ahead(true),
        bias: Some([true, true, false, true]),
        ..Case::new([2, 2, 1, 200, 330, 16, 48])
    });
}

/// Numbers in f32, multiplied as two in f16 each. CUDA multiplies them as two in TF32, by the same code but for the sizes of a number and a product, and
/// for the factors that f16 needs.
#[test]
fn two_pieces_of_a_number() {
    let case = Case {
        matrix: Forced {
            pieces: Some(ElemType::Float(FloatKind::F16)),
            ..read_ahead(true)
        },
        bias: Some([true, true, false, true]),
        alibi: false,
        ..with_options([2, 4, 2, 70, 90, 16, 24])
    };
    let of_several_heads = Case {
        matrix: case.matrix,
        splits: Some(1),
        gradients: false,
        ..Case::new([2, 8, 1, 5, 90, 16, 24])
    };
    let Some(client) = client() else { return };
    for case in [case, of_several_heads] {
        if in_halves(&case).is_empty() {
            return;
        }
        assert_eq!(matrices(&client, &case).map(|it| it.pieces), [2; 4]);
        check(&case);
    }
}

/// Code for other devices: without the factors that f16 needs, as in bf16 and f32, and unrolled, as on GPUs.
#[test]
fn code_for_other_devices() {
    let case = Case {
        softcap: Some(0.7),
        ..with_options([2, 4, 2, 70, 90, 16, 24])
    };
    let unrolled = Forced {
        unscaled: true,
        unrolled: true,
        ..Forced::default()
    };
    let one_operand = Forced {
        unscaled: true,
        one_operand: true,
        ahead: true,
        ..Forced::default()
    };
    // In the wide case, one operand at a time, rows of values that not all units copy, and two splits.
    let wide = Case {
        alibi: true,
        splits: Some(2),
        ..Case::new([1, 2, 1, 70, 90, 128, 48])
    };
    for (case, matrix) in [(&case, unrolled), (&wide, one_operand)] {
        let case = Case {
            matrix,
            ..case.clone()
        };
        for case in in_halves(&case) {
            for it in matrices(&client().unwrap(), &case) {
                assert!(!it.scaled && it.unrolled == matrix.unrolled, "{it:?}");
                assert!(it.ahead >= it.unrolled, "{it:?}");
                assert!(it.together > 1 || !it.unrolled, "{it:?}");
                assert!(it.operands == 1 || !matrix.one_operand, "{it:?}");
            }
            check(&case);
        }
    }
}

/// Kept weights count a thousandfold.
#[test]
fn strong_dropout() {
    of_halves(&Case {
        dropout: Some(0.999),
        alibi: true,
        ..Case::new([1, 4, 2, 70, 90, 16, 16])
    });
}

#[test]
fn the_same_bits_every_time() {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new([2, 4, 2, 130, 200, 64, 64])
    };
    // With the kernels of `tensors_and_numbers`.
    let options = Case {
        masked: Some([true; 4]),
        bias: Some([true; 4]),
        ..Case::new([2, 4, 2, 70, 90, 16, 24])
    };
    let split = Case {
        splits: Some(3),
        ..options.clone()
    };
    for case in [case, options, split].iter().flat_map(in_halves) {
        assert_eq!(computed(&case), computed(&case), "{case:?}");
    }
}

/// Gradients of scores overflow f16, or become 0, where gradients of query or key do not.
#[test]
fn gradients_out_of_range() {
    of_halves(&Case {
        upstream: 32768.0,
        ..Case::new([4, 8, 8, 3, 2, 16, 64])
    });
    // With the larger keys, gradients of keys are beyond f16 themselves.
    for keys in [256.0, 1.0] {
        of_halves(&Case {
            upstream: 1.0 / 16384.0,
            keys,
            ..Case::new([1, 1, 1, 40, 1000, 16, 16])
        });
    }
}

#[test]
fn numbers_near_the_largest() {
    of_halves(&Case {
        largest: true,
        ..Case::new([1, 2, 1, 40, 90, 16, 16])
    });
}
