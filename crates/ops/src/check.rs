//! One sentence, with the offending values, for bad shapes and options.

use core::ops::RangeInclusive;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_attn_kernels_cpu::{AttentionDropout, BlockSize, CausalAlignment, DistanceAxis};

use crate::{
    bias::{AttentionBias, DistancePart},
    blocks::VisibleBlocks,
    distance::all_distances,
    function::{
        ScoreFunction,
        captured::{Captures, Entries, Numbers},
    },
    mask::AttentionMask,
    options::AttentionOptions,
    segments::Segments,
};

pub(crate) fn value(key: &Tensor<4>, value: &Tensor<4>) {
    let (k, v) = (key.dims(), value.dims());
    assert!(
        k[..3] == v[..3],
        "attention: key {k:?} and value {v:?} must have the same batch, heads and length"
    );
    assert!(v[3] > 0, "attention: value {v:?} has width 0");
    of_floats("key", key);
    of_floats("value", value);
    let (of_key, of_value) = (key.dtype(), value.dtype());
    assert!(
        of_key == of_value,
        "attention: key is {of_key:?} but value is {of_value:?}"
    );
}

fn of_floats(name: &str, tensor: &Tensor<4>) {
    assert!(
        !matches!(tensor.dtype(), DType::QFloat(_)),
        "attention: the {name} is quantised, but must be floats: call `dequantize` first"
    );
}

pub(crate) fn scores(query: &Tensor<4>, key: &Tensor<4>, options: &AttentionOptions) {
    let (q, k) = (query.dims(), key.dims());
    for (what, of_q, of_k) in [("batch", q[0], k[0]), ("width", q[3], k[3])] {
        assert!(
            of_q == of_k,
            "attention: query {q:?} has {what} {of_q} but key {k:?} has {what} {of_k}"
        );
    }
    let ([batch, heads_q, len_q, width], [_, heads_kv, len_kv, _]) = (q, k);
    assert!(
        heads_q > 0 && width > 0,
        "attention: query {q:?} has {heads_q} heads of width {width}, but needs at least 1 head of width 1"
    );
    assert!(
        heads_kv > 0 && heads_q % heads_kv == 0,
        "attention: {heads_q} query heads cannot share {heads_kv} key/value heads evenly"
    );
    of_floats("query", query);
    of_floats("key", key);
    let (of_query, of_key) = (query.dtype(), key.dtype());
    assert!(
        of_query == of_key,
        "attention: query is {of_query:?} but key is {of_key:?}"
    );
    let scores = [batch, heads_q, len_q, len_kv];
    mask(&options.mask, scores);
    let has_offsets = options.query_offsets.is_some();
    biases(&options.bias, scores, has_offsets);
    if let Some(function) = &options.score_function {
        captured(&function.captures, scores, has_offsets);
        form_of_scores(function);
    }
    if let Some(sinks) = &options.sinks {
        of_heads("sinks", sinks.dims()[0], heads_q);
    }
    if let Some(offsets) = &options.query_offsets {
        let [count] = offsets.dims();
        assert!(
            count == batch,
            "attention: {count} query offsets were given for a batch of {batch}"
        );
        in_range(offsets, -(len_q as i64)..=len_kv as i64, |item, offset| {
            format!(
                "attention: the query offset of batch item {item} is {offset}, but must be from -{len_q} to {len_kv}, for {len_q} \
                 queries and {len_kv} keys"
            )
        });
    }
    numbers(options);
}

/// Panics unless every part of the mask fits the scores `[batch, heads, len_q, len_kv]`.
pub(crate) fn mask(mask: &AttentionMask, scores: [usize; 4]) {
    let [.., len_kv] = scores;
    if let Some(lengths) = parts(mask, scores) {
        in_range(lengths, 0..=len_kv as i64, |item, length| {
            format!(
                "attention: the key length of batch item {item} is {length}, but there are {len_kv} keys"
            )
        });
    }
}

/// The same for all but the values of key lengths, which it returns: those of a union count the first keys, and may count more than there are.
fn parts(mask: &AttentionMask, scores: [usize; 4]) -> Option<&Tensor<1, Int>> {
    let [batch, _, len_q, len_kv] = scores;
    for padding in &mask.padding {
        assert!(
            *padding == [batch, len_kv],
            "attention: a mask of padding {padding:?} does not fit batch {batch} and {len_kv} keys"
        );
    }
    if let Some(masked) = &mask.masked {
        broadcastable("mask", masked.dims(), scores);
    }
    for blocks in &mask.visible_blocks {
        visible_blocks(blocks, scores);
    }
    for function in &mask.functions {
        if let Some(table) = &function.table {
            let (of_table, name) = (table.scores, &function.captures.frame.name);
            assert!(
                of_table[2..] == scores[2..] && broadcasts(of_table, scores),
                "attention: the table of the mask function '{name}' is for scores {of_table:?}, but these are {scores:?} [batch, heads, len_q, len_kv]; \
                 a batch of 1 or 1 head in a table fits any number"
            );
        }
        captured(&function.captures, scores, true);
        let (count, reads) = (function.captures.ints().count(), &function.form);
        let reads = reads.as_ref().map(|form| form.captured());
        form(&function.captures, "integers", count, reads);
    }
    for either in mask.unions.iter().flatten() {
        parts(either, scores);
    }
    let segments = mask.segments.iter().map(Segments::dims);
    for [of_queries, of_keys] in segments.chain(mask.dense_segments.iter().copied()) {
        assert!(
            of_queries == [batch, len_q] && of_keys == [batch, len_kv],
            "attention: segments of shapes {of_queries:?} and {of_keys:?} do not fit batch {batch}, {len_q} queries and {len_kv} keys"
        );
    }
    mask.lengths(batch)
}

/// Panics with the sentence for a batch item and its number unless every number is in the range, where the numbers can be read
/// without waiting for a device.
fn in_range(
    numbers: &Tensor<1, Int>,
    range: RangeInclusive<i64>,
    sentence: impl Fn(usize, i64) -> String,
) {
    if !in_host_memory(&numbers.device()) {
        return;
    }
    let numbers = numbers.clone().into_data();
    for (item, number) in numbers.iter::<i64>().enumerate() {
        assert!(range.contains(&number), "{}", sentence(item, number));
    }
}

/// Whether tensors on the device are plain memory of this process (flex and ndarray, with autodiff or without).
///
/// Elsewhere, reading a tensor to check its values waits for all pending work on the device, and in a browser it is
/// impossible.
#[allow(
    deprecated,
    reason = "ndarray is deprecated upstream in favour of flex, but supported here as long as Burn has it"
)]
pub fn in_host_memory(device: &Device) -> bool {
    let in_host_memory: &[Device] = &[
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
    ];
    in_host_memory.contains(device)
}

fn visible_blocks(blocks: &VisibleBlocks, [batch, heads, len_q, len_kv]: [usize; 4]) {
    let (dims, BlockSize { queries, keys }) = (blocks.table.dims(), blocks.size);
    let [rows, columns] = blocks.size.table(len_q, len_kv);
    let table = [batch, heads, rows, columns];
    assert!(
        broadcasts(dims, table),
        "attention: visible_blocks {dims:?} do not broadcast to {table:?}, the [batch, heads, rows, columns] of {len_q} queries in \
         blocks of {queries} and {len_kv} keys in blocks of {keys}"
    );
}

/// Panics unless every part of the bias fits the scores `[batch, heads, len_q, len_kv]`.
pub(crate) fn biases(bias: &AttentionBias, scores: [usize; 4], has_offsets: bool) {
    let heads = scores[1];
    for dense in &bias.dense {
        broadcastable("bias", dense.dims(), scores);
    }
    for part in &bias.by_distance {
        match part {
            DistancePart::Alibi(slopes) => of_heads("ALiBi slopes", slopes.dims()[0], heads),
            DistancePart::PaperAlibi(slopes, _) => of_heads("ALiBi slopes", *slopes, heads),
            DistancePart::Numbers(numbers) => {
                distances("a bias by distance", numbers.dims(), scores, has_offsets);
            }
            DistancePart::Relative(table, buckets) => {
                if let Err(error) = buckets.validate() {
                    panic!("attention: {error}");
                }
                let (dims, buckets) = (table.dims(), buckets.buckets);
                assert!(
                    dims == [buckets, heads],
                    "attention: a relative table {dims:?} does not fit {buckets} buckets and {heads} query heads"
                );
            }
        }
    }
}

/// Panics unless what a function has captured fits the scores.
pub(crate) fn captured(captures: &Captures, scores: [usize; 4], has_offsets: bool) {
    let function = &captures.frame.name;
    for (index, captured) in captures.tensors.iter().enumerate() {
        let dims = match &captured.tensor {
            Numbers::Float(tensor) => tensor.dims(),
            Numbers::Int(tensor) => tensor.dims(),
        };
        let name = format!("captured tensor {index} of the function '{function}'");
        match captured.entries {
            Entries::Whole => {}
            Entries::Pairs => broadcastable(&name, dims, scores),
            Entries::Distances => {
                distances(&name, [dims[1], dims[3]], scores, has_offsets);
            }
        }
        if let Some((dim, what)) = captured.each {
            assert!(
                dims[dim] == scores[dim],
                "attention: {name} {dims:?} needs one number for each of {} {what}",
                scores[dim]
            );
        }
    }
}

/// Panics unless the scalar form of a score function reads as many floats as are captured.
pub(crate) fn form_of_scores(function: &ScoreFunction) {
    let (count, reads) = (function.captures.floats().count(), &function.form);
    let reads = reads.as_ref().map(|form| form.captured());
    form(&function.captures, "floats", count, reads);
}

/// Panics unless a form for single numbers reads as many as are captured.
fn form(captures: &Captures, kind: &str, count: usize, reads: Option<usize>) {
    assert!(
        reads.is_none_or(|reads| reads == count),
        "attention: the scalar form of the function '{}' reads {} {kind}, but {count} are captured",
        captures.frame.name,
        reads.unwrap_or_default()
    );
}

/// Panics unless numbers by distance fit the scores.
fn distances(name: &str, dims: [usize; 2], scores: [usize; 4], has_offsets: bool) {
    let [_, heads, len_q, len_kv] = scores;
    // The alignment decides which distances there are, not how many.
    let alignment = (!has_offsets).then(CausalAlignment::default);
    let axis = DistanceAxis {
        len_q,
        len_kv,
        alignment,
    };
    let needed = axis.len();
    let fits = |distances| dims == [heads, distances];
    assert!(
        axis.is_empty() || fits(needed) || fits(all_distances(len_q, len_kv)),
        "attention: {name} {dims:?} does not fit {heads} query heads, {len_q} queries and {len_kv} keys, which need \
         {needed} distances"
    );
}

fn of_heads(name: &str, count: usize, heads: usize) {
    assert!(
        count == heads,
        "attention: {count} {name} were given for {heads} query heads"
    );
}

fn numbers(options: &AttentionOptions) {
    if let Some(scale) = options.scale {
        assert!(
            scale.is_finite(),
            "attention: scale must be finite, got {scale}"
        );
    }
    if let Some(softcap) = options.softcap {
        assert!(
            softcap.is_finite() && softcap > 0.0,
            "attention: softcap must be positive and finite, got {softcap}"
        );
    }
    if let Some(AttentionDropout { probability, .. }) = options.dropout {
        assert!(
            (0.0..1.0).contains(&probability),
            "attention: dropout must be in [0, 1), got {probability}"
        );
    }
}

fn broadcastable(name: &str, dims: [usize; 4], scores: [usize; 4]) {
    assert!(
        broadcasts(dims, scores),
        "attention: {name} {dims:?} does not broadcast to the scores {scores:?} [batch, heads, len_q, len_kv]"
    );
}

fn broadcasts(dims: [usize; 4], full: [usize; 4]) -> bool {
    let mut dims = dims.iter().zip(full);
    dims.all(|(&dim, full)| dim == full || dim == 1)
}
