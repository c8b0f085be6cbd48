//! Attention: the public functions, which check, unwrap the tensors, dispatch and wrap the results.

use burn::{
    backend::{Dispatch, tensor::FloatTensor},
    tensor::{DType, Tensor},
};
use burn_attn_kernels_cpu::DistanceAxis;

use crate::{
    AttentionBias, AttentionOptions,
    backend::{AttentionOps, AttentionScalars, Body, Results, ScoreInputs},
    bias::DistancePart,
    blockwise, check,
    composed::{self, counting, statistics_dtype},
    devices,
    distance::{at_any_offset, distance_bias, of_distances},
    union::Place,
};

/// Scaled dot-product attention: `softmax(scale · query · keyᵀ) · value`, with the masks, biases, softcap, sinks and
/// dropout of `options`.
///
/// # Shapes
///
/// - `query`: `[batch, heads_q, len_q, dim_qk]`
/// - `key`: `[batch, heads_kv, len_kv, dim_qk]`
/// - `value`: `[batch, heads_kv, len_kv, dim_v]`
/// - output: `[batch, heads_q, len_q, dim_v]`, in the dtype of `query`
///
/// Query head `h` reads key/value head `h / (heads_q / heads_kv)`. A query that sees no key gets zeros.
///
/// # Panics
///
/// When the shapes do not fit each other or the options, when query, key and value differ in dtype or are quantised, when a tensor is on another device than the query, or
/// when a number of the options is out of range. One sentence names the values.
///
/// # Cost
///
/// `2 · batch · heads_q · len_q · len_kv · (dim_qk + dim_v)` operations over visible pairs, 2.5 times as many backward. Memory is
/// linear in the lengths, in both directions, on every backend. Flex, ndarray and GPUs have fused kernels; elsewhere, the
/// backend's operations compute block by block, including the hidden pairs of a block. On flex and ndarray they also compute calls with
/// functions that kernels cannot run, see [`ScoreFunction::scalar`](crate::ScoreFunction::scalar), on GPUs calls with
///
/// | what | out of the kernels' range |
/// | --- | --- |
/// | heads | wider than 256 |
/// | query | not f32, f16 or bf16, or of a type that the device lacks |
/// | a score function, a mask function | any, but one that shows or hides whole [blocks](crate::MaskFunction::in_blocks) alone |
/// | dense bias | flex32 |
/// | key lengths, query offsets, segments | i64, u32 or u64 |
/// | mask, block table | two types of bools, or one that the device lacks |
/// | a tensor, the output included | empty, or of 2³¹ elements or more |
/// | `2 · batch · heads_q · len_q` | 2³¹ or more |
/// | `2 · batch · heads_q · (len_q + len_kv + 128)` | 2³¹ or more, with a bias by distance, in the backward pass |
/// | `len_q`, `len_kv` | 2²⁹ or more, or over 32 times the cubes of a launch in its first dimension |
/// | `batch · heads_q` | more than the cubes of a launch in its other two dimensions |
/// | softcap | below 2⁻⁶⁰ or above 2⁶⁰ |
/// | scale | neither 0 nor a normal number of f32 |
/// | number of tensors | more than the device binds: 6, and one per mask, bias or option that is a tensor, except sinks |
/// | device | cubes of fewer than 256 units, or of less than 8,576 bytes of shared memory |
/// | driver in software | parts of at most 4,096 keys, or queries of all heads of a group, that need more cubes than a launch has, or a larger buffer than the device allocates |
///
/// # Source
///
/// Vaswani et al., "Attention is all you need" (arXiv:1706.03762), equation 1. PyTorch equivalent:
/// `torch.nn.functional.scaled_dot_product_attention`; [`pytorch`](crate::pytorch) compares their arguments.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_ops::{AttentionOptions, attention};
///
/// let device = Device::default();
/// let random = |len| Tensor::<4>::random([2, 8, len, 16], Distribution::Default, &device);
/// let output = attention(random(5), random(7), random(7), AttentionOptions::default().causal());
/// assert_eq!(output.dims(), [2, 8, 5, 16]);
/// ```
pub fn attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    options: AttentionOptions,
) -> Tensor<4> {
    attention_with_logsumexp(query, key, value, options).0
}

/// [`attention`], and the logsumexp of each row's scores.
///
/// With the logsumexp, attention over parts of the keys can be merged exactly: see [`merge_partial`](crate::merge_partial).
/// Both results are differentiable.
///
/// # Shapes
///
/// See [`attention`]. The logsumexp is `[batch, heads_q, len_q]`, a natural logarithm in f32 or wider; −∞ for a row that sees
/// no key and has no sink. Panics and cost are those of [`attention`], which computes the logsumexp as well.
///
/// # Source
///
/// Dao et al., "FlashAttention" (arXiv:2205.14135), section 3.1. PyTorch equivalent: `flex_attention` with
/// `return_lse=True`.
pub fn attention_with_logsumexp(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    options: AttentionOptions,
) -> (Tensor<4>, Tensor<3>) {
    let body = <Dispatch as AttentionOps>::fused_attention;
    attention_by(body, [query, key, value], options)
}

fn attention_by(
    body: impl Fn(ScoreInputs<Dispatch>, FloatTensor<Dispatch>) -> Results<Dispatch>,
    [query, key, value]: [Tensor<4>; 3],
    options: AttentionOptions,
) -> (Tensor<4>, Tensor<3>) {
    check::value(&key, &value);
    devices::is_there(&query.device(), "the value is", &value.device());
    let inputs = score_inputs(query, key, options);
    let is_checked = inputs.score_function.is_some() && check::in_host_memory(&value.device());
    let value = value.into_dispatch();
    let checked = is_checked.then(|| (inputs.clone(), value.clone()));
    let (output, logsumexp) = body(inputs, value);
    let output = Tensor::from_dispatch(output);
    let logsumexp = Tensor::from_dispatch(logsumexp);
    // A NaN among the visible scores of a row makes its logsumexp NaN. So does +∞, which is not refused.
    if let Some((inputs, value)) = checked
        && blockwise::any(Tensor::<3>::is_nan(logsumexp.clone()))
    {
        blockwise::refuse_nan_of_function(inputs, &value);
    }
    (output, logsumexp)
}

/// For tests and benchmarks: [`attention_with_logsumexp`] by the blockwise body, even where the backend has kernels.
/// Blocks have about `block_area` scores per head; without `block_area`, the body chooses their size.
pub fn blockwise_attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    options: AttentionOptions,
    block_area: Option<usize>,
) -> (Tensor<4>, Tensor<3>) {
    let body = |mut inputs: ScoreInputs<Dispatch>, value| {
        inputs.scalars.body = Body::Blockwise(block_area);
        <Dispatch as AttentionOps>::fused_attention(inputs, value)
    };
    attention_by(body, [query, key, value], options)
}

/// For tests and benchmarks: [`attention_with_logsumexp`] by the composed body, which Burn differentiates.
pub fn composed_attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    options: AttentionOptions,
) -> (Tensor<4>, Tensor<3>) {
    attention_by(composed::forward::<Dispatch>, [query, key, value], options)
}

/// The attention weights themselves, `softmax(scores)`, before dropout: for inspection. [`attention`] never forms them.
///
/// They are `[batch, heads_q, len_q, len_kv]`; rows sum to one, to less with sinks, to zero for a query that sees no key. Panics as
/// [`attention`] does, but not for a NaN of a score function.
///
/// # Cost
///
/// `2 · batch · heads_q · len_q · len_kv · dim_qk` operations; memory of a few times the size of the result.
///
/// # Source
///
/// See [`attention`]. PyTorch equivalent: the second result of `nn.MultiheadAttention` with `need_weights=True` and
/// `average_attn_weights=False`, in inference.
pub fn attention_weights(query: Tensor<4>, key: Tensor<4>, options: AttentionOptions) -> Tensor<4> {
    let inputs = score_inputs(query, key, options);
    Tensor::from_dispatch(composed::weights::<Dispatch>(inputs))
}

pub(crate) fn score_inputs(
    query: Tensor<4>,
    key: Tensor<4>,
    options: AttentionOptions,
) -> ScoreInputs<Dispatch> {
    check::scores(&query, &key, &options);
    devices::is_there(&query.device(), "the key is", &key.device());
    devices::of_options(&query, &options);
    let statistics = statistics_dtype(query.dtype().into()).into();
    let ([batch, heads, len_q, width], [_, _, len_kv, _]) = (query.dims(), key.dims());
    let lengths = [len_q, len_kv];
    let mut mask = options.mask;
    if [batch, len_q, len_kv].contains(&0) {
        // There is nothing to hide.
        mask.unions.clear();
    }
    let mut bias = options.bias;
    let query_offsets = options.query_offsets.or_else(|| {
        let offset = mask.named_offset(lengths);
        let offset = offset.filter(|_| !mask.unions.is_empty())?;
        for part in &mut bias.by_distance {
            if let DistancePart::Numbers(numbers) = part {
                // Another alignment than the default is top-left.
                *numbers = at_any_offset(numbers.clone(), lengths);
            }
        }
        Some(Tensor::full([batch], offset, counting(&query.device())))
    });
    let (mask, first_keys) = mask.resolved(&Place {
        scores: [batch, heads, len_q, len_kv],
        device: query.device(),
        query_offsets: query_offsets.as_ref(),
    });
    let alignment = match &query_offsets {
        Some(_) => None,
        None => Some(mask.by_position.causal.unwrap_or_default()),
    };
    let axis = DistanceAxis {
        len_q,
        len_kv,
        alignment,
    };
    let has_scores = !axis.is_empty() && batch > 0;
    let (bias, distance_bias) = biases(axis, has_scores, statistics, bias);
    let sinks = options
        .sinks
        .map(|sinks| sinks.dequantize().cast(statistics));
    let (score_function, captured) = match options.score_function {
        Some(function) if has_scores => {
            let (call, captured) = function.into_call(statistics, |numbers| {
                let numbers = match alignment {
                    Some(_) => numbers,
                    None => at_any_offset(numbers, lengths),
                };
                of_distances(axis, statistics, numbers)
            });
            (Some(call), captured)
        }
        _ => (None, None),
    };
    let (mask, scalars) = mask.into_inputs(first_keys, query_offsets, lengths, &query.device());
    let scalars = AttentionScalars {
        scale: options.scale.unwrap_or(1.0 / (width as f64).sqrt()),
        softcap: options.softcap,
        dropout: options.dropout.filter(|dropout| dropout.probability > 0.0),
        ..scalars
    };
    ScoreInputs {
        query: query.into_dispatch(),
        key: key.into_dispatch(),
        bias: bias.map(Tensor::into_dispatch).into(),
        distance_bias: distance_bias.map(Tensor::into_dispatch).into(),
        sinks: sinks.map(Tensor::into_dispatch).into(),
        captured: captured.map(Tensor::into_dispatch).into(),
        score_function,
        mask,
        scalars,
    }
}

/// The sum of the dense parts of a bias, and the sum of those that depend on the distance only.
fn biases(
    axis: DistanceAxis,
    has_scores: bool,
    statistics: DType,
    AttentionBias { dense, by_distance }: AttentionBias,
) -> (Option<Tensor<4>>, Option<Tensor<2>>) {
    // Without scores there is nothing to bias, and a sum of empty tensors divides by zero on ndarray.
    let dense = dense.into_iter().filter(|_| has_scores);
    let dense = dense.map(Tensor::dequantize);
    // A single part keeps its dtype; several need a common one.
    let dense = dense.reduce(|sum, part| sum.cast(statistics) + part.cast(statistics));
    let distance = distance_bias(axis, statistics, by_distance);
    (dense, distance)
}
