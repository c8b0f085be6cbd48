//! Splits: where a call has too few tiles for a device, several cubes share the other side of each tile. Another kernel merges their results,
//! always in the same order.

use cubecl::{ir::ElemType, prelude::*};

#[cfg(test)]
use crate::cubes::FORCED_SPLITS;
use crate::{
    Operand,
    call::Call,
    cubes::{ENOUGH_CUBES, LEAST_ROWS},
    forward::normalized,
    operands::{dims, optional},
    scoring::lowest_finite,
    supports::{MOST_TILES, Pass, is_in_software, largest_scratch},
    tile::UNTILED_UNITS,
};

/// Units that merge a row of the output.
const MERGING_UNITS: usize = 64;

#[allow(unsafe_code, reason = "launches without bounds checks")]
impl Call<'_> {
    /// How many cubes share a tile.
    pub(crate) fn splits_of(&self, pass: Pass) -> usize {
        let p = &self.problem;
        let [_, _, tiles_q, tiles_kv] = self.tiles();
        let own = self.heads_of_grid() * tiles_q;
        // Tiles, tiles of the other side, rows of the other side, and elements of a split's results.
        let (tiles, others, rows, elements) = match pass {
            // A split also has two statistics of each row.
            Pass::Forward => (own, tiles_kv, p.len_kv, p.query_rows() * p.dim_v.max(2)),
            Pass::Query => (own, tiles_kv, p.len_kv, p.query_elements()),
            Pass::KeyAndValue => {
                let (others, rows) = (p.group_size() * tiles_q, p.group_size() * p.len_q);
                let elements = p.key_elements().max(p.value_elements());
                (p.batch * p.heads_kv * tiles_kv, others, rows, elements)
            }
            Pass::Bias => {
                let Some(bias) = &self.inputs.bias else {
                    return 1;
                };
                let (tiles, others) = self.tiles_of_bias(bias);
                let rows = others.saturating_mul(self.config.tile.size);
                let elements = bias.shape.iter().copied().fold(1, usize::saturating_mul);
                (tiles, others, rows, elements)
            }
        };
        #[cfg(test)]
        if let Some(splits) = FORCED_SPLITS.get() {
            return splits;
        }
        let enough = match 2 * tiles > ENOUGH_CUBES {
            true => 1,
            false => ENOUGH_CUBES.div_ceil(tiles).min(rows / LEAST_ROWS),
        };
        let most = largest_scratch(self.client) / elements;
        // `least` makes results right, so it precedes `most`: `supports` has seen that there is memory, except for gradients of biases.
        let least = match is_in_software(self.client) {
            true => others.div_ceil(MOST_TILES),
            false => 1,
        };
        enough.min(most).max(least).max(1)
    }

    /// Tiles of the gradient of a dense bias, and tiles of scores that each of them is the sum of.
    fn tiles_of_bias(&self, bias: &Operand) -> (usize, usize) {
        let [batch, heads, len_q, len_kv] = dims(bias);
        let [_, _, tiles_q, tiles_kv] = self.tiles();
        let tile = self.config.tile;
        let tiles = batch * heads * tile.cover(len_q) * tile.cover(len_kv);
        let all = (self.heads_of_grid() * tiles_q).saturating_mul(tiles_kv);
        (tiles, all / tiles)
    }

    /// Panics if a tile of the gradient of a dense bias is the sum of too many tiles: a split finds its share of them in 32 bits, and rounds it up.
    pub(crate) fn check_sums(&self, bias: &Operand) {
        let (_, others) = self.tiles_of_bias(bias);
        let most = (u32::MAX as usize).saturating_sub(self.splits - 1);
        assert!(
            others <= most,
            "each number of the gradient of a bias of shape {:?} is the sum of {others} tiles, but at most {most} can be counted",
            bias.shape
        );
    }

    /// Memory for the parts of `result` that the splits compute, `[splits · batch, …]` in f32; with one split, `result` itself.
    pub(crate) fn parts_of(&self, result: &Operand) -> Operand {
        match self.splits {
            1 => result.clone(),
            splits => {
                let mut shape = result.shape.clone();
                shape[0] *= splits;
                self.scratch(&shape)
            }
        }
    }

    /// Adds up the parts of a gradient.
    pub(crate) fn add_up(&self, parts: &Operand, gradient: &Operand) {
        if self.splits > 1 {
            let numbers = gradient.shape.iter().product::<usize>();
            // SAFETY: a unit writes one number of the gradient, and each part has as many numbers.
            unsafe {
                sum_of_parts::launch_unchecked(
                    self.client,
                    self.spread(numbers.div_ceil(UNTILED_UNITS)),
                    CubeDim::new_1d(UNTILED_UNITS as u32),
                    parts.arg(),
                    gradient.arg(),
                    gradient.elem,
                );
            }
        }
    }

    /// Merges and normalizes the splits' parts of an output, `[splits · batch, heads_q, len_q, dim_v]`: sums of kept weights, not yet scaled, times
    /// values. The statistics are `[splits, rows, 2]`: the number that was subtracted from all scores of a row, and the sum of its weights.
    pub(crate) fn merge(
        &self,
        sums: &Operand,
        statistics: &Operand,
        output: &Operand,
        logsumexp: &Operand,
    ) {
        // SAFETY: the shapes are those that the kernel expects.
        unsafe {
            merged::launch_unchecked(
                self.client,
                self.spread(self.problem.query_rows()),
                CubeDim::new_1d(MERGING_UNITS as u32),
                sums.arg(),
                statistics.arg(),
                optional(self.inputs.sinks.as_ref()),
                output.arg(),
                logsumexp.arg(),
                f32::NEG_INFINITY,
                self.keep_scale(),
                output.elem,
            );
        }
    }
}

/// Merges the splits' parts and normalizes: a cube per query of a head.
#[cube(launch_unchecked)]
fn merged<F: Float>(
    sums: &Tensor<f32>,
    statistics: &Tensor<f32>,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    output: &mut Tensor<F>,
    logsumexp: &mut Tensor<f32>,
    minus_infinity: f32,
    kept: f32,
    #[define(F)] _type: ElemType,
) {
    let heads = output.shape(1);
    let len_q = output.shape(2);
    let dim_v = output.shape(3);
    let rows = output.shape(0) * heads * len_q;
    let splits = sums.shape(0) / output.shape(0);
    let row = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    if row < rows {
        let query = row % len_q;
        let head = row / len_q % heads;
        let batch = row / len_q / heads;
        // Mesa's software driver reads once more after the last round of a loop, in vain, and where the index is the same for all units it
        // does not ask whether a unit wants it. So that read has to be inside the tensor too.
        let last = splits * rows - 1;
        let mut maximum = lowest_finite();
        for split in 0..splits {
            maximum = maximum.max(statistics[(split * rows + row).min(last) * 2]);
        }
        let mut total = f32::new(0.0);
        for split in 0..splits {
            let at = (split * rows + row).min(last) * 2;
            total += statistics[at + 1] * (statistics[at] - maximum).exp();
        }
        let result = normalized(maximum, total, sinks, head, minus_infinity, kept);
        let to = batch * output.stride(0) + head * output.stride(1) + query * output.stride(2);
        let mut column = UNIT_POS as usize;
        while column < dim_v {
            let mut sum = f32::new(0.0);
            for split in 0..splits {
                let at = (split * rows + row).min(last) * 2;
                let rescale = (statistics[at] - maximum).exp();
                sum += sums[(split * rows + row) * dim_v + column] * rescale;
            }
            let sum = select(result.empty, f32::new(0.0), sum * result.factor);
            output[to + column] = F::cast_from(sum);
            column += MERGING_UNITS;
        }
        if UNIT_POS == 0 {
            logsumexp[row] = result.logsumexp;
        }
    }
}

/// Adds up the parts `[splits · batch, heads, len, dim]` of a gradient: a unit per number.
#[cube(launch_unchecked)]
fn sum_of_parts<F: Float>(
    parts: &Tensor<f32>,
    gradient: &mut Tensor<F>,
    #[define(F)] _type: ElemType,
) {
    let (heads, len, dim) = (gradient.shape(1), gradient.shape(2), gradient.shape(3));
    let numbers = gradient.shape(0) * heads * len * dim;
    let cube = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let number = cube * UNTILED_UNITS + UNIT_POS as usize;
    if number < numbers {
        let mut sum = parts[number];
        for split in 1..parts.shape(0) / gradient.shape(0) {
            sum += parts[split * numbers + number];
        }
        let row = number / dim;
        let head = row / len;
        let to = head / heads * gradient.stride(0)
            + head % heads * gradient.stride(1)
            + row % len * gradient.stride(2);
        gradient[to + number % dim] = F::cast_from(sum);
    }
}
