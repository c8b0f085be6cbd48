//! Merging attention over keys that were split.

use burn::{
    backend::Dispatch,
    tensor::{Bool, DType, Tensor},
};

use crate::composed::{is_minus_infinity, least};

/// Merges attention over parts of the keys: up to rounding, the result is attention over all keys.
///
/// Each part is the result of [`attention_with_logsumexp`](crate::attention_with_logsumexp) for the same queries and some
/// of the keys; every key belongs to exactly one part, in any order.
///
/// ```text
/// logsumexp = log(sum_i exp(logsumexp_i))
/// output    = sum_i exp(logsumexp_i − logsumexp) · output_i
/// ```
///
/// A row that saw nothing in a part (a logsumexp of −∞) takes nothing from that part, whatever its output; a row that saw
/// nothing in any part has output 0 and logsumexp −∞. Both results are differentiable, through both results of every part.
///
/// Options that count keys need care: in each part, a causal mask, a window, ALiBi and the relative bias place the queries
/// at the end (or the beginning) of the keys of that part. Keys that are before all queries need no causal mask; a dense
/// mask can be cut anywhere. [Sinks](crate::AttentionOptions::sinks) join the sum once, so give them to one part only.
/// Dropout drops other weights than in one call, because it counts the keys of each part from zero.
///
/// # Shapes
///
/// - parts: outputs `[batch, heads_q, len_q, dim_v]`, logsumexps `[batch, heads_q, len_q]`
/// - results: shapes and dtypes of the first part; computed in the dtype of its logsumexp
///
/// # Panics
///
/// When there are no parts, when their shapes, dtypes or devices differ, or when the logsumexps are narrower than f32.
///
/// # Cost
///
/// A few operations, and floats of memory, per number of all parts.
///
/// # Source
///
/// Dao et al., "FlashAttention" (arXiv:2205.14135), section 3.1; Juravsky et al., "Hydragen" (arXiv:2402.05099), section 3.1.
/// PyTorch equivalent: `_SDPAMerger` inside the context parallelism of `torch.distributed.tensor.experimental`; vLLM's
/// `merge_attn_states`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_ops::{AttentionOptions, attention_with_logsumexp, merge_partial};
///
/// let device = Device::default();
/// let random = |len| Tensor::<4>::random([2, 3, len, 5], Distribution::Default, &device);
/// let (query, key, value) = (random(7), random(11), random(11));
/// let part = |first, count| {
///     let (key, value) = (key.clone().narrow(2, first, count), value.clone().narrow(2, first, count));
///     attention_with_logsumexp(query.clone(), key, value, AttentionOptions::default())
/// };
/// let (output, logsumexp) = merge_partial(&[part(0, 4), part(4, 7)]);
///
/// let (whole, _) = part(0, 11);
/// assert!((output - whole).abs().max().into_scalar::<f32>() < 1e-5);
/// assert_eq!(logsumexp.dims(), [2, 3, 7]);
/// ```
pub fn merge_partial(parts: &[(Tensor<4>, Tensor<3>)]) -> (Tensor<4>, Tensor<3>) {
    let first = parts.first();
    let first = first.expect("merge_partial: there are no parts to merge");
    check(parts);
    if first.1.shape().num_elements() == 0 {
        return first.clone();
    }
    let (dtype, statistics) = (first.0.dtype(), first.1.dtype());

    // The results do not depend on the maximum, so the maximum needs no gradient. Where no part saw anything, any finite
    // number in place of −∞ makes every factor exactly 0 instead of NaN.
    let logsumexps = parts.iter().map(|(_, part)| part.clone().detach());
    let maximum = logsumexps.reduce(Tensor::max_pair);
    let maximum = maximum.expect("there is a part");
    let without_term = minus_infinity(maximum.clone());
    let maximum = maximum.clamp_min(least(statistics.into()));

    let mut sum = Tensor::zeros_like(&maximum);
    let mut output = Tensor::zeros_like(&first.0.clone().cast(statistics));
    for (part, logsumexp) in parts {
        // ANCHOR: merge-parts
        let factor = (logsumexp.clone() - maximum.clone()).exp();
        // Selected, not multiplied: zero times NaN would be NaN.
        let hidden = minus_infinity(logsumexp.clone()).unsqueeze_dim::<4>(3);
        let part = part.clone().cast(statistics);
        let part = part.clone().mask_fill(hidden.expand(part.dims()), 0.0);
        output = output + part * factor.clone().unsqueeze_dim::<4>(3);
        sum = sum + factor;
        // ANCHOR_END: merge-parts
    }
    // A row that sees something has a factor of exp(0).
    let sum = sum.mask_fill(without_term.clone(), 1.0);
    let output = output / sum.clone().unsqueeze_dim::<4>(3);
    let logsumexp = maximum + sum.log();
    (
        output.cast(dtype),
        logsumexp.mask_fill(without_term, f64::NEG_INFINITY),
    )
}

/// [`is_minus_infinity`] of a tensor of the frontend.
fn minus_infinity(logsumexp: Tensor<3>) -> Tensor<3, Bool> {
    Tensor::from_dispatch(is_minus_infinity::<Dispatch>(logsumexp.into_dispatch()))
}

fn check(parts: &[(Tensor<4>, Tensor<3>)]) {
    let (output, logsumexp) = &parts[0];
    assert!(
        matches!(logsumexp.dtype(), DType::F64 | DType::F32 | DType::Flex32),
        "merge_partial: the logsumexps must be f32 or wider, but are {:?}",
        logsumexp.dtype()
    );
    let shape = output.dims();
    for (index, (of_part, logsumexp_of_part)) in parts.iter().enumerate() {
        let (dims, rows) = (of_part.dims(), logsumexp_of_part.dims());
        assert!(
            rows == dims[..3],
            "merge_partial: the output {dims:?} and the logsumexp {rows:?} of part {index} must have the same batch, heads \
             and length"
        );
        assert!(
            dims == shape,
            "merge_partial: part 0 has an output {shape:?} but part {index} has {dims:?}"
        );
        let device = output.device();
        for found in [of_part.device(), logsumexp_of_part.device()] {
            assert!(
                found == device,
                "merge_partial: part 0 has an output on {device:?} but part {index} is on {found:?}"
            );
        }
        let dtypes = [output.dtype(), logsumexp.dtype()];
        let of_part = [of_part.dtype(), logsumexp_of_part.dtype()];
        assert!(
            of_part == dtypes,
            "merge_partial: part 0 is {dtypes:?} (output, logsumexp) but part {index} is {of_part:?}"
        );
    }
}
