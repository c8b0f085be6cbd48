//! Half precision on matrix units, where the device has them: every option.

use burn_attn_kernels_cpu::{CausalAlignment, Window};
use cubecl::ir::{ElemType, FloatKind};

use super::{
    case::{Case, check, computed},
    device::client,
};

/// The types of half precision that the device has.
pub fn halves() -> Vec<ElemType> {
    let Some(client) = client() else {
        return Vec::new();
    };
    let listed = &client.features().matmul.cmma;
    let halves = [FloatKind::F16, FloatKind::BF16].map(ElemType::Float);
    let halves: Vec<_> = halves
        .into_iter()
        .filter(|elem| listed.iter().any(|it| it.a_type == *elem))
        .collect();
    if halves.is_empty() {
        eprintln!("skipped: the device has no matrix units");
    }
    halves
}

fn of_halves(case: &Case) {
    for elem in halves() {
        check(&Case {
            elem,
            ..case.clone()
        });
    }
}

#[test]
fn sizes() {
    for sizes in [
        [1, 2, 1, 130, 65, 64, 64],
        [2, 4, 2, 70, 100, 40, 20],
        [1, 2, 2, 33, 40, 7, 3],
        // The time that drivers in software take to compile grows faster than heads: others of more than 128 numbers differ in nothing else.
        [1, 2, 1, 33, 40, 80, 144],
    ] {
        of_halves(&Case::new(sizes));
    }
}

#[test]
fn positions() {
    let case = Case::new([2, 2, 1, 100, 150, 16, 16]);
    for causal in [CausalAlignment::BottomRight, CausalAlignment::TopLeft] {
        of_halves(&Case {
            causal: Some(causal),
            ..case.clone()
        });
    }
    of_halves(&Case {
        window: Some(Window {
            left: Some(20),
            right: Some(5),
        }),
        offsets: Some(-3),
        lengths: true,
        first_keys: Some(true),
        padding_is_nan: true,
        ..case.clone()
    });
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
    of_halves(&Case {
        blocks: Some([9, 20]),
        masked: Some([false, false, true, true]),
        causal: Some(CausalAlignment::BottomRight),
        interleaved: Some(8),
        ..case
    });
}

/// Heads of which shared memory holds one operand at a time.
#[test]
fn wide_heads() {
    of_halves(&Case {
        masked: Some([true, false, true, true]),
        alibi: true,
        sinks: true,
        softcap: Some(30.0),
        dropout: Some(0.3),
        lengths: true,
        padding_is_nan: true,
        ..Case::new([2, 2, 1, 70, 90, 80, 96])
    });
}

/// Weights that are kept count a thousandfold.
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
    for elem in halves() {
        let case = Case {
            elem,
            causal: Some(CausalAlignment::BottomRight),
            ..Case::new([2, 4, 2, 130, 200, 64, 64])
        };
        assert_eq!(computed(&case), computed(&case), "{elem}");
    }
}

/// Gradients of scores leave the range of f16, or the part of it that is exact, where those of query and key do not.
#[test]
fn gradients_out_of_range() {
    of_halves(&Case {
        upstream: 32768.0,
        ..Case::new([1, 1, 1, 3, 2, 64, 64])
    });
    of_halves(&Case {
        upstream: 1.0 / 8192.0,
        keys: 256.0,
        ..Case::new([1, 1, 1, 40, 1000, 64, 64])
    });
}
