//! Our results against the f64 oracle, on the part of them that the oracle can afford.
//!
//! Batch items and key/value heads do not see each other, so that the first of them is a whole problem. Queries do not
//! see each other either: of long sequences only the last ones are checked, and only their own gradients. The longer
//! sums, over all queries, are compared with the peers' by the parent.

use std::ops::Range;
use std::slice;

use burn::tensor::bf16;
use burn_attn_kernels_cpu::{
    AttentionDropout, Broadcast, CausalAlignment, InputError, Mask, PositionMask, Problem, Window,
    oracle::{self, Gradients, Inputs},
};

use super::{Results, op::DROPOUT_SEED};
use crate::generator::{QUERY_SCALE, numbers, seed};
use crate::work::{Op, Pass, Precision};

/// Up to this length the oracle computes every row.
const WHOLE: usize = 512;
/// Rows it computes of a longer one.
const LAST_ROWS: usize = 16;

/// Where the checked part lies in the tensors of an [`Op`].
struct Part {
    problem: Problem,
    /// The first checked query.
    first: usize,
}

/// Compares `results` with the oracle's.
pub fn check(op: &Op, results: &Results) -> Result<(), String> {
    let part = Part::of(op);
    let (expected, gradients) = part.oracle(op).map_err(|error| error.to_string())?;
    let rows = part.rows(op);
    let keys = 0..op.len_kv * op.dim;
    let keys = slice::from_ref(&keys);
    compare(op, results, "output", &rows, &expected)?;
    let Some(gradients) = gradients else {
        return Ok(());
    };
    compare(op, results, "dquery", &rows, &gradients.q)?;
    if part.first > 0 {
        return Ok(());
    }
    compare(op, results, "dkey", keys, &gradients.k)?;
    compare(op, results, "dvalue", keys, &gradients.v)
}

impl Part {
    fn of(op: &Op) -> Self {
        // Which weights are dropped depends on the index of the query: no row may move.
        let whole = op.len_q <= WHOLE || op.dropout > 0.0;
        let first = if whole { 0 } else { op.len_q - LAST_ROWS };
        let problem = Problem {
            batch: 1,
            heads_q: op.heads / op.heads_kv,
            heads_kv: 1,
            len_q: op.len_q - first,
            len_kv: op.len_kv,
            dim_qk: op.dim,
            dim_v: op.dim,
        };
        Self { problem, first }
    }

    /// Where the checked rows of each head lie in a query-shaped tensor.
    fn rows(&self, op: &Op) -> Vec<Range<usize>> {
        (0..self.problem.heads_q)
            .map(|head| {
                let row = |query| (head * op.len_q + query) * op.dim;
                row(self.first)..row(op.len_q)
            })
            .collect()
    }

    /// The output and, unless only the forward is measured, the gradients.
    fn oracle(&self, op: &Op) -> Result<(Vec<f64>, Option<Gradients>), InputError> {
        let input = |seed, count, scale| -> Vec<f64> {
            let round = |x: f32| match op.precision {
                Precision::F32 => f64::from(x),
                Precision::Bf16 => bf16::from_f32(x).to_f64(),
            };
            numbers(seed, count, scale).into_iter().map(round).collect()
        };
        let head = op.len_q * op.dim;
        let queries = |seed, scale| {
            let all = input(seed, self.problem.heads_q * head, scale);
            select(&all, &self.rows(op))
        };
        let (query, gradient) = (
            queries(seed::QUERY, QUERY_SCALE),
            queries(seed::GRADIENT, 1.0),
        );
        let key = input(seed::KEY, op.len_kv * op.dim, 1.0);
        let value = input(seed::VALUE, op.len_kv * op.dim, 1.0);
        let bias = op.bias.then(|| {
            let all = input(seed::BIAS, self.problem.heads_q * op.len_q * op.len_kv, 1.0);
            let rows = (0..self.problem.heads_q).map(|head| {
                let row = |query| (head * op.len_q + query) * op.len_kv;
                row(self.first)..row(op.len_q)
            });
            select(&all, &rows.collect::<Vec<_>>())
        });
        let [heads, len_q] = [self.problem.heads_q, self.problem.len_q];
        let bias = bias.as_ref().map(|bias| {
            Broadcast::new(bias.as_slice(), [1, heads, len_q, op.len_kv])
                .expect("the rows of all heads were selected")
        });
        let mut inputs = Inputs::new(&query, &key, &value);
        inputs.options.mask = Mask {
            by_position: PositionMask::new(
                op.causal.then_some(CausalAlignment::BottomRight),
                op.window.map(|left| Window {
                    left: Some(left),
                    right: Some(0),
                }),
            ),
            key_lengths: op.key_lengths.as_ref().map(|lengths| &lengths[..1]),
            ..Mask::default()
        };
        inputs.options.softcap = op.softcap;
        inputs.options.dropout = (op.dropout > 0.0).then_some(AttentionDropout {
            probability: op.dropout,
            seed: DROPOUT_SEED,
        });
        inputs.options.bias = bias;
        let output = oracle::forward(&self.problem, &inputs)?.output;
        let gradients = match op.pass {
            Pass::Forward => None,
            Pass::Backward | Pass::Training => {
                Some(oracle::backward(&self.problem, &inputs, &gradient, None)?)
            }
        };
        Ok((output, gradients))
    }
}

fn select(all: &[f64], ranges: &[Range<usize>]) -> Vec<f64> {
    ranges
        .iter()
        .flat_map(|range| &all[range.clone()])
        .copied()
        .collect()
}

fn compare(
    op: &Op,
    results: &Results,
    name: &str,
    ranges: &[Range<usize>],
    expected: &[f64],
) -> Result<(), String> {
    let Some((_, actual)) = results.iter().find(|(found, _)| found == name) else {
        return Err(format!("{name} is missing"));
    };
    let actual = ranges.iter().flat_map(|range| &actual[range.clone()]);
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let squares = expected.iter().map(|x| x * x);
    let root_mean_square = (squares.sum::<f64>() / expected.len() as f64).sqrt();
    let tolerance = op.precision.tolerance();
    let far = actual
        .zip(expected)
        .map(|(&actual, &expected)| {
            let allowed = tolerance.allowed(expected, largest, root_mean_square);
            ((f64::from(actual) - expected).abs(), allowed)
        })
        .find(|(off, allowed)| off.is_nan() || off > allowed);
    match far {
        Some((off, allowed)) => Err(format!(
            "{name} is {off:.1e} away from the oracle, and {allowed:.1e} is allowed"
        )),
        None => Ok(()),
    }
}
