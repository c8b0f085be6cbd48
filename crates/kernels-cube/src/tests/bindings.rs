//! Kernels in WGSL, in every build, and devices that bind few tensors: WebGPU promises eight storage buffers, one of which CubeCL takes.

use burn_attn_kernels_cpu::{CausalAlignment, Window};
use cubecl::{
    client::Client,
    features::TypeUsage,
    ir::{ElemType, FloatKind, UIntKind},
};

use super::{
    case::Case,
    device::{F32, I32, U32, unwritten, upload},
    oracle::check,
    refused::sentence,
    wgsl::{NARROW, with_storage_buffers},
};
use crate::{Inputs, Operand, forward, supports};

/// Storage buffers that WebGPU promises.
const PROMISED: u32 = 8;

/// f16, if the device has it.
fn half(client: &Client) -> Option<ElemType> {
    let f16 = ElemType::Float(FloatKind::F16);
    let usage = client.properties().type_usage(f16);
    let found = usage.contains(TypeUsage::Buffer).then_some(f16);
    if found.is_none() {
        eprintln!("skipped: the device has no f16 in WGSL");
    }
    found
}

/// A case for every option that is a tensor, and one for all other options; with sinks.
fn options(case: &Case) -> Vec<Case> {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        sinks: true,
        ..case.clone()
    };
    let mut cases = vec![Case {
        softcap: Some(0.7),
        dropout: Some(0.3),
        ..case.clone()
    }];
    let mut with = |change: fn(&mut Case)| {
        let mut changed = case.clone();
        change(&mut changed);
        cases.push(changed);
    };
    with(|case| case.bias = Some([true; 4]));
    with(|case| case.alibi = true);
    with(|case| case.masked = Some([true, false, true, true]));
    with(|case| case.blocks = Some([3, 11]));
    with(|case| case.lengths = true);
    with(|case| case.first_keys = Some(true));
    with(|case| case.offsets = Some(3));
    with(|case| case.segments = true);
    cases
}

#[test]
fn every_option_with_eight_storage_buffers() {
    with_storage_buffers(PROMISED, |client| {
        assert_eq!(client.properties().hardware.max_bindings, PROMISED - 1);
        for case in options(&Case::new([2, 2, 1, 71, 97, 7, 5])) {
            check(&case);
        }
        // Rows that are read as vectors, and more rows than a tile has.
        for sizes in [[1, 2, 1, 130, 65, 64, 64], [1, 1, 1, 3, 300, 40, 20]] {
            check(&Case::new(sizes));
        }
        // With the kernels of few queries.
        check(&Case {
            segments: true,
            sinks: true,
            ..Case::new([2, 2, 1, 3, 97, 7, 5])
        });
        // The gradient of the query and delta of an output that is not rounded in two launches.
        if let Some(elem) = half(&client) {
            check(&Case {
                elem,
                alibi: true,
                ..Case::new([2, 2, 1, 71, 97, 8, 5])
            });
        }
    });
}

/// One more buffer has room for the kinds of tiles, or for the gradients of key and value in one launch. Two more have room for both.
#[test]
fn more_buffers_change_the_kernels_and_nothing_else() {
    for more in [1, 2] {
        with_storage_buffers(PROMISED + more, |_| {
            check(&Case {
                masked: Some([false, false, true, true]),
                window: Some(Window {
                    left: Some(40),
                    right: Some(5),
                }),
                ..Case::new([2, 2, 1, 71, 131, 7, 5])
            });
        });
    }
}

/// f16, two splits, and three queries: the other suites compile these to SPIR-V where they can.
#[test]
fn kernels_of_other_suites() {
    with_storage_buffers(2 * PROMISED, |client| {
        for elem in [F32].into_iter().chain(half(&client)) {
            for len_q in [71, 3] {
                for splits in [1, 2] {
                    check(&Case {
                        elem,
                        splits: Some(splits),
                        causal: Some(CausalAlignment::BottomRight),
                        bias: Some([true; 4]),
                        sinks: true,
                        ..Case::new([2, 2, 1, len_q, 131, 8, 5])
                    });
                }
            }
        }
    });
}

#[test]
fn masks_of_a_type_that_the_device_lacks_are_declined() {
    with_storage_buffers(2 * PROMISED, |client| {
        let problem = Case::new([1, 1, 1, 8, 8, 16, 16]).problem;
        for mask in NARROW.into_iter().chain([I32, U32]) {
            let can = supports(&client, &problem, F32, Some(mask), 1, false);
            assert_eq!(can, !NARROW.contains(&mask), "masks of {mask}");
        }
        let tensor = || unwritten(&client, F32, &[1, 1, 8, 16]);
        let narrow = Operand {
            elem: ElemType::UInt(UIntKind::U8),
            ..upload(&client, &[0_u32], &[1; 4], U32)
        };
        let inputs = Inputs {
            masked: Some(narrow),
            ..Inputs::new(tensor(), tensor(), tensor(), 1.0)
        };
        let logsumexp = unwritten(&client, F32, &[1, 1, 8]);
        let said = sentence(|| forward(&client, &inputs, &tensor(), &logsumexp));
        assert!(said.ends_with("masks of u8 on this device"), "{said}");
    });
}

#[test]
fn what_does_not_fit_is_declined() {
    let problem = Case::new([1, 1, 1, 7, 5, 3, 3]).problem;
    for (buffers, most) in [(6, None), (7, Some(0)), (8, Some(1)), (10, Some(3))] {
        let Some(client) = with_storage_buffers(buffers, |client| client) else {
            return;
        };
        for optional in 0..9 {
            assert_eq!(
                supports(&client, &problem, F32, Some(U32), optional, false),
                most.is_some_and(|most| optional <= most),
                "{optional} optional tensors with {buffers} storage buffers"
            );
        }
    }
}
