//! The forward pass: output and logsumexp, one tile of queries after the other.

use crate::{
    InputError,
    attention::{
        decode::decode,
        inputs::{Inputs, writable},
        kernel::{
            forward::{TileForward, pieces},
            operands::Operands,
            tile::{QUERIES, Queries},
        },
    },
    compiled::{Compiled, Kernel},
    options::exactly,
    threads::{
        parallel::{Execution, for_each},
        scratch::sum_of_pieces,
    },
    view::{element::Element, rows_mut::RowsMut},
};

/// Output and logsumexp of attention, as the [contract](crate) states it.
///
/// # Shapes
/// - output `[batch, heads_q, len_q, dim_v]`, of any strides
/// - logsumexp `[batch, heads_q, len_q]`, contiguous
///
/// # Errors
/// An input, an option or a buffer does not fit the problem.
///
/// # Cost
/// `2 · batch · heads_q · len_q · len_kv · (dim_qk + dim_v)` operations over visible pairs. The scratch memory of each thread does
/// not grow with `len_q` and `len_kv`. A single query reads every key and value once.
///
/// # Source
/// Dao et al., *FlashAttention* (2022), algorithm 1, with the softmax of Milakov and Gimelshein, *Online normalizer
/// calculation for softmax* (2018).
pub fn forward<T: Element>(
    inputs: &Inputs<'_, T>,
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    execution: Execution,
) -> Result<(), InputError> {
    inputs.validate()?;
    let problem = &inputs.problem;
    let (sizes, dim) = (problem.query_sizes(), problem.dim_v);
    writable("output", &output, sizes, dim, problem)?;
    exactly("logsumexp", logsumexp.len(), problem.query_rows(), problem)?;
    if problem.query_rows() == 0 {
        return Ok(());
    }
    if problem.len_q == 1 {
        decode(inputs, output, logsumexp, execution);
    } else {
        tiles(inputs, output, logsumexp, execution);
    }
    Ok(())
}

fn tiles<T: Element>(
    inputs: &Inputs<'_, T>,
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    execution: Execution,
) {
    let problem = inputs.problem;
    let (heads_q, len_q) = (problem.heads_q, problem.len_q);
    let scoring = inputs.scoring();
    let heads = output.heads(problem.query_sizes(), problem.dim_v);
    let per_head = heads.zip(logsumexp.chunks_mut(len_q));
    let tasks = per_head
        .enumerate()
        .flat_map(|(head, (output, logsumexp))| {
            let tiles = output.tiles(QUERIES).zip(logsumexp.chunks_mut(QUERIES));
            // Under a causal mask the last tile has the most work: it goes first, so that no thread waits for it at the end.
            tiles
                .enumerate()
                .rev()
                .map(move |(tile, (output, logsumexp))| (head, tile * QUERIES, output, logsumexp))
        });
    let count = problem.batch * heads_q * len_q.div_ceil(QUERIES);
    for_each(
        execution.workers(count, problem.operations()),
        sum_of_pieces(pieces(&problem)),
        tasks,
        |(head, query, mut output, logsumexp), scratch| {
            let (batch_item, head) = (head / heads_q, head % heads_q);
            let head_kv = problem.kv_head(head);
            T::Real::run(
                Kernel::Forward(TileForward {
                    operands: Operands {
                        scoring: &scoring,
                        q: &inputs.q.head(batch_item, head),
                        k: &inputs.k.head(batch_item, head_kv),
                        v: &inputs.v.head(batch_item, head_kv),
                        queries: Queries {
                            batch_item,
                            head,
                            first: query,
                            count: logsumexp.len(),
                        },
                    },
                    logsumexp,
                    output: &mut |query, row| T::from_reals(row, output.row(query)),
                    scratch,
                }),
                execution,
            );
        },
    );
}
