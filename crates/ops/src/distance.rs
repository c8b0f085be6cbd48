//! ALiBi, the relative bias and other biases by distance as one operand that is linear in the lengths, by differentiable
//! tensor operations.
//!
//! An implementation of the operation returns the gradient of that operand; Burn propagates it to slopes and tables.

use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_attn_kernels_cpu::{DistanceAxis, alibi_slopes};

use crate::bias::{AttentionBias, DistanceParts, Relative, Slopes};

/// The sum of all parts, `[heads_q, len_q + len_kv − 1]` in `dtype`; `None` if there are no parts, or no pairs to bias.
pub(crate) fn distance_bias(
    axis: DistanceAxis,
    dtype: DType,
    parts: DistanceParts,
) -> Option<Tensor<2>> {
    // Operations on empty tensors divide by zero on ndarray.
    if axis.is_empty() {
        return None;
    }
    let DistanceParts {
        alibi,
        relative,
        numbers,
    } = parts;
    let numbers = numbers.into_iter().map(|numbers| {
        let numbers = match numbers.dims()[1] == axis.len() {
            true => numbers,
            false => {
                let zero = (axis.len_q + axis.len_kv) as isize - 1;
                numbers.narrow(1, (zero - axis.relative_position(0)) as usize, axis.len())
            }
        };
        numbers.cast(dtype)
    });
    let positions = || axis.relative_positions().collect();
    let formulas = at_positions(positions, dtype, alibi, relative);
    formulas
        .into_iter()
        .chain(numbers)
        .reduce(|sum, part| sum + part)
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
    let DistanceParts {
        alibi, relative, ..
    } = bias.by_distance;
    at_positions(|| positions.to_vec(), dtype, alibi, relative)
}

/// The sum of ALiBi and relative biases for keys that are `positions` tokens after their query: `[heads_q, positions.len()]`
/// in `dtype`. `None` without biases.
pub(crate) fn at_positions(
    positions: impl Fn() -> Vec<isize>,
    dtype: DType,
    alibi: Vec<Slopes>,
    relative: Vec<Relative>,
) -> Option<Tensor<2>> {
    let alibi = alibi
        .into_iter()
        .map(|slopes| match slopes {
            Slopes::Given(slopes) => slopes.cast(dtype),
            Slopes::OfPaper(heads, device) => {
                let slopes = TensorData::new(alibi_slopes(heads), [heads]);
                Tensor::from_data(slopes, (&device, dtype))
            }
        })
        .map(|slopes| of_slopes(positions(), slopes));
    let relative = relative.into_iter().map(|relative| Relative {
        table: relative.table.cast(dtype),
        ..relative
    });
    let relative = relative.map(|relative| of_table(positions(), relative));
    alibi.chain(relative).reduce(|sum, part| sum + part)
}

/// `−slopes[h] · |relative position|`
fn of_slopes(positions: Vec<isize>, slopes: Tensor<1>) -> Tensor<2> {
    let distances: Vec<f64> = positions
        .iter()
        .map(|position| -(position.unsigned_abs() as f64))
        .collect();
    let distances = TensorData::new(distances, [1, positions.len()]);
    let distances = Tensor::<2>::from_data(distances, (&slopes.device(), slopes.dtype()));
    slopes.unsqueeze_dim::<2>(1) * distances
}

/// `table[bucket, h]`
fn of_table(positions: Vec<isize>, Relative { table, buckets }: Relative) -> Tensor<2> {
    let rows: Vec<i64> = positions
        .iter()
        .map(|&position| buckets.bucket(position) as i64)
        .collect();
    let rows = TensorData::new(rows, [positions.len()]);
    let rows = Tensor::<1, Int>::from_data(rows, &table.device());
    // Not the transposed selection: with one head, Burn 0.22.1's fusion reads such a view of one column in vectors, as if it
    // were a row.
    table.transpose().select(1, rows)
}
