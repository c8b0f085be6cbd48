//! Windows and biases by distance between tokens at any positions, which no alignment describes.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_attn_kernels_cpu::Window;

use crate::{
    AttentionBias, AttentionMask, AttentionOptions, bias::DistancePart, composed::statistics_dtype,
    distance::bias_at_positions,
};

impl AttentionOptions {
    /// Whether a mask or a bias depends on the distance between query and key: a window, ALiBi, a relative bias.
    pub fn counts_distances(&self) -> bool {
        let has_window = self.mask.any(&|mask| mask.by_position.window.is_some());
        has_window || !self.bias.by_distance.is_empty()
    }

    /// These options for tokens at any positions, one list for all sequences or one for each: windows and biases by distance
    /// count between the positions. A causal mask does not: it hides the keys that come later in their sequence.
    ///
    /// # Panics
    ///
    /// When a bias by [distances](AttentionBias::distances) has no entry for a distance that occurs.
    ///
    /// # Cost
    ///
    /// `len_q · len_kv` bools for a window, `heads_q · len_q · len_kv` numbers for biases; times the batch if the sequences differ.
    pub fn at_positions(
        mut self,
        query: &[Vec<usize>],
        key: &[Vec<usize>],
        like: &Tensor<4>,
    ) -> Self {
        let sequences = query.len().max(key.len());
        let of = |lists: &[Vec<usize>]| lists.first().map_or(0, Vec::len);
        let (len_q, len_kv) = (of(query), of(key));
        if !self.counts_distances() || [sequences, len_q, len_kv].contains(&0) {
            return self;
        }
        let one = |lists: &[Vec<usize>]| lists.iter().all(|list| *list == lists[0]);
        let pairs = Pairs {
            query,
            key,
            shape: match one(query) && one(key) {
                true => [1, len_q, len_kv],
                false => [sequences, len_q, len_kv],
            },
        };
        let device = like.device();
        self.mask = self
            .mask
            .map_all(&|mut mask| match mask.by_position.window.take() {
                Some(window) => mask.and(AttentionMask::masked(pairs.beyond(window, &device))),
                None => mask,
            });
        let parts = core::mem::take(&mut self.bias.by_distance);
        if let Some(bias) = pairs.bias(parts, like) {
            self.bias.dense.push(bias);
        }
        self
    }
}

/// The pairs of queries and keys of some sequences.
struct Pairs<'a> {
    query: &'a [Vec<usize>],
    key: &'a [Vec<usize>],
    /// `[sequences, len_q, len_kv]`: one sequence if all are equal.
    shape: [usize; 3],
}

impl Pairs<'_> {
    /// By how many tokens each key is after its query.
    fn distances(&self) -> impl Iterator<Item = isize> {
        let list = |lists: &'_ [Vec<usize>], item: usize| if lists.len() == 1 { 0 } else { item };
        (0..self.shape[0]).flat_map(move |item| {
            let query = &self.query[list(self.query, item)];
            let key = &self.key[list(self.key, item)];
            let of_query =
                move |&query: &usize| key.iter().map(move |&key| key as isize - query as isize);
            query.iter().flat_map(of_query)
        })
    }

    /// True where a key is not in the window of its query: `[sequences, 1, len_q, len_kv]`.
    fn beyond(&self, window: Window, device: &Device) -> Tensor<4, Bool> {
        let within = |reach: Option<usize>, distance: isize| {
            reach.is_none_or(|reach| distance <= 0 || distance.unsigned_abs() <= reach)
        };
        let hidden = self.distances().map(|distance| {
            !(within(window.right, distance) && within(window.left, distance.saturating_neg()))
        });
        let [sequences, len_q, len_kv] = self.shape;
        let hidden = TensorData::new(hidden.collect::<Vec<_>>(), [sequences, 1, len_q, len_kv]);
        Tensor::from_data(hidden, device)
    }

    /// The sum of the parts of a bias: `[sequences, heads_q, len_q, len_kv]`.
    fn bias(&self, parts: Vec<DistancePart>, like: &Tensor<4>) -> Option<Tensor<4>> {
        let (device, dtype) = (like.device(), statistics_dtype(like.dtype().into()).into());
        let mut distances: Vec<isize> = self.distances().collect();
        distances.sort_unstable();
        distances.dedup();
        let numbers = parts.into_iter().map(|part| match part {
            DistancePart::Numbers(numbers) => self.of_numbers(numbers, &distances).cast(dtype),
            formula => bias_at_positions(AttentionBias::by_distance(formula), &distances, dtype)
                .expect("all parts but numbers are formulas"),
        });
        let numbers = numbers.reduce(|sum, part| sum + part)?;
        let [heads, _] = numbers.dims();
        let [sequences, len_q, len_kv] = self.shape;
        let entries = self
            .distances()
            .map(|distance| distances.partition_point(|&it| it < distance));
        let numbers = numbers.select(
            1,
            indices(entries.map(|entry| entry as i64).collect(), &device),
        );
        let bias = numbers.reshape([heads, sequences, len_q, len_kv]);
        Some(bias.swap_dims(0, 1))
    }

    /// The entries for these distances of numbers `[heads_q, 2 · (len_q + len_kv) − 1]`, as
    /// [`AttentionBias::distances`] describes.
    fn of_numbers(&self, numbers: Tensor<2>, distances: &[isize]) -> Tensor<2> {
        let [_, len_q, len_kv] = self.shape;
        let ([_, count], zero) = (numbers.dims(), (len_q + len_kv) as isize - 1);
        let entries = distances.iter().map(|&distance| {
            let entry = zero - distance;
            assert!(
                (0..count as isize).contains(&entry),
                "attention: a bias by distance of {count} numbers has none for a key that is {distance} tokens after its query"
            );
            entry as i64
        });
        let device = numbers.device();
        numbers.select(1, indices(entries.collect(), &device))
    }
}

fn indices(entries: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let count = entries.len();
    Tensor::from_data(TensorData::new(entries, [count]), device)
}
