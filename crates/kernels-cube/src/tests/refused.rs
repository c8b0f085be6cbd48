//! What the kernels do not compute.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_attn_kernels_cpu::PositionMask;
use cubecl::{
    client::Client,
    ir::{ElemType, FloatKind},
};

use super::{
    case::Case,
    device::{F32, client, floats, unwritten},
};
use crate::{Inputs, Operand, call::with_tile, forward, supports, tile::Tile};

#[test]
fn what_the_kernels_cannot_do_is_declined() {
    let client = client();
    let can = |sizes, kind, optional| {
        let problem = Case::new(sizes).problem;
        supports(&client, &problem, ElemType::Float(kind), optional)
    };
    let small = [1, 1, 1, 8, 8, 16, 16];
    assert!(can(small, FloatKind::F32, 0));
    assert!(!can(small, FloatKind::F64, 0));
    assert!(!can(small, FloatKind::F32, 1000));
    assert!(!can([1, 1, 1, 8, 8, 257, 16], FloatKind::F32, 0));
    assert!(!can([1, 1, 1, 8, 8, 16, 257], FloatKind::F32, 0));
    assert!(!can([1, 1, 1, 1, 1 << 28, 1, 1], FloatKind::F32, 0));
}

/// What a call panics with.
fn sentence(call: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("a panic");
    *panic.downcast::<String>().expect("a sentence")
}

/// Five queries of two heads on seven keys.
fn small(client: &Client) -> Inputs {
    let tensor = |shape: &[usize]| floats(client, &vec![0.5; shape.iter().product()], shape);
    Inputs {
        query: tensor(&[1, 2, 5, 4]),
        key: tensor(&[1, 1, 7, 4]),
        value: tensor(&[1, 1, 7, 4]),
        bias: None,
        distance_bias: None,
        sinks: None,
        masked: None,
        visible_blocks: None,
        key_lengths: None,
        query_offsets: None,
        segments: None,
        by_position: PositionMask::new(None, None),
        scale: 1.0,
        softcap: None,
        dropout: None,
    }
}

/// Where output and logsumexp of [`small`] go.
fn results(client: &Client) -> [Operand; 2] {
    [&[1, 2, 5, 4][..], &[1, 2, 5]].map(|shape| unwritten(client, F32, shape))
}

#[test]
fn a_kernel_that_the_device_refuses_is_one_sentence_and_no_result() {
    let client = client();
    let [output, logsumexp] = results(&client);
    let too_large = Tile {
        size: 128,
        rows: 8,
        columns: 8,
    };
    let inputs = small(&client);
    let call = || forward(&client, &inputs, &output, &logsumexp);
    let said = with_tile(Some(too_large), || sentence(call));
    assert!(
        said.starts_with("the device refuses a kernel for attention of f32 with Problem {"),
        "{said}"
    );
    let memory = "shared memory requested; Requested 82432 bytes, maximum ";
    assert!(said.contains(memory), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for result in [output, logsumexp] {
        assert!(client.read_one(result.handle).is_err());
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let client = client();
    let refused = |spoil: fn(&mut Inputs)| {
        let mut inputs = small(&client);
        spoil(&mut inputs);
        let [output, logsumexp] = results(&client);
        sentence(|| forward(&client, &inputs, &output, &logsumexp))
    };
    assert_eq!(
        refused(|inputs| inputs.key.elem = ElemType::Float(FloatKind::F16)),
        "key is of f16, but must be of f32"
    );
    assert_eq!(
        refused(|inputs| inputs.query.strides = vec![40, 20, 1, 5]),
        "query has strides [40, 20, 1, 5], but the last must be 1"
    );
    assert_eq!(
        refused(|inputs| inputs.key.shape[2] = 6),
        "key is [1, 1, 6, 4] with strides [28, 28, 4, 1], but must be [1, 1, 7, 4]"
    );
    assert_eq!(
        refused(|inputs| inputs.sinks = Some(inputs.value.clone())),
        "sinks is [1, 1, 7, 4] with strides [28, 28, 4, 1], but must be [2]"
    );
    assert_eq!(
        refused(|inputs| inputs.bias = Some(inputs.value.clone())),
        "bias is [1, 1, 7, 4], but cannot be repeated to [1, 2, 5, 7]"
    );
    assert_eq!(
        refused(|inputs| {
            let query = inputs.query.clone();
            let (shape, strides) = (vec![1], vec![1]);
            inputs.key_lengths = Some(Operand {
                shape,
                strides,
                ..query
            });
        }),
        "key_lengths is of f32, but must be of i32"
    );
    assert_eq!(
        refused(|inputs| {
            let query = inputs.query.clone();
            let shape = vec![1, 1, 1, 1];
            inputs.masked = Some(Operand { shape, ..query });
        }),
        "masked is of f32, but must be of integers"
    );
}
