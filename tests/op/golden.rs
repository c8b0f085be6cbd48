//! What others compute: files made with PyTorch, whose README in `tests/golden/attention` says how.

use burn::tensor::{DType, Element};
use burn_attn::{CausalAlignment, RelativeBuckets, alibi_slopes};
use burn_attn_kernels_cpu::Window;
use burn_attn_tests::{compare::assert_near, devices, golden::GoldenFile, numbers::uniform_f64};

use crate::{
    case::{Case, Results},
    oracle::TOLERANCE_OF_F32,
};

const FILES: [&str; 16] = [
    "grouped_heads",
    "causal",
    "causal_more_queries",
    "sliding_window",
    "two_sided_window",
    "softcap",
    "gemma2",
    "sinks",
    "alibi",
    "t5_encoder",
    "t5_decoder",
    "segments",
    "blocks",
    "bias",
    "bias_of_heads",
    "bias_of_keys",
];

pub fn open(name: &str) -> GoldenFile {
    GoldenFile::open(&format!("attention/{name}"))
}

fn has(file: &GoldenFile, name: &str) -> bool {
    file.names().any(|known| known == name)
}

pub fn read<T: Element>(file: &GoldenFile, name: &str) -> Vec<T> {
    file.data(name).iter().collect()
}

fn shape(file: &GoldenFile, name: &str) -> [usize; 4] {
    file.data(name).shape().dims()
}

/// The tensor `name`, if the file has it.
fn optional<T: Element>(file: &GoldenFile, name: &str) -> Option<Vec<T>> {
    has(file, name).then(|| read(file, name))
}

/// The windows of the two libraries whose windows are in the files.
fn window(file: &GoldenFile) -> Option<Window> {
    let config = file.config();
    if let Some(tokens) = config["sliding_window"].as_u64() {
        // Mistral counts the query's own token among those of the window.
        return Some(Window {
            left: Some(tokens as usize - 1),
            right: Some(0),
        });
    }
    let sides: [usize; 2] = serde_json::from_value(config["window_size"].clone()).ok()?;
    let [left, right] = sides.map(Some);
    Some(Window { left, right })
}

/// The problem of a file, as its options are said here.
pub fn case(name: &str, file: &GoldenFile) -> Case {
    let config = file.config();
    let [batch, heads_q, len_q, dim_qk] = shape(file, "query");
    let [_, heads_kv, len_kv, dim_v] = shape(file, "value");
    Case {
        query: read(file, "query"),
        key: read(file, "key"),
        value: read(file, "value"),
        causal: (config["causal"] == true).then_some(CausalAlignment::BottomRight),
        window: window(file),
        segments: optional(file, "query_segments").zip(optional(file, "key_segments")),
        visible_blocks: optional(file, "visible_blocks").map(|table| {
            let size: [usize; 2] = serde_json::from_value(config["block"].clone())
                .expect("the queries and keys of a block");
            (shape(file, "visible_blocks"), table, size.into())
        }),
        bias: optional(file, "bias").map(|bias| (shape(file, "bias"), bias)),
        alibi: optional(file, "slopes"),
        relative: optional(file, "table").map(|table| {
            let buckets = RelativeBuckets {
                buckets: config["buckets"].as_u64().expect("a number") as usize,
                max_distance: config["max_distance"].as_u64().expect("a number") as usize,
                bidirectional: config["bidirectional"] == true,
            };
            (table, buckets)
        }),
        sinks: optional(file, "sinks"),
        softcap: config["softcap"].as_f64(),
        scale: config["scale"].as_f64(),
        ..Case::new(
            name,
            [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v],
        )
    }
}

/// Panics unless `actual` is what the file says: output, logsumexp, and as many gradients as it has.
fn check(what: &str, file: &GoldenFile, actual: Results, tolerance: f64) {
    let [query, key, value] = actual.gradients;
    let mut pairs = vec![
        ("output", actual.output),
        ("logsumexp", actual.logsumexp),
        ("grad.query", query),
        ("grad.key", key),
        ("grad.value", value),
    ];
    for (name, gradient) in actual.option_gradients {
        let name = match name {
            "bias gradient" => "grad.bias",
            "slopes gradient" => "grad.slopes",
            "table gradient" => "grad.table",
            "sinks gradient" => "grad.sinks",
            _ => panic!("{what}: no file has a {name}"),
        };
        pairs.push((name, gradient));
    }
    let gradients = file.names().filter(|name| name.starts_with("grad."));
    assert_eq!(gradients.count() + 2, pairs.len(), "{what}");
    for (name, actual) in pairs {
        let expected: Vec<f64> = read(file, name);
        let what = format!("{name} of '{what}'");
        assert_near(&what, &actual, &expected, tolerance);
    }
}

#[test]
fn the_operation_computes_what_pytorch_computes() {
    for name in FILES {
        let file = open(name);
        let case = case(name, &file);
        // The suite weighs its losses itself.
        let weights = |seed, name| {
            let of_file: Vec<f64> = read(&file, name);
            assert_eq!(of_file, uniform_f64(seed, of_file.len()), "{name}");
        };
        weights(7, "loss.output");
        weights(8, "loss.logsumexp");
        for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, TOLERANCE_OF_F32)] {
            let mut devices = devices::with(dtype);
            // There the operation agrees with the oracle, and the oracle with these files.
            devices.retain(|device| !devices::is_sampled(device));
            for device in devices {
                let what = format!("{name} on {device:?} in {dtype:?}");
                check(&what, &file, case.run(&device, dtype), tolerance);
            }
        }
    }
}

/// The other suites compare with the oracle, so the oracle has to be right.
#[test]
fn the_oracle_computes_what_pytorch_computes() {
    for name in FILES {
        let file = open(name);
        check(name, &file, case(name, &file).oracle(), 1e-13);
    }
}

#[test]
fn slopes_are_those_of_bloom() {
    let slopes: Vec<f64> = read(&open("alibi"), "slopes");
    let ours = alibi_slopes(slopes.len());
    // Bloom computes its slopes in f32.
    assert_near("a slope", &ours, &slopes, f32::EPSILON.into());
}
