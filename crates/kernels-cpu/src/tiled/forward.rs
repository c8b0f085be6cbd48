//! The forward pass: output and logsumexp, one tile of queries after the other.

use core::{f64::consts::LN_2, f64::consts::LOG2_E, ops::Range};

use pulp::{Simd, WithSimd};

use super::{
    Element, Execution, Inputs, KernelError,
    compiled::Compiled,
    decode::{decode, decode_scratch},
    inputs::{at_least, exactly, writable},
    parallel::for_each,
    raw::{Product, RowsMut, Start},
    real::Real,
    rows::{Block, Head, HeadRows, store, take},
    scores::{Scores, Scoring},
    tile::{FORWARD_KEYS, Panel, QUERIES, Tile, blocks, padded},
    transpose::rows_to_panels,
    unseen::finite,
    visibility::Visibility,
    work,
};
use crate::{Problem, math};

/// Length of the scratch buffer of [`forward`], in numbers of the precision of the computation.
#[must_use]
pub fn forward_scratch(problem: &Problem, execution: Execution) -> usize {
    if problem.len_q == 1 {
        return decode_scratch(problem, execution);
    }
    workers(problem, execution) * per_worker(problem)
}

fn workers(problem: &Problem, execution: Execution) -> usize {
    let tasks = problem.batch * problem.heads_q * problem.len_q.div_ceil(QUERIES);
    execution.workers(tasks, work(problem))
}

fn per_worker(problem: &Problem) -> usize {
    let Problem {
        len_q,
        len_kv,
        dim_qk,
        dim_v,
        ..
    } = *problem;
    // A machine's vectors are at most 16 numbers long; a tile's columns fill its last vector.
    let queries = len_q.min(QUERIES).next_multiple_of(16);
    let keys = len_kv.min(FORWARD_KEYS);
    let rows = queries * (padded(dim_qk) + padded(dim_v));
    let panels = queries * dim_qk;
    let statistics = 3 * queries;
    let scores = keys * 32;
    let kept = keys * 32;
    let copies = keys * (padded(dim_qk) + padded(dim_v));
    rows + panels + statistics + scores + kept + copies
}

/// Output and logsumexp of attention, as the [contract](crate) states it.
///
/// # Shapes
/// - output `[batch, heads_q, len_q, dim_v]`, of any strides
/// - logsumexp `[batch, heads_q, len_q]`, contiguous
/// - scratch: [`forward_scratch`] numbers at least, of any content
///
/// # Errors
/// An input, an option or a buffer does not fit the problem.
///
/// # Cost
/// `2 · batch · heads_q · len_q · len_kv · (dim_qk + dim_v)` operations over visible pairs; no memory but the scratch,
/// whose size does not grow with `len_q` and `len_kv`. A single query reads every key and value once.
///
/// # Source
/// Dao et al., *FlashAttention* (2022), algorithm 1, with the softmax of Milakov and Gimelshein, *Online normalizer
/// calculation for softmax* (2018).
pub fn forward<T: Element>(
    inputs: &Inputs<'_, T>,
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    scratch: &mut [T::Real],
    execution: Execution,
) -> Result<(), KernelError> {
    inputs.validate()?;
    let problem = &inputs.problem;
    let Problem {
        batch,
        heads_q,
        len_q,
        dim_v,
        ..
    } = *problem;
    writable("output", &output, [batch, heads_q, len_q], dim_v, problem)?;
    exactly("logsumexp", logsumexp.len(), problem.query_rows(), problem)?;
    at_least(
        "scratch",
        scratch.len(),
        forward_scratch(problem, execution),
        problem,
    )?;
    if problem.query_rows() == 0 {
        return Ok(());
    }
    super::unseen::without_unseen(inputs, |inputs| {
        if problem.len_q == 1 {
            decode(inputs, output, logsumexp, scratch, execution);
        } else {
            tiles(inputs, output, logsumexp, scratch, execution);
        }
    });
    Ok(())
}

fn tiles<T: Element>(
    inputs: &Inputs<'_, T>,
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    scratch: &mut [T::Real],
    execution: Execution,
) {
    let problem = inputs.problem;
    let Problem {
        batch,
        heads_q,
        len_q,
        dim_v,
        ..
    } = problem;
    let scoring = Scoring::new(inputs);
    let heads = output.heads([batch, heads_q, len_q], dim_v);
    let per_head = heads.zip(logsumexp.chunks_mut(len_q));
    let tasks = per_head
        .enumerate()
        .flat_map(|(head, (output, logsumexp))| {
            let tiles = output.tiles(QUERIES).zip(logsumexp.chunks_mut(QUERIES));
            // Under a causal mask the last tile has most to do: it goes first, so that no thread waits for it at the end.
            tiles
                .enumerate()
                .rev()
                .map(move |(tile, (output, logsumexp))| (head, tile * QUERIES, output, logsumexp))
        });
    for_each(
        workers(&problem, execution),
        scratch,
        per_worker(&problem),
        tasks,
        |(head, query, mut output, logsumexp), scratch| {
            let (batch_item, head) = (head / heads_q, head % heads_q);
            let head_kv = problem.kv_head(head);
            T::Real::forward_tile(
                execution,
                TileForward {
                    scoring,
                    scale: inputs.scale(),
                    sink: inputs.sink(head),
                    q: &HeadRows::new(inputs.q, batch_item, head),
                    k: &HeadRows::new(inputs.k, batch_item, head_kv),
                    v: &HeadRows::new(inputs.v, batch_item, head_kv),
                    batch_item,
                    head,
                    query,
                    logsumexp,
                    output: &mut |query, row| store(row, output.row(query)),
                    scratch,
                },
            );
        },
    );
}

/// One tile of queries of one head.
pub struct TileForward<'a, R> {
    scoring: Scoring<'a, R>,
    scale: f64,
    sink: f64,
    q: &'a dyn Head<R>,
    k: &'a dyn Head<R>,
    v: &'a dyn Head<R>,
    batch_item: usize,
    head: usize,
    query: usize,
    logsumexp: &'a mut [R],
    /// Takes the index of a query in the tile and its row of the output.
    output: &'a mut dyn FnMut(usize, &[R]),
    scratch: &'a mut [R],
}

/// What a panel carries from one block of keys to the next.
struct Running<'a, R> {
    /// The queries, `[dim_qk, columns]`.
    query: &'a [R],
    /// The sums of the values so far, `[queries, padded(dim_v)]`.
    output: &'a mut [R],
    /// The largest score so far.
    maximum: &'a mut [R],
    /// The sum of the weights so far, relative to the maximum.
    sum: &'a mut [R],
    /// By what the sums so far shrink when the maximum grows.
    shrink: &'a mut [R],
}

impl<R: Real> WithSimd for TileForward<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Problem {
            dim_qk,
            dim_v,
            len_kv,
            ..
        } = self.scoring.problem;
        let tile = Tile {
            batch_item: self.batch_item,
            head: self.head,
            query: self.query,
            queries: self.logsumexp.len(),
            lanes: R::lanes::<S>(),
        };
        let columns = tile.columns();
        let block_keys = len_kv.min(FORWARD_KEYS);
        let mut scratch = self.scratch;
        let (padded_qk, padded_v) = (padded(dim_qk), padded(dim_v));
        let rows = take(&mut scratch, tile.queries * padded_qk);
        let query = take(&mut scratch, columns * dim_qk);
        let output = take(&mut scratch, tile.queries * padded_v);
        let maximum = take(&mut scratch, columns);
        let sum = take(&mut scratch, columns);
        let shrink = take(&mut scratch, columns);
        let scores = take(&mut scratch, block_keys * 2 * tile.lanes);
        let kept = take(&mut scratch, block_keys * 2 * tile.lanes);
        let key_buffer = take(&mut scratch, block_keys * padded_qk);
        let value_buffer = take(&mut scratch, block_keys * padded_v);

        for (index, row) in rows.chunks_exact_mut(padded_qk).enumerate() {
            self.q.row(tile.query + index, &mut row[..dim_qk]);
        }
        let factor = R::from_f64(self.scale * LOG2_E);
        rows_to_panels(&tile, dim_qk, padded_qk, rows, factor, query);
        output.fill(R::default());
        // A sink is a key whose value is zero: it starts the sum.
        maximum.fill(R::from_f64(self.sink * LOG2_E));
        sum.fill(R::from_f64(if self.sink == f64::NEG_INFINITY {
            0.0
        } else {
            1.0
        }));

        let queries = tile.query..tile.query + tile.queries;
        let keys = self.scoring.key_range(tile.batch_item, queries.clone());
        let heads = tile.head..tile.head + 1;
        let runs = self.scoring.runs(tile.batch_item, heads, queries, keys);
        for keys in runs.flat_map(|run| blocks(run, FORWARD_KEYS)) {
            let key = self.k.block(keys.clone(), dim_qk, dim_qk, key_buffer);
            let value = self.v.block(
                keys.clone(),
                dim_v,
                dim_v.next_multiple_of(tile.lanes),
                value_buffer,
            );
            for index in 0..tile.count() {
                let panel = tile.panel(index);
                let all = panel.column..panel.column + panel.columns;
                let running = Running {
                    query: &query[all.start * dim_qk..all.end * dim_qk],
                    output: &mut output[all.start * padded_v..],
                    maximum: &mut maximum[all.clone()],
                    sum: &mut sum[all.clone()],
                    shrink: &mut shrink[all],
                };
                let keys = keys.clone();
                if panel.columns == tile.lanes {
                    step::<S, R, 1>(
                        simd,
                        &self.scoring,
                        &panel,
                        keys,
                        key,
                        value,
                        running,
                        scores,
                        kept,
                    );
                } else {
                    step::<S, R, 2>(
                        simd,
                        &self.scoring,
                        &panel,
                        keys,
                        key,
                        value,
                        running,
                        scores,
                        kept,
                    );
                }
            }
        }

        let kept_scale = self
            .scoring
            .dropout
            .map_or(1.0, |dropout| dropout.kept_scale());
        for (query, logsumexp) in self.logsumexp.iter_mut().enumerate() {
            let total = sum[query].to_f64();
            // `total` is 0 only if no key was visible; a NaN is not 0.
            let hidden = total == 0.0;
            *logsumexp = if hidden {
                R::NEG_INFINITY
            } else {
                R::from_f64((maximum[query].to_f64() + math::log2(total)) * LN_2)
            };
            shrink[query] = R::from_f64(if hidden { 0.0 } else { kept_scale / total });
        }
        for (query, row) in output.chunks_exact_mut(padded_v).enumerate() {
            let factor = R::splat(simd, shrink[query]);
            for x in R::vectors_mut::<S>(row) {
                *x = R::times(simd, *x, factor);
            }
            let row = &mut row[..dim_v];
            let at = [tile.batch_item, tile.head, tile.query + query];
            let finite = || finite(row, |x| x);
            // Weights of zero times values that other rows see are NaN if the values are.
            if (self.scoring).sees_nothing(at, self.sink, self.logsumexp[query], finite) {
                row.fill(R::default());
            }
            (self.output)(query, row);
        }
    }
}

/// One panel of queries meets one block of keys.
#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "the innermost step; a struct would only rename them"
)]
fn step<S: Simd, R: Real, const VECTORS: usize>(
    simd: S,
    scoring: &Scoring<'_, R>,
    panel: &Panel,
    block: Range<usize>,
    key: Block<'_, R>,
    value: Block<'_, R>,
    running: Running<'_, R>,
    scores: &mut [R],
    kept: &mut [R],
) {
    let Problem { dim_qk, dim_v, .. } = scoring.problem;
    // What no query of the panel sees is not even computed.
    let range = scoring.key_range(panel.batch_item, panel.all_queries());
    let keys = range.start.max(block.start)..range.end.min(block.end);
    if keys.is_empty() {
        return;
    }
    let visibility = scoring.visibility(panel, keys.clone());
    if visibility == Visibility::Hidden {
        return;
    }
    let skipped = keys.start - block.start;
    let columns = panel.columns;
    let scores = &mut scores[..keys.len() * columns];
    Product {
        rows: keys.len(),
        depth: dim_qk,
        left: &key.data[skipped * key.stride..],
        left_row: key.stride,
        left_step: 1,
        right: running.query,
        right_step: columns,
        out: scores,
        out_row: columns,
        start: Start::Zero,
    }
    .run::<S, VECTORS>(simd);
    scoring.apply(
        simd,
        panel,
        keys.clone(),
        visibility,
        Scores {
            rows: scores,
            stride: columns,
            slopes: &mut [],
        },
    );

    weigh::<S, R, VECTORS>(simd, scores, running.maximum, running.sum, running.shrink);

    if let Some(dropout) = scoring.dropout {
        let kept = &mut kept[..keys.len() * columns];
        scoring.drop_weights(dropout, panel, keys.clone(), kept);
        for (score, &kept) in R::vectors_mut::<S>(scores)
            .iter_mut()
            .zip(R::vectors::<S>(kept))
        {
            *score = R::times(simd, *score, kept);
        }
    }
    Product {
        rows: panel.queries,
        depth: keys.len(),
        left: scores,
        left_row: 1,
        left_step: columns,
        right: &value.data[skipped * value.stride..],
        right_step: value.stride,
        out: running.output,
        out_row: padded(dim_v),
        start: Start::Scaled(running.shrink),
    }
    .run_wide(simd, dim_v.next_multiple_of(R::lanes::<S>()));
}

/// Turns scores into weights relative to the largest score so far, and brings maximum and sum up to date.
#[inline(always)]
fn weigh<S: Simd, R: Real, const VECTORS: usize>(
    simd: S,
    scores: &mut [R],
    maximum: &mut [R],
    sum: &mut [R],
    shrink: &mut [R],
) {
    let scores = R::vectors_mut::<S>(scores);
    let maximum = R::vectors_mut::<S>(maximum);
    let sum = R::vectors_mut::<S>(sum);
    let shrink = R::vectors_mut::<S>(shrink);
    let zero = R::splat(simd, R::default());
    let (most, least) = (
        R::splat(simd, R::MAX),
        R::splat(simd, R::default() - R::MAX),
    );

    let mut largest = [zero; VECTORS];
    largest.copy_from_slice(&maximum[..VECTORS]);
    for row in scores.chunks_exact(VECTORS) {
        for (largest, &score) in largest.iter_mut().zip(row) {
            *largest = R::max(simd, *largest, score);
        }
    }
    let mut reference = [zero; VECTORS];
    for vector in 0..VECTORS {
        // A score that overflowed to +∞ counts as the largest number: ∞ − ∞ would be NaN. A row that has seen nothing
        // is measured from a finite number for the same reason.
        let new = R::select_less(simd, most, largest[vector], most, largest[vector]);
        reference[vector] = R::max(simd, new, least);
        shrink[vector] =
            R::exp2_of_negative(simd, R::minus(simd, maximum[vector], reference[vector]));
        maximum[vector] = new;
    }
    let mut sums = [zero; VECTORS];
    for row in scores.chunks_exact_mut(VECTORS) {
        for vector in 0..VECTORS {
            let weight = R::exp2_of_negative(simd, R::minus(simd, row[vector], reference[vector]));
            row[vector] = weight;
            sums[vector] = R::plus(simd, sums[vector], weight);
        }
    }
    for vector in 0..VECTORS {
        sum[vector] = R::mul_add(simd, sum[vector], shrink[vector], sums[vector]);
    }
}
