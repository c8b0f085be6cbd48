//! What a mask by position hides does not depend on the integers that a device has by default.

use std::{env, process::Command};

use burn::tensor::{DType, Device, Int, IntDType, Tensor};
use burn_attn::{AttentionMask, AttentionOptions, MaskFunction, ops::attention_weights};
use burn_attn_tests::devices;

/// Set in the process whose devices have other integers, to their type: a device gets its defaults once.
const INTEGERS: &str = "BURN_ATTN_TEST_INTEGERS";
const SAME: &str = "the masks are the same";

const LEN_Q: usize = 5;
/// More than 8 bits count with a sign.
const LEN_KV: usize = 201;
const LEFT: usize = 150;

fn ints(number: i64, device: &Device) -> Tensor<1, Int> {
    Tensor::from_data([number], (device, DType::I64))
}

/// The keys that each query sees, in order.
fn seen(options: AttentionOptions, device: &Device) -> Vec<Vec<usize>> {
    let [query, key] =
        [LEN_Q, LEN_KV].map(|len| Tensor::<4>::ones([1, 1, len, 3], (device, DType::F32)));
    let weights = attention_weights(query, key, options).into_data();
    let weights: Vec<f32> = weights.iter().collect();
    let rows = weights.chunks(LEN_KV);
    let rows = rows.map(|row| (0..LEN_KV).filter(|&key| row[key] > 0.0).collect());
    rows.collect()
}

/// Those of a window to the left of queries from `first` on, out of `length` keys.
fn in_window(first: usize, length: usize) -> Vec<Vec<usize>> {
    let queries = first..first + LEN_Q;
    let rows = queries.map(|position| {
        let keys = position - LEFT..=position;
        keys.filter(|&key| key < length).collect()
    });
    rows.collect()
}

fn assert_windows(device: &Device) {
    let window = || AttentionOptions::default().mask(AttentionMask::window(LEFT, 0));
    let last = LEN_KV - LEN_Q;
    assert_eq!(seen(window(), device), in_window(last, LEN_KV));
    let lengths = AttentionMask::key_lengths(ints(190, device));
    assert_eq!(seen(window().mask(lengths), device), in_window(last, 190));
    let placed = window().query_offsets(ints(198, device));
    assert_eq!(seen(placed, device), in_window(198, LEN_KV));
    let function = MaskFunction::new("window", |pairs| {
        let distances = pairs.distances();
        let not_later = distances.clone().greater_equal_elem(0);
        not_later.bool_and(distances.lower_equal_elem(LEFT as i64))
    });
    let function = AttentionOptions::default().mask(AttentionMask::function(function));
    assert_eq!(seen(function, device), in_window(last, LEN_KV));
}

/// What [`other_integers_hide_the_same`] runs.
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
    }
    println!("\n{SAME}");
}

#[test]
fn other_integers_hide_the_same() {
    for (_, device) in devices::cpu() {
        assert_windows(&device);
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
