//! Score functions in every form: of blocks, of single numbers, and written out for all scores.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::{Captured, CausalAlignment, Pairs, ScoreFunction};

use crate::{
    case::{Case, tensor},
    scalar_forms::{Factor, Indices, Penalty, Product, Same},
};

/// The indices of all pairs, `[batch, heads_q, len_q, len_kv]`.
pub struct Grid {
    batch_items: Tensor<4>,
    heads: Tensor<4>,
    queries: Tensor<4>,
    keys: Tensor<4>,
    positions: Tensor<4>,
}

impl Grid {
    pub fn new(case: &Case, device: &Device, dtype: DType) -> Self {
        let p = case.problem;
        let shape @ [_, heads, len_q, len_kv] = [p.batch, p.heads_q, p.len_q, p.len_kv];
        let of = |number: &dyn Fn([usize; 4]) -> f64| {
            let indices = 0..shape.iter().product();
            let numbers = indices.map(|at: usize| {
                let (row, key) = (at / len_kv, at % len_kv);
                let (head, query) = (row / len_q, row % len_q);
                number([head / heads, head % heads, query, key])
            });
            tensor(&numbers.collect::<Vec<_>>(), shape, device, dtype)
        };
        let first = |batch_item: usize| match (&case.query_offsets, case.causal) {
            (Some(offsets), _) => offsets[batch_item] as f64,
            (None, Some(CausalAlignment::TopLeft)) => 0.0,
            _ => len_kv as f64 - len_q as f64,
        };
        Self {
            batch_items: of(&|at| at[0] as f64),
            heads: of(&|at| at[1] as f64),
            queries: of(&|at| at[2] as f64),
            keys: of(&|at| at[3] as f64),
            positions: of(&|at| first(at[0]) + at[2] as f64),
        }
    }
}

pub type Blocks = fn(Tensor<4>, &Pairs) -> Tensor<4>;
pub type Dense = fn(Tensor<4>, Vec<Tensor<4>>, &Grid) -> Tensor<4>;
pub type Capture = fn(Tensor<4>) -> Captured;

/// A function in both forms, and the tensors that it captures, by their shapes.
pub struct Form {
    pub name: &'static str,
    pub captured: Vec<([usize; 4], Capture)>,
    pub blocks: Blocks,
    pub dense: Dense,
    /// Adds the form for single numbers, where there is one.
    pub scalar: fn(ScoreFunction) -> ScoreFunction,
}

fn of_heads(x: Tensor<4>) -> Captured {
    Captured::per_head(x.reshape([-1]))
}

fn of_queries(x: Tensor<4>) -> Captured {
    let [batch, _, queries, _] = x.dims();
    Captured::per_query(x.reshape([batch, queries]))
}

fn of_keys(x: Tensor<4>) -> Captured {
    let [batch, _, _, keys] = x.dims();
    Captured::per_key(x.reshape([batch, keys]))
}

fn of_distances(x: Tensor<4>) -> Captured {
    let [_, heads, _, distances] = x.dims();
    Captured::by_distance(x.reshape([heads, distances]))
}

fn whole(x: Tensor<4>) -> Captured {
    Captured::whole(x)
}

/// The entry of every pair in numbers by distance for queries at any offset.
fn at_distance(numbers: Tensor<4>, grid: &Grid) -> Tensor<4> {
    let [batch, heads, len_q, len_kv] = grid.keys.dims();
    let [_, _, _, distances] = numbers.dims();
    let zero = (len_q + len_kv - 1) as f64;
    let entries = (grid.positions.clone() - grid.keys.clone() + zero).int();
    let entries = entries.reshape([batch, heads, len_q * len_kv]);
    let numbers = numbers
        .reshape([1, heads, distances])
        .expand([batch, heads, distances]);
    numbers
        .gather(2, entries)
        .reshape([batch, heads, len_q, len_kv])
}

/// For the sizes of a case.
pub fn forms(case: &Case) -> Vec<Form> {
    let p = case.problem;
    let (heads, len_q, len_kv) = (p.heads_q, p.len_q, p.len_kv);
    let all_distances = 2 * (len_q + len_kv) - 1;
    vec![
        Form {
            name: "the scores themselves",
            scalar: |function| function.scalar(Same),
            captured: vec![],
            blocks: |scores, _| scores,
            dense: |scores, _, _| scores,
        },
        Form {
            name: "a bias",
            scalar: |function| function,
            captured: vec![([1, heads, len_q, len_kv], Captured::per_pair)],
            blocks: |scores, pairs| {
                let [bias] = pairs.floats();
                scores + bias
            },
            dense: |scores, captured, _| scores + captured[0].clone(),
        },
        Form {
            name: "a factor per head",
            scalar: |function| function.scalar(Factor),
            captured: vec![([1, heads, 1, 1], of_heads)],
            blocks: |scores, pairs| {
                let [factors] = pairs.floats();
                scores * factors
            },
            dense: |scores, captured, _| scores * captured[0].clone(),
        },
        Form {
            name: "numbers of queries times numbers of keys",
            scalar: |function| function.scalar(Product),
            captured: vec![([2, 1, len_q, 1], of_queries), ([1, 1, 1, len_kv], of_keys)],
            blocks: |scores, pairs| {
                let [of_query, of_key] = pairs.floats();
                scores + of_query * of_key
            },
            dense: |scores, captured, _| scores + captured[0].clone() * captured[1].clone(),
        },
        Form {
            name: "a factor by distance",
            scalar: |function| function.scalar(Factor),
            captured: vec![([1, heads, 1, all_distances], of_distances)],
            blocks: |scores, pairs| {
                let [factors] = pairs.floats();
                scores * factors
            },
            dense: |scores, captured, grid| scores * at_distance(captured[0].clone(), grid),
        },
        Form {
            name: "a polynomial",
            scalar: |function| function,
            captured: vec![([1, 1, 1, 3], whole)],
            blocks: |scores, pairs| {
                let [powers] = pairs.floats();
                let [a, b, c] = [0, 1, 2].map(|at| powers.clone().narrow(3, at, 1));
                (scores.clone() * c + b) * scores + a
            },
            dense: |scores, captured, _| {
                let [a, b, c] = [0, 1, 2].map(|at| captured[0].clone().narrow(3, at, 1));
                a + scores.clone() * b + scores.powi_scalar(2) * c
            },
        },
        Form {
            name: "a tanh with a learned penalty by distance",
            scalar: |function| function.scalar(Penalty),
            captured: vec![([1, heads, 1, 1], of_heads)],
            blocks: |scores, pairs| {
                let [slopes] = pairs.floats();
                let dtype: burn::tensor::FloatDType = scores.dtype().into();
                scores.tanh() * 2.0 - pairs.distances().abs().cast(dtype) * slopes * 0.01
            },
            dense: |scores, captured, grid| {
                let apart = grid.positions.clone() - grid.keys.clone();
                scores.tanh() * 2.0 - apart.abs() * captured[0].clone() * 0.01
            },
        },
        Form {
            name: "every index",
            scalar: |function| function.scalar(Indices),
            captured: vec![],
            blocks: |scores, pairs| {
                let number =
                    pairs.batch_items() * 3 + pairs.heads() * 2 + pairs.queries() - pairs.keys();
                let dtype: burn::tensor::FloatDType = scores.dtype().into();
                scores + number.cast(dtype) * 0.1
            },
            dense: |scores, _, grid| {
                let number = grid.batch_items.clone() * 3.0
                    + grid.heads.clone() * 2.0
                    + grid.queries.clone()
                    - grid.keys.clone();
                scores + number * 0.1
            },
        },
    ]
}
