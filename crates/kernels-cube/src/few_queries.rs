//! Output and logsumexp of a few queries, such as those of a step of generation.
//!
//! With a tile of queries per cube, most of the cube and most of the device would have no work. Here a cube has all queries of some heads that
//! share keys, and [`KEYS`] of these; a second kernel merges what the cubes of a head have found.
//!
//! Source: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference" (2023).

mod products;

use core::num::NonZero;

use burn_attn_kernels_cpu::Problem;
use cubecl::{ir::ElemType, prelude::*};

use products::{dot_products, weighted_rows};

use crate::{
    Operand,
    call::Call,
    dropout::{drop_weights, dropped},
    forward::normalized,
    operands::{optional, vector_size},
    score::{Config, LEAST, Scoring, score},
    tile::{Four, Tile},
    visible::{place, tiles_of_keys},
};

/// Queries of a cube, over all of its heads. Heads with more are for [`forward`](crate::forward::forward).
pub(crate) const MOST_ROWS: usize = 4;

/// Keys of a cube.
pub(crate) const KEYS: usize = 256;

/// Units of a cube, each of which has the scores of four keys.
pub(crate) const UNITS: usize = KEYS / 4;

/// Units that share a key in the dot products, so that neighbours read neighbouring numbers.
const LANES: usize = 4;

/// Units whose numbers one unit reduces, and how many such groups there are.
const REDUCED: usize = 8;
const _: () = assert!(REDUCED * REDUCED == UNITS);

/// The scores of a cube: those of a unit are `heads` times all queries by four keys.
pub(crate) fn tile(heads: usize, len_q: usize) -> Tile {
    Tile {
        size: KEYS,
        rows: heads * len_q,
        columns: 4,
    }
}

/// Numbers of shared memory: the dot products of every lane, and later the weights and up to 256 numbers per row of sums, of which
/// heads of at most 256 numbers have no more.
fn pool(rows: usize) -> usize {
    rows * KEYS * LANES
}

/// How many of `group` heads that share keys a cube with so many bytes of shared memory computes, if any: as many as fit, but no more
/// than cubes of equal work need.
pub(crate) fn heads_of_cube(group: usize, len_q: usize, bytes: usize) -> Option<usize> {
    let most = (bytes / (4 * pool(1))).min(MOST_ROWS) / len_q;
    let cubes = group.div_ceil(NonZero::new(most)?.get());
    Some(group.div_ceil(cubes))
}

/// Writes the sums of values, the largest score and the sum of weights of the queries over [`KEYS`] keys:
/// `sums` is `[batch, heads_q, len_q, splits, dim_v]`, `statistics` `[batch, heads_q, len_q, splits, 2]`.
///
/// `units_per_row` units have a row of values, `parts` vectors of it each.
#[cube(launch_unchecked)]
pub(crate) fn partial<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    scoring: &Scoring<M>,
    sums: &mut Tensor<f32>,
    statistics: &mut Tensor<f32>,
    cubes_of_all: u32,
    #[comptime] units_per_row: usize,
    #[comptime] parts: usize,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let rows = comptime!(config.tile.rows);
    let queries = comptime!(config.queries);
    let own_heads = comptime!(rows / queries);
    let unit = UNIT_POS as usize;
    let heads = query.shape(1);
    let heads_kv = key.shape(1);
    let group = heads / heads_kv;
    let len_kv = key.shape(2);
    let dim_v = value.shape(3);
    // Cubes beyond the last repeat it.
    let cube = (CUBE_POS_Z * CUBE_COUNT_Y + CUBE_POS_Y).min(cubes_of_all - 1) as usize;
    let of_group = group.div_ceil(own_heads);
    let batch = cube / of_group / heads_kv;
    let head_kv = cube / of_group % heads_kv;
    // The last cube of a group may begin with heads of the one before, and write the same.
    let head = head_kv * group + (cube % of_group * own_heads).min(group - own_heads);
    let head_of_batch = batch * heads + head;
    let number = CUBE_POS_X as usize;
    let start = number * KEYS;
    let place = place::<M>(scoring, batch, head, query.shape(2), len_kv);
    let range = tiles_of_keys::<M>(scoring, place, 0usize, config);
    // Keys from here on are hidden.
    let mut count = ((place.length - start as i32).max(0i32) as usize).min(KEYS);
    if number < range.start || number >= range.end {
        count = 0usize.runtime();
    }

    let mut pool = Shared::<[f32]>::new_slice(comptime!(pool(rows)));
    dot_products::<F, N>(
        query,
        batch * query.stride(0) + head * query.stride(1),
        scoring.scale,
        key,
        batch * key.stride(0) + head_kv * key.stride(1),
        start,
        count,
        &mut pool,
        rows,
        queries,
    );
    sync_cube();
    let mut scores = Array::<Four>::new(rows);
    let mut dsoftcap = Array::<Four>::new(rows);
    #[unroll]
    for i in 0..rows {
        let mut of_row = Four::new(0.0f32);
        #[unroll]
        for j in 0..4usize {
            let from = comptime!(i * LANES * KEYS + j) + unit * 4;
            let mut sum = pool[from];
            #[unroll]
            for lane in 1..LANES {
                sum += pool[from + comptime!(lane * KEYS)];
            }
            of_row.insert(j, sum);
        }
        scores[i] = of_row;
    }

    let first = start + unit * 4;
    let visible = false.runtime();
    let bits = score::<M>(
        &mut scores,
        &mut dsoftcap,
        scoring,
        place,
        0usize.runtime(),
        first,
        visible,
        false,
        config,
    );
    let mut maxima = Array::<f32>::new(rows);
    #[unroll]
    for i in 0..rows {
        let pair = scores[i].extract(0usize).max(scores[i].extract(1usize));
        let other = scores[i].extract(2usize).max(scores[i].extract(3usize));
        maxima[i] = pair.max(other);
    }
    reduce(&mut maxima, &mut pool, rows, true);
    let mut totals = Array::<f32>::new(rows);
    #[unroll]
    for i in 0..rows {
        let mut weights = (scores[i] - Four::new(maxima[i])).exp();
        #[unroll]
        for j in 0..4usize {
            let hidden = bits[0] & comptime!(1u32 << (i * 4 + j) as u32) != 0;
            weights.insert(j, select(hidden, f32::new(0.0), weights.extract(j)));
        }
        scores[i] = weights;
        totals[i] = (weights.extract(0usize) + weights.extract(1usize))
            + (weights.extract(2usize) + weights.extract(3usize));
    }
    reduce(&mut totals, &mut pool, rows, false);
    let dropped = dropped::<M>(scoring, place, 0usize.runtime(), first, false, config);
    drop_weights::<M>(&mut scores, &dropped, scoring, config);

    // Weights are not negative: −1 stands for a hidden key, whose value may be anything.
    sync_cube();
    #[unroll]
    for i in 0..rows {
        #[unroll]
        for j in 0..4usize {
            let hidden = bits[0] & comptime!(1u32 << (i * 4 + j) as u32) != 0;
            pool[comptime!(i * KEYS + j) + unit * 4] =
                select(hidden, f32::new(-1.0), scores[i].extract(j));
        }
    }
    sync_cube();
    weighted_rows::<F, N>(
        value,
        batch * value.stride(0) + head_kv * value.stride(1),
        start,
        count,
        &mut pool,
        units_per_row,
        parts,
        rows,
    );
    sync_cube();

    let size = value.vector_size().comptime();
    let splits = sums.shape(3);
    let mut at = unit;
    while at < rows * dim_v {
        let (row, column) = (at / dim_v, at % dim_v);
        let mut sum = f32::new(0.0);
        #[unroll]
        for other in 0..comptime!(UNITS / units_per_row) {
            sum += pool[(comptime!(KEYS * rows)
                + (other * rows + row) * comptime!(parts * units_per_row * size))
                + column];
        }
        sums[((head_of_batch * queries + row) * splits + number) * dim_v + column] = sum;
        at += UNITS;
    }
    if unit == 0 {
        #[unroll]
        for i in 0..rows {
            let to = ((head_of_batch * queries + i) * splits + number) * 2;
            statistics[to] = maxima[i];
            statistics[to + 1] = totals[i];
        }
    }
}

/// The largest of the numbers of all units, or their sum, in every unit. Begins with a barrier.
#[cube]
fn reduce(
    numbers: &mut Array<f32>,
    pool: &mut Shared<[f32]>,
    #[comptime] rows: usize,
    #[comptime] largest: bool,
) {
    let unit = UNIT_POS as usize;
    #[unroll]
    for step in 0..2usize {
        // Of the first `reducing` units, in groups of `REDUCED`.
        let reducing = comptime!(if step == 0 { UNITS } else { REDUCED });
        let group = select(step == 0, unit % REDUCED * REDUCED, 0usize);
        sync_cube();
        if unit < reducing {
            #[unroll]
            for i in 0..rows {
                pool[comptime!(i * UNITS) + unit] = numbers[i];
            }
        }
        sync_cube();
        #[unroll]
        for i in 0..rows {
            let from = comptime!(i * UNITS) + group;
            let mut result = pool[from];
            #[unroll]
            for other in 1..REDUCED {
                let number = pool[from + other];
                if comptime!(largest) {
                    result = result.max(number);
                } else {
                    result += number;
                }
            }
            numbers[i] = result;
        }
    }
}

/// The results of [`partial`], normalized: a cube per query of a head.
#[cube(launch_unchecked)]
pub(crate) fn merged<F: Float>(
    sums: &Tensor<f32>,
    statistics: &Tensor<f32>,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    output: &mut Tensor<F>,
    logsumexp: &mut Tensor<f32>,
    minus_infinity: f32,
    #[define(F)] _type: ElemType,
) {
    let heads = output.shape(1);
    let len_q = output.shape(2);
    let dim_v = output.shape(3);
    let splits = sums.shape(3);
    let row = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    if row < output.shape(0) * heads * len_q {
        let query = row % len_q;
        let head = row / len_q % heads;
        let batch = row / len_q / heads;
        let first = row * splits;
        let mut maximum = f32::new(LEAST);
        for split in 0..splits {
            maximum = maximum.max(statistics[(first + split) * 2]);
        }
        let mut total = f32::new(0.0);
        for split in 0..splits {
            let at = (first + split) * 2;
            total += statistics[at + 1] * (statistics[at] - maximum).exp();
        }
        let result = normalized(maximum, total, sinks, head, minus_infinity);
        let to = batch * output.stride(0) + head * output.stride(1) + query * output.stride(2);
        let mut column = UNIT_POS as usize;
        while column < dim_v {
            let mut sum = f32::new(0.0);
            for split in 0..splits {
                let rescale = (statistics[(first + split) * 2] - maximum).exp();
                sum += sums[(first + split) * dim_v + column] * rescale;
            }
            let sum = select(result.empty, f32::new(0.0), sum * result.factor);
            output[to + column] = F::cast_from(sum);
            column += UNITS;
        }
        if UNIT_POS == 0 {
            logsumexp[row] = result.logsumexp;
        }
    }
}

#[allow(unsafe_code, reason = "launches without bounds checks")]
impl Call<'_> {
    /// Output and logsumexp of a call that [`Call::of_few_queries`] has made.
    pub(crate) fn forward_of_few_queries(&self, output: &Operand, logsumexp: &Operand) {
        let inputs = self.inputs;
        let Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            dim_v,
            ..
        } = self.problem;
        let of_group = (heads_q / heads_kv).div_ceil(self.config.tile.rows / len_q);
        let cubes = batch * heads_kv * of_group;
        let splits = self.splits();
        let sums = self.scratch(&[batch, heads_q, len_q, splits, dim_v]);
        let statistics = self.scratch(&[batch, heads_q, len_q, splits, 2]);
        let operands = [&inputs.query, &inputs.key, &inputs.value];
        let size = vector_size(operands);
        let [query, key, value] = operands.map(Operand::arg);
        let vectors = dim_v / size;
        let units_per_row = vectors.next_power_of_two().min(UNITS);
        let cube_dim = CubeDim::new_1d(UNITS as u32);
        // SAFETY: the kernels read and write inside the shapes of their tensors, which `check` has compared.
        unsafe {
            partial::launch_unchecked(
                self.client,
                self.cubes(splits, cubes),
                cube_dim,
                size,
                query,
                key,
                value,
                self.scoring(),
                sums.arg(),
                statistics.arg(),
                cubes as u32,
                units_per_row,
                vectors.div_ceil(units_per_row),
                self.config,
                [inputs.query.elem, self.mask_elem()],
            );
            merged::launch_unchecked(
                self.client,
                self.spread(self.problem.query_rows()),
                cube_dim,
                sums.arg(),
                statistics.arg(),
                optional(inputs.sinks.as_ref()),
                output.arg(),
                logsumexp.arg(),
                f32::NEG_INFINITY,
                inputs.query.elem,
            );
        }
    }
}
