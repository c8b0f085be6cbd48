//! The statistics of every row for the backward pass, and the gradient of the sinks, which depends on them alone.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    Operand, Upstream, call::Call, operands::dims, scoring::lowest_finite, tile::UNTILED_UNITS,
};

/// Units that share a row, so that neighbours read neighbouring numbers.
const UNITS_OF_ROW: usize = 8;

/// Rows of a cube.
const ROWS: usize = UNTILED_UNITS / UNITS_OF_ROW;

impl Call<'_> {
    /// `[2, batch, heads_q, len_q]`, see the kernel.
    #[allow(unsafe_code, reason = "a launch without bounds checks")]
    pub(crate) fn row_statistics(&self, upstream: &Upstream) -> Operand {
        let [batch, heads_q, len_q, _] = dims(&upstream.output);
        let statistics = self.scratch(&[2, batch, heads_q, len_q]);
        let rows = self.problem.query_rows();
        // SAFETY: the units of a row read its numbers, one writes its statistics, and `check` has compared the shapes.
        unsafe {
            row_statistics::launch_unchecked(
                self.client,
                self.spread(rows.div_ceil(ROWS)),
                CubeDim::new_1d(UNTILED_UNITS as u32),
                upstream.output.arg(),
                upstream.output_gradient.arg(),
                upstream.logsumexp.arg(),
                upstream.logsumexp_gradient.arg(),
                statistics.arg(),
                upstream.output.elem,
            );
        }
        statistics
    }

    /// Puts delta of an output that is not rounded into the statistics. `parts` are those of the splits, `[splits · batch, heads_q, len_q, 1]`: each row's
    /// sum of weights times their gradients.
    #[allow(unsafe_code, reason = "a launch without bounds checks")]
    pub(crate) fn exact_delta(&self, parts: &Operand, upstream: &Upstream, statistics: &Operand) {
        let rows = self.problem.query_rows();
        // SAFETY: a unit writes one number, and each part of the parts has as many numbers as there are rows.
        unsafe {
            exact_delta::launch_unchecked(
                self.client,
                self.spread(rows.div_ceil(UNTILED_UNITS)),
                CubeDim::new_1d(UNTILED_UNITS as u32),
                parts.arg(),
                upstream.logsumexp_gradient.arg(),
                statistics.arg(),
            );
        }
    }
}

/// Eight units per row. Writes `[2, batch, heads_q, len_q]`: the logsumexp of every row, and delta, `dot(output, output_gradient) - logsumexp_gradient`. A score's
/// gradient is `weight * (weight_gradient - delta)`. One tensor, because a device may bind few.
#[cube(launch_unchecked)]
pub(crate) fn row_statistics<F: Float>(
    output: &Tensor<F>,
    output_gradient: &Tensor<F>,
    logsumexp: &Tensor<f32>,
    logsumexp_gradient: &Tensor<f32>,
    statistics: &mut Tensor<f32>,
    #[define(F)] _type: ElemType,
) {
    let heads = output.shape(1);
    let len = output.shape(2);
    let dim = output.shape(3);
    let cube = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let unit = UNIT_POS as usize;
    let (row, part) = (cube * ROWS + unit / UNITS_OF_ROW, unit % UNITS_OF_ROW);
    let rows = output.shape(0) * heads * len;
    let mut sum = f32::new(0.0);
    if row < rows {
        let query = row % len;
        let head = row / len % heads;
        let batch = row / len / heads;
        let from = batch * output.stride(0) + head * output.stride(1) + query * output.stride(2);
        let gradient_from = batch * output_gradient.stride(0)
            + head * output_gradient.stride(1)
            + query * output_gradient.stride(2);
        let mut column = part;
        while column < dim {
            let number = f32::cast_from(output[from + column * output.stride(3)]);
            let gradient =
                f32::cast_from(output_gradient[gradient_from + column * output_gradient.stride(3)]);
            // A row that sees no key has output 0: its gradient does not count, even if it is NaN.
            sum += select(number == f32::new(0.0), f32::new(0.0), number * gradient);
            column += UNITS_OF_ROW;
        }
    }
    let mut sums = Shared::<[f32]>::new_slice(UNTILED_UNITS);
    sums[unit] = sum;
    sync_cube();
    if row < rows && part == 0 {
        let mut total = f32::new(0.0);
        #[unroll]
        for other in 0..UNITS_OF_ROW {
            total += sums[unit + other];
        }
        statistics[row] = logsumexp[row];
        statistics[rows + row] = total - logsumexp_gradient[row];
    }
}

/// Adds up the parts of [`Call::exact_delta`], and writes delta: a unit per row.
#[cube(launch_unchecked)]
pub(crate) fn exact_delta(
    parts: &Tensor<f32>,
    logsumexp_gradient: &Tensor<f32>,
    statistics: &mut Tensor<f32>,
) {
    let rows = statistics.shape(1) * statistics.shape(2) * statistics.shape(3);
    let cube = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let row = cube * UNTILED_UNITS + UNIT_POS as usize;
    if row < rows {
        let mut sum = parts[row];
        for split in 1..parts.shape(0) / statistics.shape(1) {
            sum += parts[split * rows + row];
        }
        statistics[rows + row] = sum - logsumexp_gradient[row];
    }
}

/// The gradient of the sinks: a cube per head, whose units add up rows in a fixed order.
#[cube(launch_unchecked)]
pub(crate) fn sink_gradient(
    sinks: &Tensor<f32>,
    statistics: &Tensor<f32>,
    gradient: &mut Tensor<f32>,
) {
    let heads = statistics.shape(2);
    let len = statistics.shape(3);
    let rows = statistics.shape(1) * len;
    // The grid is rounded up: extra cubes repeat the last head.
    let head = ((CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize).min(heads - 1);
    let unit = UNIT_POS as usize;
    let sink = sinks[head];
    let mut sum = f32::new(0.0);
    let mut row = unit;
    while row < rows {
        let at = (row / len * heads + head) * len + row % len;
        sum -= (sink - statistics[at]).exp() * statistics[rows * heads + at];
        row += UNTILED_UNITS;
    }
    let mut sums = Shared::<[f32]>::new_slice(UNTILED_UNITS);
    // A sink of −∞ has no weight anywhere.
    sums[unit] = select(sink < lowest_finite(), f32::new(0.0), sum);
    sync_cube();
    if unit == 0 {
        let mut total = f32::new(0.0);
        for other in 0..UNTILED_UNITS {
            total += sums[other];
        }
        gradient[head] = total;
    }
}
