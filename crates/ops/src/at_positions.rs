//! Windows and biases by distance between tokens at any positions, which no alignment describes.

use burn::tensor::{Bool, DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_attn_kernels_cpu::Window;

use crate::{
    AttentionMask, AttentionOptions,
    bias::DistancePart,
    check,
    composed::{counting, statistics_dtype},
    distance::{alibi, of_table, paper_slopes, selected},
};

/// The most positions between two tokens of a sequence: the integers of some devices have 32 bits.
pub(crate) const FARTHEST: usize = 1 << 30;

impl AttentionOptions {
    /// Whether a mask or a bias depends on the distance between query and key: a window, ALiBi, a relative bias, distances.
    pub fn counts_distances(&self) -> bool {
        let has_window = self.mask.any(&|mask| mask.by_position.window.is_some());
        has_window || !self.bias.by_distance.is_empty()
    }

    /// These options for the queries `like` and `len_kv` keys at any positions, one list for all sequences or one for each: windows and biases by distance
    /// count between the positions. A causal mask does not: it hides the keys that come later in their sequence.
    ///
    /// # Panics
    ///
    /// When there are neither one list nor one for each sequence, or not one position per token; when tokens of a sequence are more than
    /// 2³⁰ positions apart; when a bias does not fit the query, or one by [distances](crate::AttentionBias::distances) has no entry for a distance
    /// that occurs.
    ///
    /// # Cost
    ///
    /// `len_q · len_kv` bools for a window, `heads_q · len_q · len_kv` numbers for biases; times the batch if the sequences differ. Each
    /// is made of as many distances as a window has bools, in integers. The gradient of a table or of numbers by distance is a loop over as
    /// many indices on GPUs.
    pub fn at_positions(
        mut self,
        query: &[Vec<usize>],
        key: &[Vec<usize>],
        like: &Tensor<4>,
        len_kv: usize,
    ) -> Self {
        let [batch, heads, len_q, _] = like.dims();
        if !self.counts_distances() || [batch, len_q, len_kv].contains(&0) {
            return self;
        }
        for (name, lists, len) in [("queries", query, len_q), ("keys", key, len_kv)] {
            let fits = lists.len() == batch || lists.len() == 1;
            assert!(
                fits && lists.iter().all(|list| list.len() == len),
                "attention: positions of {:?} {name} were given for a batch of {batch} with {len} each",
                lists.iter().map(Vec::len).collect::<Vec<_>>()
            );
        }
        // Where there are as many queries as keys, every alignment has its zero at the same number.
        check::biases(&self.bias, [batch, heads, len_q, len_kv], len_q != len_kv);
        let distances = Distances::new(one_if_equal(query), one_if_equal(key), like.device());
        self.mask = self.mask.map_all(&|mut mask| {
            let window = mask.by_position.window.take();
            match window.and_then(|window| distances.beyond(window)) {
                Some(hidden) => mask.and(AttentionMask::masked(hidden)),
                None => mask,
            }
        });
        for part in core::mem::take(&mut self.bias.by_distance) {
            self.bias.dense.push(distances.bias(part, like));
        }
        self
    }
}

/// The first of the entries, if all are equal, otherwise all.
pub(crate) fn one_if_equal<T: PartialEq>(entries: &[T]) -> &[T] {
    match entries.iter().all(|entry| *entry == entries[0]) {
        true => &entries[..1],
        false => entries,
    }
}

/// By how many tokens each key is after each query.
struct Distances {
    /// `[sequences or 1, 1, len_q, 1]` and `[sequences or 1, 1, 1, len_kv]`, from the least position of each sequence on.
    query: TensorData,
    key: TensorData,
    /// The least and the greatest.
    occurring: (i64, i64),
    device: Device,
}

impl Distances {
    fn new(query: &[Vec<usize>], key: &[Vec<usize>], device: Device) -> Self {
        let sequences = query.len().max(key.len());
        let (len_q, len_kv) = (query[0].len(), key[0].len());
        let (mut queries, mut keys) = (Vec::new(), Vec::new());
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let pairs = query.iter().cycle().zip(key.iter().cycle());
        for (query, key) in pairs.take(sequences) {
            let [(first_query, last_query), (first_key, last_key)] = [query, key].map(|list| {
                let ends = list.iter().min().zip(list.iter().max());
                ends.map_or((0, 0), |(first, last)| (*first, *last))
            });
            let (least, greatest) = (first_query.min(first_key), last_query.max(last_key));
            assert!(
                greatest - least <= FARTHEST,
                "attention: the positions of a sequence are from {least} to {greatest}, and distances are counted up to {FARTHEST}"
            );
            let from_least = |position: usize| (position - least) as i64;
            first = first.min(from_least(first_key) - from_least(last_query));
            last = last.max(from_least(last_key) - from_least(first_query));
            queries.extend(query.iter().copied().map(from_least));
            keys.extend(key.iter().copied().map(from_least));
        }
        Self {
            query: TensorData::new(queries, [sequences, 1, len_q, 1]),
            key: TensorData::new(keys, [sequences, 1, 1, len_kv]),
            occurring: (first, last),
            device,
        }
    }

    /// `[sequences or 1, 1, len_q, len_kv]`
    fn tensor(&self) -> Tensor<4, Int> {
        let [query, key] = [&self.query, &self.key]
            .map(|numbers| Tensor::<4, Int>::from_data(numbers.clone(), counting(&self.device)));
        key - query
    }

    /// True where a key is not in the window of its query, `[sequences or 1, 1, len_q, len_kv]`: `None` if all are.
    fn beyond(&self, window: Window) -> Option<Tensor<4, Bool>> {
        let within = |reach: Option<usize>| reach.and_then(|reach| i64::try_from(reach).ok());
        let (first, last) = self.occurring;
        let right = within(window.right).filter(|&right| right < last);
        let left = within(window.left).filter(|&left| -left > first);
        if right.is_none() && left.is_none() {
            return None;
        }
        let apart = self.tensor();
        let after = right.map(|right| apart.clone().greater_elem(right));
        let before = left.map(|left| apart.lower_elem(-left));
        [after, before]
            .into_iter()
            .flatten()
            .reduce(Tensor::bool_or)
    }

    /// A part of a bias: `[sequences or 1, heads_q, len_q, len_kv]`.
    fn bias(&self, part: DistancePart, like: &Tensor<4>) -> Tensor<4> {
        let dtype: DType = statistics_dtype(like.dtype().into()).into();
        let (first, last) = self.occurring;
        match part {
            DistancePart::Alibi(slopes) => {
                let [heads] = slopes.dims();
                let slopes = slopes.dequantize().cast(dtype).reshape([1, heads, 1, 1]);
                alibi(slopes, self.tensor().cast(FloatDType::from(dtype)))
            }
            DistancePart::PaperAlibi(heads, device) => {
                let slopes = paper_slopes(heads, &device, dtype);
                self.bias(DistancePart::Alibi(slopes), like)
            }
            DistancePart::Relative(table, buckets) => {
                // All distances beyond the greatest are in one bucket.
                let most = buckets.max_distance.min(FARTHEST) as i64;
                let [first, last] = [first, last].map(|distance| distance.clamp(-most, most));
                let listed: Vec<isize> = (first..=last).map(|distance| distance as isize).collect();
                let table = table.dequantize().cast(dtype);
                let numbers = of_table(&listed, table, buckets);
                select(numbers, self.tensor().clamp(first, last) - first)
            }
            DistancePart::Numbers(numbers) => {
                let ([_, count], [_, _, len_q, _]) = (numbers.dims(), like.dims());
                let len_kv = self.key.shape()[3];
                let zero = match count == len_q + len_kv - 1 {
                    true => len_q as i64 - 1,
                    false => (len_q + len_kv) as i64 - 1,
                };
                for distance in [first, last] {
                    assert!(
                        (0..count as i64).contains(&(zero - distance)),
                        "attention: a bias by distance of {count} numbers has none for a key that is {distance} tokens after its query"
                    );
                }
                select(numbers.dequantize().cast(dtype), self.tensor().neg() + zero)
            }
        }
    }
}

/// Entry `indices[b, 0, i, j]` of each row of `numbers`, `[heads, _]`, as `[sequences or 1, heads, len_q, len_kv]`.
fn select(numbers: Tensor<2>, indices: Tensor<4, Int>) -> Tensor<4> {
    let ([heads, _], [sequences, _, len_q, len_kv]) = (numbers.dims(), indices.dims());
    let indices: Tensor<1, Int> = indices.reshape([sequences * len_q * len_kv]);
    let selected = selected(numbers, indices);
    selected
        .reshape([heads, sequences, len_q, len_kv])
        .swap_dims(0, 1)
}
