//! Our results against the f64 oracle, on the part of them that the oracle can afford.
//!
//! Batch items and key/value heads do not see each other, so that the first of them is a whole problem. Queries do not
//! see each other either: of long sequences only the last ones are checked, and only their own gradients. The longer
//! sums, over all queries, are compared with the peers' by the parent.

use std::iter;
use std::ops::Range;

use burn::tensor::{bf16, f16};
use burn_attn_kernels_cpu::{
    AttentionDropout, Broadcast, CausalAlignment, InputError, Mask, PositionMask, Problem, Window,
    oracle::{self, Inputs},
};

use super::op::DROPOUT_SEED;
use super::subject::Results;
use crate::generator::{QUERY_SCALE, numbers, seed};
use crate::work::{Op, Pass, Precision};

/// Up to this length the oracle computes every row.
const WHOLE: usize = 512;
/// Rows it computes of a longer one.
const LAST_ROWS: usize = 16;

/// Where the checked part lies in the tensors of an [`Op`].
struct Part<'a> {
    op: &'a Op,
    problem: Problem,
    /// The first checked query.
    first: usize,
}

/// A result of the oracle: its name, where the numbers lie in the whole result, and what they are.
type Expected = (&'static str, Vec<Range<usize>>, Vec<f64>);

/// Compares `results` with the oracle's.
pub fn check(op: &Op, results: &Results) -> Result<(), String> {
    let expected = Part::of(op).oracle().map_err(|error| error.to_string())?;
    expected.iter().try_for_each(|of| compare(op, results, of))
}

impl<'a> Part<'a> {
    fn of(op: &'a Op) -> Self {
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
        Self { op, problem, first }
    }

    /// Where the checked rows of each head lie in a tensor of a row of `width` numbers for each query.
    fn rows(&self, width: usize) -> Vec<Range<usize>> {
        let heads = 0..self.problem.heads_q;
        let row = |head, query| (head * self.op.len_q + query) * width;
        heads
            .map(|head| row(head, self.first)..row(head, self.op.len_q))
            .collect()
    }

    /// These numbers of a seed, rounded as those of the operation.
    fn input(&self, seed: u32, scale: f32, ranges: &[Range<usize>]) -> Vec<f64> {
        let round = |x: &f32| match self.op.precision {
            Precision::F32 => f64::from(*x),
            Precision::Bf16 => bf16::from_f32(*x).to_f64(),
            Precision::F16 => f16::from_f32(*x).to_f64(),
        };
        let count = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let numbers = numbers(seed, count, scale);
        let ranges = ranges.iter().flat_map(|range| &numbers[range.clone()]);
        ranges.map(round).collect()
    }

    /// The output and, unless only the forward is measured, the gradients.
    fn oracle(&self) -> Result<Vec<Expected>, InputError> {
        let (op, problem) = (self.op, &self.problem);
        let rows = self.rows(op.dim);
        // All of the first head.
        let keys: Vec<_> = iter::once(0..op.len_kv * op.dim).collect();
        let query = self.input(seed::QUERY, QUERY_SCALE, &rows);
        let key = self.input(seed::KEY, 1.0, &keys);
        let value = self.input(seed::VALUE, 1.0, &keys);
        let bias = op
            .bias
            .then(|| self.input(seed::BIAS, 1.0, &self.rows(op.len_kv)));
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
        let shape = [1, problem.heads_q, problem.len_q, op.len_kv];
        inputs.options.bias = bias
            .as_deref()
            .map(|bias| Broadcast::new(bias, shape).expect("the rows of all heads were selected"));
        let output = oracle::forward(problem, &inputs)?.output;
        let mut expected = vec![("output", rows.clone(), output)];
        if op.pass != Pass::Forward {
            let gradient = self.input(seed::GRADIENT, 1.0, &rows);
            let of = oracle::backward(problem, &inputs, &gradient, None)?;
            expected.push(("dquery", rows, of.q));
            if self.first == 0 {
                expected.extend([("dkey", keys.clone(), of.k), ("dvalue", keys, of.v)]);
            }
        }
        Ok(expected)
    }
}

fn compare(op: &Op, results: &Results, (name, ranges, expected): &Expected) -> Result<(), String> {
    let Some((_, actual)) = results.iter().find(|(found, _)| found == name) else {
        return Err(format!("{name} is missing"));
    };
    let actual = ranges.iter().flat_map(|range| &actual[range.clone()]);
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let squares = expected.iter().map(|x| x * x);
    let root_mean_square = (squares.sum::<f64>() / expected.len() as f64).sqrt();
    let tolerance = op.precision.tolerance();
    for (&actual, &expected) in actual.zip(expected) {
        let off = (f64::from(actual) - expected).abs();
        let allowed = tolerance.allowed(expected, largest, root_mean_square);
        if off.is_nan() || off > allowed {
            return Err(format!(
                "{name} is {off:.1e} away from the oracle, and {allowed:.1e} is allowed"
            ));
        }
    }
    Ok(())
}
