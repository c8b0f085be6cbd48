//! Calls that the kernels decline or refuse.

use std::{
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
};

use burn_attn_kernels_cpu::{AttentionDropout, BlockSize};
use cubecl::{
    client::Client,
    ir::{ElemType, FloatKind},
};

use super::{
    case::Case,
    device::{F32, U32, client, floats, unwritten},
};
use crate::{
    Gradients, Inputs, Operand, Upstream, backward, forward, refusal::tests::ASKED, supports,
    supports::is_in_software, supports_scalars, tile::Tile,
};

#[test]
fn what_the_kernels_cannot_do_is_declined() {
    let Some(client) = client() else { return };
    let can = |sizes, kind, optional| {
        let problem = Case::new(sizes).problem;
        let elem = ElemType::Float(kind);
        supports(&client, &problem, elem, None, optional, false)
    };
    let small = [1, 1, 1, 8, 8, 16, 16];
    assert!(can(small, FloatKind::F32, 0));
    assert!(!can(small, FloatKind::F64, 0));
    // NVIDIA's driver binds half a million tensors.
    assert!(!can(small, FloatKind::F32, 1 << 30));
    assert!(!can([1, 1, 1, 8, 8, 257, 16], FloatKind::F32, 0));
    assert!(!can([1, 1, 1, 8, 8, 16, 257], FloatKind::F32, 0));
    assert!(!can([1, 1, 1, 1, 1 << 28, 1, 1], FloatKind::F32, 0));
    assert!(!can([1, 3, 2, 8, 8, 16, 16], FloatKind::F32, 0));
    assert!(!can([1, 3, 0, 8, 8, 16, 16], FloatKind::F32, 0));
    assert!(!can([usize::MAX, 1, 1, 8, 8, 16, 16], FloatKind::F32, 1));
    // The grid or the memory of a driver in software is too small for the splits of the longer call.
    let in_software = is_in_software(&client);
    assert!(can([1, 1, 1, 65_536, 65_536, 1, 1], FloatKind::F32, 0));
    let long = [1, 1, 1, 131_072, 131_072, 1, 1];
    assert_eq!(can(long, FloatKind::F32, 0), !in_software);
}

#[test]
fn scalars_beyond_f32_are_declined() {
    let least = f64::from(f32::MIN_POSITIVE);
    for scale in [0.0, 0.125, -3.0, least, 3.4e38] {
        assert!(supports_scalars(scale, None), "scale {scale}");
    }
    for scale in [least / 2.0, 3.5e38, f64::INFINITY, f64::NAN] {
        assert!(!supports_scalars(scale, None), "scale {scale}");
    }
    for softcap in [1e-18, 30.0, 1e18] {
        assert!(supports_scalars(1.0, Some(softcap)), "softcap {softcap}");
    }
    for softcap in [0.0, -30.0, 1e-19, 1e19, f64::NAN] {
        assert!(!supports_scalars(1.0, Some(softcap)), "softcap {softcap}");
    }
}

/// The message with which a call panics.
pub fn sentence<T: Debug>(call: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("a panic");
    *panic.downcast::<String>().expect("a sentence")
}

/// Five queries of two heads on seven keys.
fn small(client: &Client) -> Inputs {
    let tensor = |shape: &[usize]| floats(client, &vec![0.5; shape.iter().product()], shape);
    let [key, value] = [(); 2].map(|()| tensor(&[1, 1, 7, 4]));
    Inputs::new(tensor(&[1, 2, 5, 4]), key, value, 1.0)
}

/// Unwritten output and logsumexp of [`small`].
fn results(client: &Client) -> [Operand; 2] {
    [&[1, 2, 5, 4][..], &[1, 2, 5]].map(|shape| unwritten(client, F32, shape))
}

#[test]
fn what_the_device_refuses_is_one_sentence_and_no_result() {
    let Some(client) = client() else { return };
    let [output, logsumexp] = results(&client);
    let too_large = Case {
        tile: Some(Tile::square(128, 8, 8)),
        ..Case::new([1; 7])
    };
    let inputs = small(&client);
    let call = || forward(&client, &inputs, &output, &logsumexp);
    let said = too_large.forced(call).unwrap_err().to_string();
    assert!(
        said.starts_with("attention of f32 with Problem {"),
        "{said}"
    );
    // An array that is never used counts in WGSL alone.
    let is_refused = |said: &str| {
        let memory = |bytes| format!("shared memory requested; Requested {bytes} bytes, maximum ");
        [82432, 82436]
            .iter()
            .any(|&bytes| said.contains(&memory(bytes)))
    };
    assert!(is_refused(&said), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for result in [&output, &logsumexp] {
        assert!(client.read_one(result.handle.clone()).is_err());
    }

    let ones = |shape: &[usize]| floats(&client, &vec![1.0; shape.iter().product()], shape);
    let upstream = Upstream {
        output: ones(&output.shape),
        logsumexp: ones(&logsumexp.shape),
        output_gradient: ones(&output.shape),
        logsumexp_gradient: ones(&logsumexp.shape),
    };
    let key = unwritten(&client, F32, &inputs.key.shape);
    let gradients = Gradients {
        key: Some(key),
        ..Gradients::default()
    };
    let call = || backward(&client, &inputs, &upstream, &gradients);
    let said = too_large.forced(call).unwrap_err().to_string();
    assert!(is_refused(&said), "{said}");
}

#[test]
fn a_device_is_asked_once_for_the_same_kernels() {
    let Some(client) = client() else { return };
    let asked = |scale, dim_v| {
        let mut inputs = small(&client);
        inputs.scale = scale;
        inputs.value = floats(&client, &vec![0.5; 7 * dim_v], &[1, 1, 7, dim_v]);
        let output = unwritten(&client, F32, &[1, 2, 5, dim_v]);
        let [_, logsumexp] = results(&client);
        let before = ASKED.get();
        forward(&client, &inputs, &output, &logsumexp).unwrap();
        ASKED.get() - before
    };
    // No other test has these widths, so their kernels were not confirmed before.
    let [first, again, wider] = [asked(0.5, 61), asked(0.25, 61), asked(0.5, 67)];
    assert_eq!([first, again, wider], [1, 0, 1]);
}

/// The message with which a forward pass panics after a change of its inputs.
fn refused(client: &Client, spoil: fn(&mut Inputs)) -> String {
    let mut inputs = small(client);
    spoil(&mut inputs);
    let [output, logsumexp] = results(client);
    sentence(|| forward(client, &inputs, &output, &logsumexp))
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let Some(client) = client() else { return };
    let refused = |spoil| refused(&client, spoil);
    assert_eq!(
        refused(|inputs| inputs.key.elem = ElemType::Float(FloatKind::F16)),
        "key is of f16, but must be of f32"
    );
    assert_eq!(
        refused(|inputs| inputs.query.strides = vec![40, 20, 1, 5]),
        "query has strides [40, 20, 1, 5], but the last must be 1"
    );
    assert_eq!(
        refused(|inputs| inputs.key.strides[2] = 400),
        "key of shape [1, 1, 7, 4] and strides [28, 28, 400, 1] ends at number 2403, but its memory has 112 bytes and indices end at 2147483647"
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
    assert_eq!(
        refused(|inputs| inputs.query.shape = vec![2, 5, 4]),
        "query is [2, 5, 4], but must have four dimensions"
    );
    assert_eq!(
        refused(|inputs| inputs.query.shape[1] = 0),
        "these kernels cannot compute attention of f32 with Problem { batch: 1, heads_q: 0, heads_kv: 1, len_q: 5, len_kv: 7, dim_qk: 4, dim_v: 4 }, 0 optional tensors besides sinks on this device"
    );
    assert_eq!(
        refused(|inputs| inputs.value.shape[1] = 3),
        "2 heads of queries cannot share 3 heads of keys"
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    let Some(client) = client() else { return };
    let refused = |spoil| refused(&client, spoil);
    assert_eq!(
        refused(|inputs| inputs.scale = f64::NAN),
        "scale is NaN, but must be 0 or of a size in 1.1754943508222875e-38..=3.4028234663852886e38"
    );
    assert_eq!(
        refused(|inputs| inputs.softcap = Some(0.0)),
        "softcap is 0, but must be in 8.673617379884035e-19..=1.152921504606847e18"
    );
    assert_eq!(
        refused(|inputs| {
            let seed = 7;
            inputs.dropout = Some(AttentionDropout {
                probability: 1.0,
                seed,
            });
        }),
        "the dropout probability must be at least 0 and less than 1, but is 1"
    );
    assert_eq!(
        refused(|inputs| {
            let mut table = inputs.value.clone();
            table.elem = U32;
            inputs.visible_blocks = Some((table, BlockSize::from([0, 64])));
        }),
        "visible_blocks are of 0 queries and 64 keys, but must have at least one of each"
    );
}
