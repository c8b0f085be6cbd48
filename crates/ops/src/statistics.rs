//! What the weights of long sequences look like, in memory that is linear in the lengths.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, Tensor},
};

use crate::{
    AttentionOptions,
    at_positions::FARTHEST,
    attention::score_inputs,
    composed::{
        counting,
        part::{Part, aligned},
        statistics_dtype, weights_of_part,
    },
};

/// Weights of each head that exist at a time, as far as one row has no more.
const AREA: usize = 1 << 16;

/// What [`attention_statistics`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatisticsOptions {
    /// How many keys are listed for each query.
    pub top_k: usize,
    /// The largest distance that is counted by itself.
    pub max_distance: usize,
}

impl StatisticsOptions {
    /// The four keys with the largest weights of each query, and distances up to 64.
    pub fn new() -> Self {
        Self {
            top_k: 4,
            max_distance: 64,
        }
    }

    /// How many keys are listed for each query.
    pub fn top_k(mut self, top_k: usize) -> Self {
        self.top_k = top_k;
        self
    }

    /// The largest distance that is counted by itself.
    pub fn max_distance(mut self, max_distance: usize) -> Self {
        self.max_distance = max_distance;
        self
    }
}

impl Default for StatisticsOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Statistics of the weights of every head, added up in f32 at least; the weights themselves have the query's type. Means are over the queries that see a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttentionStatistics {
    /// The mean entropy of a query's weights in bits, `[batch, heads_q]`. What a sink takes of them has no term.
    pub entropy: Tensor<2>,
    /// The mean weight of the first key, `[batch, heads_q]`.
    pub first_key: Tensor<2>,
    /// The mean weight of the keys at each distance from the query, before or after it, `[batch, heads_q, max_distance + 2]`; the last number is that of all that are
    /// further away. It is the difference of indices: query `i` and key `i` have the distance 0, whatever the lengths and offsets.
    pub distances: Tensor<3>,
    /// The keys with the largest weights of each query, the largest first, `[batch, heads_q, len_q, top_k]`, or fewer if there are fewer keys. Those of weight 0
    /// are any of the keys that the query does not see.
    pub top_keys: Tensor<4, Int>,
    /// Their weights.
    pub top_weights: Tensor<4>,
}

/// Statistics of the weights of [`attention_weights`](crate::attention_weights), without gradients. Panics as that does, and when `max_distance` is more than 2³⁰.
///
/// # Cost
///
/// The operations of [`attention_weights`](crate::attention_weights) and `2 · batch · heads_q · len_q · len_kv · d` more, where `d` is `max_distance`
/// or the longer length, whichever is smaller. The weights of a block of queries exist at a time: at most 65,536 of each head or those of one query,
/// and beside them a matrix with `d + 2` numbers for each pair of the block. `distances` has `batch · heads_q · (max_distance + 2)` numbers.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_ops::{AttentionOptions, StatisticsOptions, attention_statistics};
///
/// let device = Device::default();
/// let random = || Tensor::<4>::random([1, 2, 300, 8], Distribution::Default, &device);
/// let options = AttentionOptions::default().causal();
/// let statistics = attention_statistics(random(), random(), options, StatisticsOptions::new());
/// assert_eq!(statistics.top_keys.dims(), [1, 2, 300, 4]);
/// ```
pub fn attention_statistics(
    query: Tensor<4>,
    key: Tensor<4>,
    options: AttentionOptions,
    StatisticsOptions {
        top_k,
        max_distance,
    }: StatisticsOptions,
) -> AttentionStatistics {
    let ([batch, heads, len_q, _], [_, _, len_kv, _]) = (query.dims(), key.dims());
    let (device, of_query) = (query.device().without_autodiff(), query.dtype());
    assert!(
        max_distance <= FARTHEST,
        "attention_statistics: max_distance must be at most {FARTHEST}, got {max_distance}"
    );
    let has_scores = ![batch, heads, len_q, len_kv].contains(&0);
    // No distance is as large as the longer length.
    let counted = match has_scores {
        true => max_distance.min(len_q.max(len_kv)),
        false => max_distance,
    };
    let top_k = top_k.min(len_kv);
    let inputs = score_inputs(query, key, options).without_autodiff();
    // Sums over many queries, and logarithms of small weights, are beyond half precision.
    let dtype: DType = statistics_dtype(of_query.into()).into();
    let zeros = |columns: usize| Tensor::<3>::zeros([batch, heads, columns], (&device, dtype));
    let mut sums = [zeros(1), zeros(1), zeros(1), zeros(counted + 2)];
    let (mut top_keys, mut top_weights) = (Vec::new(), Vec::new());
    let rows = (AREA / len_kv.max(1)).max(1);
    let inputs = has_scores.then(|| aligned::<Dispatch>(inputs));
    for first in (0..len_q).step_by(rows) {
        let Some(inputs) = &inputs else { break };
        let part = Part {
            queries: first..len_q.min(first + rows),
            ..Part::whole(len_q, len_kv)
        };
        let weights = weights_of_part::<Dispatch>(part.of(inputs), &part);
        let weights = Tensor::<4>::from_dispatch(weights).cast(dtype);
        let sees = weights.clone().sum_dim(3).greater_elem(0.0);
        // A weight of 0 adds nothing.
        let bits = (weights.clone() + f64::from(f32::MIN_POSITIVE)).log() / -std::f64::consts::LN_2;
        let over_rows = |x: Tensor<4>| x.sum_dim(2).squeeze_dim::<3>(2);
        let pairs = part.queries.len() * len_kv;
        let flat = weights.clone().reshape([batch, heads, pairs]);
        let one_hot = by_distance(&part, counted, &device);
        let more = [
            over_rows(sees.float().cast(dtype)),
            over_rows((weights.clone() * bits).sum_dim(3)),
            over_rows(weights.clone().narrow(3, 0, 1)),
            flat.matmul(one_hot.cast(dtype).unsqueeze()),
        ];
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.clone() + more;
        }
        if top_k > 0 {
            let (weights, keys) = weights.topk_with_indices(top_k, 3);
            top_weights.push(weights);
            top_keys.push(keys);
        }
    }
    let [sees, entropy, first_key, distances] = sums;
    let sees = sees.clamp_min(1.0);
    let mean = |sum: Tensor<3>| sum / sees.clone();
    let distances = mean(distances);
    let distances = match max_distance - counted {
        0 => distances,
        missing => Tensor::cat(vec![distances, zeros(missing)], 2),
    };
    let shape = [batch, heads, len_q, top_k];
    AttentionStatistics {
        entropy: mean(entropy).squeeze_dim(2),
        first_key: mean(first_key).squeeze_dim(2),
        distances,
        top_keys: match top_keys.is_empty() {
            true => Tensor::zeros(shape, &device),
            false => Tensor::cat(top_keys, 2),
        },
        top_weights: match top_weights.is_empty() {
            true => Tensor::zeros(shape, (&device, dtype)),
            false => Tensor::cat(top_weights, 2),
        },
    }
}

/// For each pair of a query of the part and a key a row with 1 at its distance, `[pairs, max_distance + 2]`.
fn by_distance(part: &Part, max_distance: usize, device: &Device) -> Tensor<2> {
    let positions = |range: &std::ops::Range<usize>| {
        Tensor::<1, Int>::arange(range.start as i64..range.end as i64, counting(device))
    };
    let (queries, keys) = (positions(&part.queries), positions(&part.keys));
    let distances = (queries.unsqueeze_dim::<2>(1) - keys.unsqueeze_dim::<2>(0)).abs();
    let distances = distances.clamp_max(max_distance as i64 + 1);
    let distances = distances.reshape([part.queries.len() * part.keys.len(), 1]);
    let bins = Tensor::<1, Int>::arange(0..max_distance as i64 + 2, counting(device));
    let shape = [distances.dims()[0], max_distance + 2];
    let bins = bins.unsqueeze_dim::<2>(0).expand(shape);
    distances.expand(shape).equal(bins).float()
}
