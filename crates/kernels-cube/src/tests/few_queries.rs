//! A few queries, as in generation: the kernels of `few_queries`.

use burn_attn_kernels_cpu::{CausalAlignment, Window};
use cubecl::ir::{ElemType, FloatKind};

use super::{
    case::Case,
    device::client,
    oracle::{check, computed},
};
use crate::{
    few_queries::shape::{MOST_ROWS, heads_of_cube},
    supports,
};

/// Rows that are read as vectors and number by number, by few and many units, with keys for one cube and for several.
#[test]
fn sizes() {
    for sizes in [
        [1, 1, 1, 1, 1, 4, 4],
        [2, 4, 2, 1, 300, 64, 64],
        [1, 2, 1, 2, 513, 40, 20],
        [2, 1, 1, 3, 70, 7, 3],
        [1, 2, 2, 4, 260, 90, 150],
        [1, 1, 1, 4, 257, 256, 256],
        [1, 8, 1, 1, 1000, 128, 128],
        [1, 1, 1, MOST_ROWS + 1, 300, 16, 16],
    ] {
        check(&Case::new(sizes));
    }
}

/// Groups of heads that several cubes share. The last cube recomputes heads of the cube before.
#[test]
fn groups() {
    // Lengths are 267, 134 and 0.
    let everything = |sizes, lengths| Case {
        masked: Some([true; 4]),
        bias: Some([true, true, false, true]),
        alibi: true,
        sinks: true,
        dropout: Some(0.3),
        lengths,
        ..Case::new(sizes)
    };
    for ([members, len_q], lengths) in [
        ([7, 1], false),
        ([5, 1], true),
        ([3, 2], true),
        ([2, 3], false),
        ([4, 1], true),
    ] {
        check(&everything(
            [3, 2 * members, 2, len_q, 400, 16, 24],
            lengths,
        ));
    }
}

#[test]
fn a_cube_has_as_many_heads_as_fit() {
    let plenty = 24 << 10;
    for ([group, len_q, bytes], expected) in [
        ([1, 1, plenty], Some(1)),
        ([4, 1, plenty], Some(4)),
        ([5, 1, plenty], Some(3)),
        ([7, 1, plenty], Some(4)),
        ([8, 2, plenty], Some(2)),
        ([8, 3, plenty], Some(1)),
        ([8, 4, plenty], Some(1)),
        ([8, 5, plenty], None),
        ([8, 1, 13 << 10], Some(3)),
        ([1, 4, 13 << 10], None),
    ] {
        let heads = heads_of_cube(group, len_q, bytes);
        assert_eq!(heads, expected, "{group} heads, {len_q} queries");
    }
}

#[test]
fn positions() {
    let case = Case::new([2, 2, 1, 3, 600, 16, 16]);
    let window = Some(Window {
        left: Some(290),
        right: Some(0),
    });
    check(&Case {
        causal: Some(CausalAlignment::BottomRight),
        window,
        ..case.clone()
    });
    check(&Case {
        causal: Some(CausalAlignment::TopLeft),
        lengths: true,
        ..case.clone()
    });
    // Two of three batch items have keys.
    check(&Case {
        window,
        offsets: Some(290),
        lengths: true,
        padding_is_nan: true,
        ..Case::new([3, 2, 1, 3, 600, 16, 16])
    });
    check(&Case {
        segments: true,
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new([2, 2, 1, 4, 30, 16, 16])
    });
    // Visible keys are in the last cube alone, or in the first cube alone.
    for causal in [None, Some(CausalAlignment::TopLeft)] {
        check(&Case {
            causal,
            window: Some(Window {
                left: Some(10),
                right: Some(3),
            }),
            ..Case::new([1, 1, 1, 4, 900, 8, 8])
        });
    }
}

#[test]
fn tensors_and_numbers() {
    let case = Case::new([2, 4, 2, 2, 300, 16, 24]);
    for whole in [[true; 4], [false, true, true, false]] {
        check(&Case {
            masked: Some(whole),
            bias: Some(whole),
            ..case.clone()
        });
    }
    check(&Case {
        alibi: true,
        sinks: true,
        softcap: Some(0.7),
        dropout: Some(0.3),
        lengths: true,
        padding_is_nan: true,
        ..case.clone()
    });
    check(&Case {
        blocks: Some([1, 20]),
        masked: Some([true; 4]),
        causal: Some(CausalAlignment::BottomRight),
        ..case.clone()
    });
    check(&Case {
        alibi: true,
        offsets: Some(-3),
        causal: Some(CausalAlignment::TopLeft),
        ..case
    });
}

/// Strided rows are read four numbers at a time, or one at a time if they are not aligned.
#[test]
fn interleaved_heads() {
    for padding in [0, 3, 4] {
        check(&Case {
            interleaved: Some(padding),
            ..Case::new([2, 4, 2, 3, 300, 16, 24])
        });
    }
}

#[test]
fn a_visible_nan_is_not_hidden() {
    check(&Case {
        nan_value: Some(280 * 16 + 5),
        ..Case::new([1, 2, 1, 2, 300, 16, 16])
    });
}

/// Skipped for types that the device lacks.
#[test]
fn half_precision() {
    let Some(client) = client() else { return };
    for kind in [FloatKind::F16, FloatKind::BF16] {
        let case = Case {
            elem: ElemType::Float(kind),
            sinks: true,
            ..Case::new([2, 2, 1, 1, 400, 40, 20])
        };
        if supports(&client, &case.problem, case.elem, None, 0, false) {
            check(&case);
        } else {
            eprintln!("skipped: the device has no {kind:?}");
        }
    }
}

#[test]
fn the_same_bits_every_time() {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new([2, 4, 2, 2, 1000, 64, 64])
    };
    let [first, second] = [(); 2].map(|()| computed(&case));
    assert_eq!(first, second);
}

/// First keys and a window, with whole blocks of keys between them.
#[test]
fn first_keys_beside_a_window() {
    for (len_q, causal) in [(1, true), (1, false), (3, true)] {
        check(&Case {
            window: Some(Window {
                left: Some(300),
                right: Some(0),
            }),
            first_keys: Some(causal),
            padding_is_nan: true,
            lengths: true,
            ..Case::new([2, 4, 2, len_q, 1500, 16, 16])
        });
    }
}
