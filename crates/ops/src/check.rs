//! One sentence, with the offending values, for bad shapes and options.

use core::ops::RangeInclusive;

use burn::tensor::{Device, Int, Tensor};
use burn_attn_kernels_cpu::{CausalAlignment, DistanceAxis};

use crate::{
    AttentionBias, AttentionOptions, bias::DistancePart, blocks::VisibleBlocks,
    distance::all_distances,
};

/// Panics unless the values fit the keys.
pub(crate) fn value(key: &Tensor<4>, value: &Tensor<4>) {
    let (k, v) = (key.dims(), value.dims());
    assert!(
        k[..3] == v[..3],
        "attention: key {k:?} and value {v:?} must have the same batch, heads and length"
    );
    assert!(v[3] > 0, "attention: value {v:?} has width 0");
    assert!(
        key.dtype() == value.dtype(),
        "attention: key is {:?} but value is {:?}",
        key.dtype(),
        value.dtype()
    );
}

/// Panics unless query, key and options fit each other.
pub(crate) fn scores(query: &Tensor<4>, key: &Tensor<4>, options: &AttentionOptions) {
    let (q, k) = (query.dims(), key.dims());
    for (what, of_q, of_k) in [("batch", q[0], k[0]), ("width", q[3], k[3])] {
        assert!(
            of_q == of_k,
            "attention: query {q:?} has {what} {of_q} but key {k:?} has {what} {of_k}"
        );
    }
    assert!(
        q[1] > 0 && q[3] > 0,
        "attention: query {q:?} has {} heads of width {}, but needs at least 1 head of width 1",
        q[1],
        q[3]
    );
    assert!(
        k[1] > 0 && q[1] % k[1] == 0,
        "attention: {} query heads cannot share {} key/value heads evenly",
        q[1],
        k[1]
    );
    assert!(
        query.dtype() == key.dtype(),
        "attention: query is {:?} but key is {:?}",
        query.dtype(),
        key.dtype()
    );
    let scores = [q[0], q[1], q[2], k[2]];
    let mask = &options.mask;
    if let Some(masked) = &mask.masked {
        broadcastable("mask", masked.dims(), scores);
    }
    for blocks in &mask.visible_blocks {
        visible_blocks(blocks, scores);
    }
    biases(&options.bias, scores, options.query_offsets.is_some());
    if let Some(sinks) = &options.sinks {
        let [sinks] = sinks.dims();
        assert!(
            sinks == q[1],
            "attention: {sinks} sinks were given for {} query heads",
            q[1]
        );
    }
    let of_batch = |name, numbers: &Tensor<1, Int>| {
        let [count] = numbers.dims();
        assert!(
            count == q[0],
            "attention: {count} {name} were given for a batch of {}",
            q[0]
        );
    };
    let (len_q, len_kv) = (q[2] as i64, k[2] as i64);
    if let Some(lengths) = &mask.key_lengths {
        of_batch("key lengths", lengths);
        in_range(lengths, 0..=len_kv, |item, length| {
            format!(
                "attention: the key length of batch item {item} is {length}, but there are {len_kv} keys"
            )
        });
    }
    if let Some(offsets) = &options.query_offsets {
        of_batch("query offsets", offsets);
        in_range(offsets, -len_q..=len_kv, |item, offset| {
            format!(
                "attention: the query offset of batch item {item} is {offset}, but must be from -{len_q} to {len_kv}, for {len_q} \
                 queries and {len_kv} keys"
            )
        });
    }
    if let Some(segments) = &mask.segments {
        let (of_queries, of_keys) = (segments.query.dims(), segments.key.dims());
        assert!(
            of_queries == [q[0], q[2]] && of_keys == [q[0], k[2]],
            "attention: segments of shapes {of_queries:?} and {of_keys:?} do not fit batch {}, {} queries and {} keys",
            q[0],
            q[2],
            k[2]
        );
    }
    numbers(options);
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

/// Panics unless the table broadcasts to the blocks of the scores.
fn visible_blocks(blocks: &VisibleBlocks, [batch, heads, len_q, len_kv]: [usize; 4]) {
    let (dims, size) = (blocks.table.dims(), blocks.size);
    let [rows, columns] = size.table(len_q, len_kv);
    let table = [batch, heads, rows, columns];
    assert!(
        broadcasts(dims, table),
        "attention: visible_blocks {dims:?} do not broadcast to {table:?}, the [batch, heads, rows, columns] of {len_q} queries in \
         blocks of {} and {len_kv} keys in blocks of {}",
        size.queries,
        size.keys
    );
}

/// Panics unless every part of the bias fits the scores `[batch, heads, len_q, len_kv]`.
pub(crate) fn biases(bias: &AttentionBias, scores: [usize; 4], has_offsets: bool) {
    let [_, heads, len_q, len_kv] = scores;
    for dense in &bias.dense {
        broadcastable("bias", dense.dims(), scores);
    }
    let of_heads = |slopes: usize| {
        assert!(
            slopes == heads,
            "attention: {slopes} ALiBi slopes were given for {heads} query heads"
        );
    };
    // The alignment decides which distances there are, not how many.
    let alignment = (!has_offsets).then(CausalAlignment::default);
    let axis = DistanceAxis {
        len_q,
        len_kv,
        alignment,
    };
    for part in &bias.by_distance {
        match part {
            DistancePart::Alibi(slopes) => of_heads(slopes.dims()[0]),
            DistancePart::PaperAlibi(heads, _) => of_heads(*heads),
            DistancePart::Numbers(numbers) => {
                let fits = |distances| numbers.dims() == [heads, distances];
                assert!(
                    axis.is_empty() || fits(axis.len()) || fits(all_distances(len_q, len_kv)),
                    "attention: a bias by distance {:?} does not fit {heads} query heads, {len_q} queries and {len_kv} keys, which need {} \
                     distances",
                    numbers.dims(),
                    axis.len()
                );
            }
            DistancePart::Relative(table, buckets) => {
                if let Err(error) = buckets.validate() {
                    panic!("attention: {error}");
                }
                assert!(
                    table.dims() == [buckets.buckets, heads],
                    "attention: a relative table {:?} does not fit {} buckets and {heads} query heads",
                    table.dims(),
                    buckets.buckets
                );
            }
        }
    }
}

/// Panics unless the numbers in the options are in range.
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
    if let Some(dropout) = options.dropout {
        assert!(
            (0.0..1.0).contains(&dropout.probability),
            "attention: dropout must be in [0, 1), got {}",
            dropout.probability
        );
    }
}

/// Panics unless `dims` broadcasts to the shape of the scores.
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
