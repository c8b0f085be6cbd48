//! ONNX's operator Attention, by what the page of [`burn_attn::ops::pytorch`] says of it, against its reference evaluator.

use burn::tensor::{DType, Device, Element, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, CausalAlignment,
    ops::{attention, split_heads},
};
use burn_attn_tests::{compare::assert_close, devices, golden::GoldenFile};

use crate::properties::seen;

const FILES: [&str; 6] = [
    "past",
    "no_past",
    "external_cache",
    "bools",
    "floats",
    "three_axes",
];

fn read<T: Element>(file: &GoldenFile, name: &str) -> TensorData {
    let data = file.data(name);
    TensorData::new(data.iter::<T>().collect(), data.shape().clone())
}

fn tensor<const D: usize>(file: &GoldenFile, name: &str, device: &Device) -> Tensor<D> {
    Tensor::from_data(read::<f64>(file, name), (device, DType::F64))
}

/// Query, key and value as `[batch, heads, len, width]`, those of the past before the new ones.
fn operands(name: &str, file: &GoldenFile, device: &Device) -> [Tensor<4>; 3] {
    if name == "three_axes" {
        return [("q", 6), ("k", 2), ("v", 2)].map(|(name, heads)| {
            let [x] = split_heads(tensor(file, name, device), [heads]);
            x
        });
    }
    ["q", "k", "v"].map(|part| {
        let new = tensor(file, part, device);
        match (name, part) {
            ("past", "k") => Tensor::cat(vec![tensor(file, "past_key", device), new], 2),
            ("past", "v") => Tensor::cat(vec![tensor(file, "past_value", device), new], 2),
            _ => new,
        }
    })
}

fn options(name: &str, file: &GoldenFile, device: &Device) -> AttentionOptions {
    let options = AttentionOptions::default();
    match name {
        "past" => options.causal(),
        "no_past" => options.mask(AttentionMask::causal_aligned(CausalAlignment::TopLeft)),
        "external_cache" => {
            let lengths = read::<i64>(file, "nonpad_kv_seqlen");
            let lengths = Tensor::<1, Int>::from_data(lengths, device);
            options
                .causal()
                .mask(AttentionMask::key_lengths(lengths.clone()))
                .query_offsets(lengths - 3)
                .scale(0.25)
        }
        "bools" => {
            let visible: Tensor<4> = tensor(file, "attn_mask", device);
            let visible = AttentionMask::visible(visible.greater_elem(0.5));
            options.mask(visible).softcap(0.75)
        }
        "floats" => {
            let bias = AttentionBias::dense(tensor(file, "attn_mask", device));
            options.bias(bias).softcap(0.75)
        }
        _ => options,
    }
}

#[test]
fn the_operation_computes_what_onnx_computes() {
    for device in devices::with(DType::F64) {
        for name in FILES {
            let file = GoldenFile::open(&format!("onnx/{name}"));
            let [query, key, value] = operands(name, &file, &device);
            let output = attention(query, key, value, options(name, &file, &device));
            let expected = match name {
                "three_axes" => {
                    let [y] = split_heads(tensor(&file, "y", &device), [6]);
                    y.into_data()
                }
                _ => file.data("y"),
            };
            let what = format!("{name} on {device:?}");
            assert_close(&what, &output.into_data(), &expected, 1e-13);
        }
    }
}

/// The expected keys are those of the reference evaluator's window, opset 25, written out by hand.
#[test]
fn a_window_counts_from_the_past_or_the_keys_that_are_no_padding() {
    let device = devices::any();
    let ints = |number: i64| Tensor::<1, Int>::from_data([number], &device);
    let seen = |lengths, first: i64, mask: AttentionMask| {
        let options = AttentionOptions::default().mask(AttentionMask::window(1, 0).and(mask));
        seen(lengths, options.query_offsets(ints(first)), &device)
    };
    // Without a past: from the first key, whatever the lengths.
    let none = seen([5, 3], 0, AttentionMask::none());
    assert_eq!(none, [vec![0], vec![0, 1], vec![1, 2], vec![2], vec![]]);
    // With 3 keys that are no padding.
    let padded = seen([2, 5], 3 - 2, AttentionMask::key_lengths(ints(3)));
    assert_eq!(padded, [[0, 1], [1, 2]]);
    // With a past of 2 tokens, and 3 new keys.
    let past = seen([2, 5], 2, AttentionMask::none());
    assert_eq!(past, [[1, 2], [2, 3]]);
}
