//! What a mask by position hides, and what modules count, does not depend on the integers that a device has by default.

use std::{env, process::Command};

use burn::tensor::{DType, Device, Int, IntDType, Tensor};
use burn_attn::{
    AttentionMask, AttentionOptions, KvCacheConfig, MaskFunction, MultiHeadAttentionConfig,
    MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput, positions::PositionEncoding,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

use crate::properties::seen;

/// Set in the process whose devices have other integers, to their type: a device gets its defaults once.
const INTEGERS: &str = "BURN_ATTN_TEST_INTEGERS";
const SAME: &str = "masks and modules are the same";

const LEN_Q: usize = 5;
/// More than 8 bits count with a sign.
const LEN_KV: usize = 201;
const LEFT: usize = 150;

fn ints(number: i64, device: &Device) -> Tensor<1, Int> {
    Tensor::from_data([number], (device, DType::I64))
}

/// The keys that each query sees, in order, through a window to the left of queries from `first` on, out of `length` keys.
fn in_window(first: usize, length: usize) -> Vec<Vec<usize>> {
    let queries = first..first + LEN_Q;
    let rows = queries.map(|position| {
        let keys = position - LEFT..=position;
        keys.filter(|&key| key < length).collect()
    });
    rows.collect()
}

fn assert_windows(device: &Device) {
    let seen = |options| seen([LEN_Q, LEN_KV], options, device);
    let window = || AttentionOptions::default().mask(AttentionMask::window(LEFT, 0));
    let last = LEN_KV - LEN_Q;
    assert_eq!(seen(window()), in_window(last, LEN_KV));
    let lengths = AttentionMask::key_lengths(ints(190, device));
    assert_eq!(seen(window().mask(lengths)), in_window(last, 190));
    let placed = window().query_offsets(ints(198, device));
    assert_eq!(seen(placed), in_window(198, LEN_KV));
    let function = MaskFunction::new("window", |pairs| {
        let distances = pairs.distances();
        let not_later = distances.clone().greater_equal_elem(0);
        not_later.bool_and(distances.lower_equal_elem(LEFT as i64))
    });
    let function = AttentionOptions::default().mask(AttentionMask::function(function));
    assert_eq!(seen(function), in_window(last, LEN_KV));
}

/// Modules with more keys than 8 bits count, and with queries before the first key.
fn assert_modules(device: &Device) {
    let close = |what: &str, actual: Tensor<3>, expected: Tensor<3>| {
        assert_close(what, &actual.into_data(), &expected.into_data(), 1e-5);
    };
    let [queries, keys] = [LEN_Q, LEN_KV].map(|len| tensor::<3>([2, len, 8], 1, device));

    let config = MultiHeadAttentionConfig::new(8, 2).with_position(PositionEncoding::rotary());
    let module = filled(config.init(device), 2);
    let input = || MultiHeadAttentionInput::cross_attention(queries.clone(), keys.clone());
    // Rotary positions count distances alone.
    let moved = module.forward(input().positions(0).key_positions(3));
    close("offset", module.forward(input().offset(-3)), moved);
    let lengths = Tensor::from_data([190, 3], (device, DType::I64));
    let of_device = module.forward(input().mask(AttentionMask::key_lengths(lengths)));
    let of_host = module.forward(input().lengths(&[190, 3]));
    close("lengths", of_device, of_host);

    let config = SelfAttentionConfig::new(8, 2).with_causal(true);
    let module = filled(config.init(device), 3);
    let counts = [LEN_KV - 1, 140];
    let last = |x: &Tensor<3>| {
        let of_sequence = |b: usize| x.clone().narrow(0, b, 1).narrow(1, counts[b], 1);
        Tensor::cat(vec![of_sequence(0), of_sequence(1)], 0)
    };
    let mut cache = module.cache(2, &KvCacheConfig::new(LEN_KV));
    let prompts = SelfAttentionInput::new(keys.clone().narrow(1, 0, counts[0]));
    module.forward_cached(prompts.lengths(&counts), &mut cache);
    let token = module.forward_cached(last(&keys), &mut cache);
    close("cache", token, last(&module.forward(keys)));
}

/// What [`other_integers_change_nothing`] runs.
#[test]
fn another_process() {
    let Ok(integers) = env::var(INTEGERS) else {
        return;
    };
    let integers = match integers.as_str() {
        "u32" => IntDType::U32,
        _ => IntDType::I8,
    };
    for (_, mut device) in devices::cpu() {
        device.configure(integers).expect("nothing was made before");
        assert_windows(&device);
        assert_modules(&device);
    }
    println!("\n{SAME}");
}

#[test]
fn other_integers_change_nothing() {
    for (_, device) in devices::cpu() {
        assert_windows(&device);
        assert_modules(&device);
    }
    for integers in ["u32", "i8"] {
        // Not `current_exe`, which is the loader where cargo's runner is one.
        let program = env::args_os().next().expect("a program");
        let mut process = Command::new(program);
        let name = "default_integers::another_process";
        process.args(["--exact", name, "--nocapture"]);
        let output = process.env(INTEGERS, integers).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains(SAME),
            "{integers}: {text}{output:?}"
        );
    }
}
