//! ALiBi, the relative bias and other biases by distance as one operand that is linear in the lengths, by differentiable
//! tensor operations.
//!
//! An implementation of the operation returns the gradient of that operand; Burn propagates it to slopes and tables.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn_kernels_cpu::{DistanceAxis, RelativeBuckets, alibi_slopes};

use crate::{
    bias::{AttentionBias, DistancePart},
    composed::counting,
};

/// How many numbers one operation selects. Its gradient is a loop over them on CubeCL, which Mesa's software driver leaves after as many
/// rounds.
const SELECTED: usize = 65_535;

/// The sum of all parts, `[heads_q, len_q + len_kv − 1]` in `dtype`; `None` if there are no parts, or no pairs to bias.
pub(crate) fn distance_bias(
    axis: DistanceAxis,
    dtype: DType,
    parts: Vec<DistancePart>,
) -> Option<Tensor<2>> {
    // Operations on empty tensors divide by zero on ndarray.
    if axis.is_empty() || parts.is_empty() {
        return None;
    }
    let positions: Vec<isize> = axis.relative_positions().collect();
    let numbers = parts.into_iter().filter_map(|part| match part {
        DistancePart::Numbers(numbers) => Some(of_distances(axis, dtype, numbers)),
        formula => by_formula(formula, &positions, dtype),
    });
    numbers.reduce(|sum, part| sum + part)
}

/// The numbers of [`AttentionBias::distances`] that occur, in `dtype`.
pub(crate) fn of_distances(axis: DistanceAxis, dtype: DType, numbers: Tensor<2>) -> Tensor<2> {
    let numbers = numbers.dequantize();
    if numbers.dims()[1] == axis.len() {
        return numbers.cast(dtype);
    }
    let zero = (axis.len_q + axis.len_kv) as isize - 1;
    let first = (zero - axis.relative_position(0)) as usize;
    numbers.narrow(1, first, axis.len()).cast(dtype)
}

/// The numbers of [`AttentionBias::distances`] for queries that begin with the first key, for queries at any offset.
pub(crate) fn at_any_offset(numbers: Tensor<2>, [len_q, len_kv]: [usize; 2]) -> Tensor<2> {
    let [heads, count] = numbers.dims();
    if count == all_distances(len_q, len_kv) {
        return numbers;
    }
    let numbers = numbers.dequantize();
    let place = (&numbers.device(), numbers.dtype());
    let [before, after] = [len_q, len_kv].map(|count| Tensor::zeros([heads, count], place));
    Tensor::cat(vec![before, numbers, after], 1)
}

/// How many distances there are between `len_q` queries at any offset and `len_kv` keys.
pub(crate) fn all_distances(len_q: usize, len_kv: usize) -> usize {
    2 * (len_q + len_kv) - 1
}

/// The sum of the ALiBi and relative parts of a bias for keys that are `positions` tokens after their query:
/// `[heads_q, positions.len()]` in `dtype`. `None` without such parts.
pub fn bias_at_positions(
    bias: AttentionBias,
    positions: &[isize],
    dtype: DType,
) -> Option<Tensor<2>> {
    let parts = bias.by_distance.into_iter();
    let formulas = parts.filter_map(|part| by_formula(part, positions, dtype));
    formulas.reduce(|sum, part| sum + part)
}

/// A part at these positions; `None` for numbers, which have no formula.
fn by_formula(part: DistancePart, positions: &[isize], dtype: DType) -> Option<Tensor<2>> {
    match part {
        DistancePart::Alibi(slopes) => Some(of_slopes(positions, slopes.dequantize().cast(dtype))),
        DistancePart::PaperAlibi(heads, device) => {
            Some(of_slopes(positions, paper_slopes(heads, &device, dtype)))
        }
        DistancePart::Relative(table, buckets) => {
            let table = table.dequantize().cast(dtype);
            Some(of_table(positions, table, buckets))
        }
        DistancePart::Numbers(_) => None,
    }
}

/// The slopes of ALiBi's paper: `[heads_q]`.
pub(crate) fn paper_slopes(heads: usize, device: &Device, dtype: DType) -> Tensor<1> {
    let slopes = TensorData::new(alibi_slopes(heads), [heads]);
    Tensor::from_data(slopes, (&device.clone().without_autodiff(), dtype))
}

/// ALiBi for slopes and distances that broadcast: `−slope · |distance|`.
pub(crate) fn alibi<const D: usize>(slopes: Tensor<D>, distances: Tensor<D>) -> Tensor<D> {
    distances.abs() * -slopes
}

/// ALiBi of every head at every distance.
fn of_slopes(positions: &[isize], slopes: Tensor<1>) -> Tensor<2> {
    let distances = positions.iter().map(|&position| position as f64);
    let distances = TensorData::new(distances.collect(), [1, positions.len()]);
    let distances = Tensor::<2>::from_data(distances, (&slopes.device(), slopes.dtype()));
    alibi(slopes.unsqueeze_dim(1), distances)
}

/// `table[bucket, h]`
pub(crate) fn of_table(
    positions: &[isize],
    table: Tensor<2>,
    buckets: RelativeBuckets,
) -> Tensor<2> {
    let rows = positions.iter();
    let rows = rows.map(|&position| buckets.bucket(position) as i64);
    let rows = TensorData::new(rows.collect(), [positions.len()]);
    let rows = Tensor::<1, Int>::from_data(rows, counting(&table.device()));
    // Not the transposed selection: with one head, Burn 0.22.1's fusion reads such a view of one column in vectors, as if it
    // were a row.
    selected(table.transpose(), rows)
}

/// Columns of `numbers`, `[heads, _]`, in parts of at most [`SELECTED`].
pub(crate) fn selected(numbers: Tensor<2>, columns: Tensor<1, Int>) -> Tensor<2> {
    let [count] = columns.dims();
    if count <= SELECTED {
        return numbers.select(1, columns);
    }
    let parts = columns.split(SELECTED, 0).into_iter();
    Tensor::cat(
        parts.map(|part| numbers.clone().select(1, part)).collect(),
        1,
    )
}
