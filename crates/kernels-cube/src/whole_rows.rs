//! Output and logsumexp on drivers in software, whose units are lanes of a processor's vectors.
//!
//! There, a read is a loop over the lanes unless all read the same number. Here a unit has whole rows, with all numbers of their queries and sums, and all
//! units read the same keys and values: nothing is shared, and nobody waits. A GPU has no registers for that.
//!
//! Source: as [`forward`](crate::forward).

use burn_attn_kernels_cpu::Problem;
use cubecl::{ir::ElemType, prelude::*};

use crate::{
    Operand,
    call::Call,
    dropout::{drop_weights, dropped},
    forward::normalized,
    operands::{optional, vector_size},
    score::{Config, LEAST, Scoring, score},
    tile::{Four, Rows, Tile, clear, head_of_cube, load_four, rows_of},
    visible::{has_visible, place, tile_is_visible, tiles_of_keys},
};

/// Rows of a unit.
const ROWS: usize = 8;

/// Keys that a unit takes at a time.
const KEYS: usize = 4;

/// Numbers of a head in a part.
const PART: usize = 4;

/// The widest head: the length of the program, and the time that compiling takes, grow with it.
pub(crate) const WIDEST: usize = 64;

/// The same program for calls of every length, whatever the tile that they would have otherwise.
pub(crate) fn config(of_tiles: Config, dim_qk: usize, dim_v: usize) -> Config {
    Config {
        tile: Tile {
            rows: ROWS,
            columns: KEYS,
            ..of_tiles.tile
        },
        parts_qk: dim_qk.div_ceil(PART),
        parts_v: dim_v.div_ceil(PART),
        queries: ROWS,
        ..of_tiles
    }
}

/// Four numbers of a row; where there is none, others, which are hidden later.
#[cube]
fn part_of<F: Float, N: Size>(
    tensor: &Tensor<Vector<F, N>>,
    rows: Rows,
    row: usize,
    #[comptime] part: usize,
) -> Four {
    let size = tensor.vector_size().comptime();
    let mut numbers = Four::new(0.0f32);
    if comptime!(size == 4) {
        // Rows are whole vectors.
        let from = rows.base + row.min(rows.end - 1) * rows.stride;
        let read = tensor[from / 4 + part];
        #[unroll]
        for i in 0..4usize {
            numbers.insert(i, f32::cast_from(read.extract(i)));
        }
    } else {
        numbers = load_four::<F, N>(tensor, rows, row, comptime!(part * 4).runtime(), true);
    }
    numbers
}

#[cube(launch_unchecked)]
fn whole_rows<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    scoring: &Scoring<M>,
    output: &mut Tensor<F>,
    logsumexp: &mut Tensor<f32>,
    minus_infinity: f32,
    heads_of_batch: u32,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let size = comptime!(config.tile.size);
    let (parts_qk, parts_v) = comptime!((config.parts_qk, config.parts_v));
    // What a unit has at a time: all columns are its own.
    let own = comptime!(Config {
        tile: Tile {
            size: KEYS,
            ..config.tile
        },
        ..config
    });
    let heads = query.shape(1);
    let group = heads / key.shape(1);
    let len_q = query.shape(2);
    let dim_v = value.shape(3);
    let head_of_batch = head_of_cube(heads_of_batch);
    let batch = head_of_batch / heads;
    let head = head_of_batch % heads;
    // With a causal mask the last tile has the most keys: it goes first.
    let first = (len_q.div_ceil(size) - 1 - CUBE_POS_X as usize) * size;
    let row = first + UNIT_POS as usize * ROWS;
    let place = place::<M>(scoring, batch, head, len_q, key.shape(2));
    let queries = rows_of::<F, N>(query, batch, head, first);
    let keys = rows_of::<F, N>(key, batch, head / group, 0usize.runtime());
    let values = rows_of::<F, N>(value, batch, head / group, 0usize.runtime());

    let mut rows = Array::<Four>::new(comptime!(ROWS * parts_qk));
    #[unroll]
    for index in 0..comptime!(ROWS * parts_qk) {
        let (i, part) = comptime!((index / parts_qk, index % parts_qk));
        let numbers = part_of::<F, N>(query, queries, row + i, part);
        rows[index] = numbers * Four::new(scoring.scale);
    }
    let mut sums = Array::<Four>::new(comptime!(ROWS * parts_v));
    clear(&mut sums, comptime!(ROWS * parts_v));
    let mut maxima = Array::<f32>::new(ROWS);
    let mut totals = Array::<f32>::new(ROWS);
    #[unroll]
    for i in 0..ROWS {
        maxima[i] = f32::new(LEAST);
        totals[i] = f32::new(0.0);
    }

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    for number in tiles.start..tiles.end {
        if has_visible::<M>(scoring, place, first / size, number) {
            let visible = tile_is_visible::<M>(scoring, place, first, number * size, config);
            for block in 0..comptime!(size / KEYS) {
                let start = number * size + block * KEYS;
                let mut scores = Array::<Four>::new(ROWS);
                let mut dsoftcap = Array::<Four>::new(ROWS);
                // One sum per row at a time: more would not fit into registers.
                #[unroll]
                for j in 0..KEYS {
                    let mut dots = Array::<f32>::new(ROWS);
                    #[unroll]
                    for i in 0..ROWS {
                        dots[i] = f32::new(0.0);
                    }
                    #[unroll]
                    for part in 0..parts_qk {
                        let numbers = part_of::<F, N>(key, keys, start + j, part);
                        #[unroll]
                        for k in 0..4usize {
                            #[unroll]
                            for i in 0..ROWS {
                                let row = rows[comptime!(i * parts_qk + part)];
                                dots[i] = fma(row.extract(k), numbers.extract(k), dots[i]);
                            }
                        }
                    }
                    #[unroll]
                    for i in 0..ROWS {
                        let mut of_row = scores[i];
                        of_row.insert(j, dots[i]);
                        scores[i] = of_row;
                    }
                }
                let bits = score::<M>(
                    &mut scores,
                    &mut dsoftcap,
                    scoring,
                    place,
                    row,
                    start,
                    visible,
                    false,
                    own,
                );
                let mut rescales = Array::<f32>::new(ROWS);
                #[unroll]
                for i in 0..ROWS {
                    let pair = scores[i].extract(0usize).max(scores[i].extract(1usize));
                    let other = scores[i].extract(2usize).max(scores[i].extract(3usize));
                    let maximum = maxima[i].max(pair.max(other));
                    let rescale = (maxima[i] - maximum).exp();
                    maxima[i] = maximum;
                    let mut weights = (scores[i] - Four::new(maximum)).exp();
                    #[unroll]
                    for j in 0..KEYS {
                        let hidden = bits[0] & comptime!(1u32 << (i * 4 + j) as u32) != 0;
                        weights.insert(j, select(hidden, f32::new(0.0), weights.extract(j)));
                    }
                    scores[i] = weights;
                    totals[i] = totals[i] * rescale
                        + ((weights.extract(0usize) + weights.extract(1usize))
                            + (weights.extract(2usize) + weights.extract(3usize)));
                    rescales[i] = rescale;
                }
                let dropped = dropped::<M>(scoring, place, row, start, false, own);
                drop_weights::<M>(&mut scores, &dropped, scoring, own);
                #[unroll]
                for part in 0..parts_v {
                    let mut numbers = Array::<Four>::new(KEYS);
                    #[unroll]
                    for j in 0..KEYS {
                        // What no row of this unit sees may be anything.
                        let column =
                            comptime!((0..ROWS).fold(0u32, |all, i| all | 1 << (i * 4 + j)));
                        let seen = bits[0] & column != column;
                        let read = part_of::<F, N>(value, values, start + j, part);
                        let mut number = Four::new(0.0f32);
                        #[unroll]
                        for k in 0..4usize {
                            number.insert(k, select(seen, read.extract(k), f32::new(0.0)));
                        }
                        numbers[j] = number;
                    }
                    #[unroll]
                    for i in 0..ROWS {
                        let index = comptime!(i * parts_v + part);
                        let mut sum = sums[index] * Four::new(rescales[i]);
                        #[unroll]
                        for j in 0..KEYS {
                            sum = fma(Four::new(scores[i].extract(j)), numbers[j], sum);
                        }
                        sums[index] = sum;
                    }
                }
            }
        }
    }

    #[unroll]
    for i in 0..ROWS {
        let row = row + i;
        if row < len_q {
            let result = normalized(maxima[i], totals[i], sinks, head, minus_infinity);
            let to = batch * output.stride(0) + head * output.stride(1) + row * output.stride(2);
            #[unroll]
            for part in 0..parts_v {
                let numbers = sums[comptime!(i * parts_v + part)];
                #[unroll]
                for j in 0..4usize {
                    let column = comptime!(part * 4 + j);
                    if column < dim_v {
                        output[to + column] = F::cast_from(select(
                            result.empty,
                            f32::new(0.0),
                            numbers.extract(j) * result.factor,
                        ));
                    }
                }
            }
            logsumexp[head_of_batch * len_q + row] = result.logsumexp;
        }
    }
}

#[allow(unsafe_code, reason = "a launch without bounds checks")]
impl Call<'_> {
    /// Output and logsumexp of a call that [`Call::of_whole_rows`] has made.
    pub(crate) fn forward_of_whole_rows(&self, output: &Operand, logsumexp: &Operand) {
        let inputs = self.inputs;
        let Problem {
            batch,
            heads_q,
            len_q,
            ..
        } = self.problem;
        let heads = batch * heads_q;
        let size = self.config.tile.size;
        let operands = [&inputs.query, &inputs.key, &inputs.value];
        let vectors = vector_size(operands);
        let [query, key, value] = operands.map(Operand::arg);
        // SAFETY: the kernel reads and writes inside the shapes of its tensors, which `check` has compared.
        unsafe {
            whole_rows::launch_unchecked(
                self.client,
                self.cubes(len_q.div_ceil(size), heads),
                CubeDim::new_1d((size / ROWS) as u32),
                vectors,
                query,
                key,
                value,
                optional(inputs.sinks.as_ref()),
                self.scoring(),
                output.arg(),
                logsumexp.arg(),
                f32::NEG_INFINITY,
                heads as u32,
                self.config,
                [inputs.query.elem, self.mask_elem()],
            );
        }
    }
}
