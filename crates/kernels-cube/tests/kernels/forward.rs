//! Output and logsumexp.

use burn_attn_kernels_cpu::{CausalAlignment, Window};

use crate::case::{Case, check};

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
        check(&Case::new(sizes), false);
    }
}

#[test]
fn positions() {
    let case = Case::new([2, 2, 1, 100, 150, 16, 16]);
    for causal in [CausalAlignment::BottomRight, CausalAlignment::TopLeft] {
        check(
            &Case {
                causal: Some(causal),
                ..case.clone()
            },
            false,
        );
        check(
            &Case {
                causal: Some(causal),
                ..Case::new([1, 1, 1, 150, 70, 16, 16])
            },
            false,
        );
    }
    let window = Window {
        left: Some(20),
        right: Some(5),
    };
    check(
        &Case {
            window: Some(window),
            ..case.clone()
        },
        false,
    );
    check(
        &Case {
            window: Some(window),
            offsets: true,
            lengths: true,
            ..case.clone()
        },
        false,
    );
    check(
        &Case {
            causal: Some(CausalAlignment::BottomRight),
            lengths: true,
            segments: true,
            ..case
        },
        false,
    );
}

#[test]
fn tensors_and_numbers() {
    let case = Case::new([2, 4, 2, 70, 90, 16, 24]);
    for whole in [
        [true; 4],
        [false, false, true, true],
        [true, false, false, true],
    ] {
        check(
            &Case {
                masked: Some(whole),
                bias: Some(whole),
                ..case.clone()
            },
            false,
        );
    }
    check(
        &Case {
            alibi: true,
            sinks: true,
            softcap: Some(0.7),
            dropout: Some(0.3),
            ..case.clone()
        },
        false,
    );
    check(
        &Case {
            blocks: Some([9, 20]),
            masked: Some([true; 4]),
            causal: Some(CausalAlignment::BottomRight),
            ..case.clone()
        },
        false,
    );
    check(
        &Case {
            alibi: true,
            offsets: true,
            causal: Some(CausalAlignment::TopLeft),
            ..case
        },
        false,
    );
}
