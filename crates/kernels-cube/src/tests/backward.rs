//! Outputs and all gradients, with an upstream gradient of the logsumexp.

use burn_attn_kernels_cpu::{CausalAlignment, Window};

use cubecl::ir::{ElemType, FloatKind};

use super::{
    case::Case,
    device::client,
    oracle::{check, computed},
};
use crate::{supports, tile::Tile};

#[test]
fn sizes() {
    for sizes in [
        [1, 1, 1, 1, 1, 4, 4],
        [1, 2, 1, 130, 65, 64, 64],
        [2, 4, 2, 70, 100, 40, 20],
        [1, 2, 2, 33, 40, 7, 3],
        [1, 1, 1, 65, 129, 128, 128],
        [1, 1, 1, 20, 80, 200, 256],
    ] {
        check(&Case::new(sizes));
    }
}

#[test]
fn positions() {
    let case = Case::new([2, 2, 1, 100, 150, 16, 16]);
    for causal in [CausalAlignment::BottomRight, CausalAlignment::TopLeft] {
        check(&Case {
            causal: Some(causal),
            ..case.clone()
        });
        check(&Case {
            causal: Some(causal),
            ..Case::new([1, 1, 1, 150, 70, 16, 16])
        });
    }
    let window = Window {
        left: Some(20),
        right: Some(5),
    };
    check(&Case {
        window: Some(window),
        ..case.clone()
    });
    check(&Case {
        window: Some(window),
        offsets: Some(-3),
        lengths: true,
        padding_is_nan: true,
        ..case.clone()
    });
    check(&Case {
        causal: Some(CausalAlignment::BottomRight),
        lengths: true,
        segments: true,
        ..case
    });
}

#[test]
fn first_keys() {
    let case = Case::new([2, 2, 1, 150, 230, 16, 16]);
    let window = Window {
        left: Some(20),
        right: Some(5),
    };
    for causal in [false, true] {
        check(&Case {
            causal: Some(CausalAlignment::BottomRight),
            first_keys: Some(causal),
            ..case.clone()
        });
        check(&Case {
            window: Some(window),
            first_keys: Some(causal),
            offsets: Some(-3),
            lengths: true,
            padding_is_nan: true,
            alibi: true,
            masked: Some([true, false, true, true]),
            ..case.clone()
        });
    }
}

#[test]
fn tensors_and_numbers() {
    let case = Case::new([2, 4, 2, 70, 90, 16, 24]);
    for whole in [
        [true; 4],
        [false, false, true, true],
        [true, false, false, true],
        [false, true, true, false],
        [false; 4],
    ] {
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
        ..case.clone()
    });
    check(&Case {
        blocks: Some([9, 20]),
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

/// The softcap's tanh has tiny arguments, for which drivers differ.
#[test]
fn softcaps_far_above_the_scores() {
    for softcap in [1e3, 1e6, 1e12, 1e18] {
        check(&Case {
            softcap: Some(softcap),
            ..Case::new([1, 2, 1, 7, 70, 16, 16])
        });
    }
}

/// On every device, the tiles of GPUs, of drivers in software, and of devices with little shared memory.
#[test]
fn tiles() {
    for (size, rows, columns) in [(64, 8, 4), (64, 8, 8), (32, 4, 4)] {
        check(&Case {
            tile: Some(Tile {
                ahead: rows == 4 || columns == 4,
                ..Tile::square(size, rows, columns)
            }),
            causal: Some(CausalAlignment::BottomRight),
            masked: Some([false, false, true, true]),
            bias: Some([true; 4]),
            alibi: columns == 8,
            softcap: (columns == 8).then_some(0.7),
            dropout: Some(0.3),
            ..Case::new([1, 2, 1, 70, 140, 72, 40])
        });
    }
}

/// Tiles that a mask hides or leaves visible as a whole, in every kernel that skips them.
#[test]
fn masks_of_whole_tiles() {
    let case = Case::new([2, 2, 1, 200, 330, 16, 16]);
    for blocks in [[64, 64], [128, 64], [200, 32]] {
        check(&Case {
            blocks: Some(blocks),
            bias: Some([blocks[0] == 64; 4]),
            ..case.clone()
        });
    }
    // More tiles than numbers in the query: kinds of tiles are not computed.
    check(&Case {
        masked: Some([true; 4]),
        ..Case::new([1, 1, 1, 5, 330, 1, 4])
    });
    // One row of the mask for all queries, beside segments of a few queries.
    check(&Case {
        masked: Some([true, false, false, true]),
        segments: true,
        alibi: true,
        causal: Some(CausalAlignment::BottomRight),
        ..case
    });
}

#[test]
fn the_same_bits_every_time() {
    // Some tiles are visible as a whole, others in part.
    let case = Case {
        tile: Some(Tile::square(64, 8, 8)),
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new([2, 4, 2, 130, 200, 64, 64])
    };
    check(&case);
    let [first, second] = [(); 2].map(|()| computed(&case));
    assert_eq!(first, second);
}

/// Skipped for types that the device lacks.
#[test]
fn half_precision() {
    let Some(client) = client() else { return };
    for kind in [FloatKind::F16, FloatKind::BF16] {
        let case = Case {
            causal: Some(CausalAlignment::BottomRight),
            elem: ElemType::Float(kind),
            sinks: true,
            ..Case::new([2, 2, 1, 70, 100, 40, 20])
        };
        if supports(&client, &case.problem, case.elem, None, 0, false) {
            check(&case);
            check(&Case {
                problem: Case::new([1, 1, 1, 33, 40, 7, 3]).problem,
                ..case
            });
        } else {
            eprintln!("skipped: the device has no {kind:?}");
        }
    }
}
