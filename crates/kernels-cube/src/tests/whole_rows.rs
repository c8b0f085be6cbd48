//! The forward pass of drivers in software; the other tests are too short for it.

use burn_attn_kernels_cpu::{CausalAlignment, Window};

use super::case::{self, Case};
use crate::{call::WHOLE_ROWS, tile::Tile};

fn check(case: &Case) {
    WHOLE_ROWS.set(Some(true));
    case::check(case);
    WHOLE_ROWS.set(None);
}

#[test]
fn sizes() {
    for sizes in [
        [1, 1, 1, 5, 1, 4, 4],
        [1, 2, 1, 130, 67, 64, 64],
        [2, 4, 2, 70, 100, 7, 20],
    ] {
        check(&Case::new(sizes));
    }
    // Of devices with little shared memory.
    check(&Case {
        tile: Some(Tile {
            size: 32,
            rows: 4,
            columns: 4,
        }),
        ..Case::new([1, 1, 1, 40, 70, 16, 16])
    });
}

#[test]
fn positions_and_poison() {
    check(&Case {
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new([2, 2, 1, 150, 70, 16, 16])
    });
    check(&Case {
        window: Some(Window {
            left: Some(20),
            right: Some(5),
        }),
        offsets: Some(40),
        lengths: true,
        padding_is_nan: true,
        ..Case::new([3, 2, 1, 100, 150, 7, 20])
    });
}

#[test]
fn tensors_and_numbers() {
    check(&Case {
        masked: Some([true, false, true, true]),
        bias: Some([false, true, true, true]),
        blocks: Some([64, 32]),
        segments: true,
        alibi: true,
        sinks: true,
        softcap: Some(0.7),
        dropout: Some(0.3),
        interleaved: Some(4),
        ..Case::new([2, 4, 2, 70, 190, 16, 24])
    });
}

#[test]
fn a_visible_nan_is_not_hidden() {
    check(&Case {
        nan_value: Some(60 * 16 + 5),
        ..Case::new([1, 2, 1, 9, 70, 16, 16])
    });
}
