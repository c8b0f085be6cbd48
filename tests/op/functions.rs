//! Score functions against the same formulas written out for all scores, differentiated by Burn.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData, activation::softmax};
use burn_attn::{Captured, CausalAlignment, Pairs, ScoreFunction};
use burn_attn_tests::{compare::difference_to_largest, devices, numbers::uniform_f64};

use crate::{
    body::Body,
    case::Case,
    oracle::{TOLERANCE_OF_F32, implementations},
};

/// The indices of all pairs, `[batch, heads_q, len_q, len_kv]`.
struct Grid {
    batch_items: Tensor<4>,
    heads: Tensor<4>,
    queries: Tensor<4>,
    keys: Tensor<4>,
    positions: Tensor<4>,
}

impl Grid {
    fn new(case: &Case, device: &Device, dtype: DType) -> Self {
        let p = case.problem;
        let shape @ [_, heads, len_q, len_kv] = [p.batch, p.heads_q, p.len_q, p.len_kv];
        let of = |number: &dyn Fn([usize; 4]) -> f64| {
            let indices = 0..shape.iter().product();
            let numbers = indices.map(|at: usize| {
                let (row, key) = (at / len_kv, at % len_kv);
                let (head, query) = (row / len_q, row % len_q);
                number([head / heads, head % heads, query, key])
            });
            let data = TensorData::new(numbers.collect::<Vec<_>>(), shape);
            Tensor::<4>::from_data(data.convert_dtype(dtype), (device, dtype))
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

type Blocks = fn(Tensor<4>, &Pairs) -> Tensor<4>;
type Dense = fn(Tensor<4>, Vec<Tensor<4>>, &Grid) -> Tensor<4>;
type Capture = fn(Tensor<4>) -> Captured;

/// A function in both forms, and the tensors that it captures, by their shapes.
struct Form {
    name: &'static str,
    captured: Vec<([usize; 4], Capture)>,
    blocks: Blocks,
    dense: Dense,
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
fn forms(case: &Case) -> Vec<Form> {
    let p = case.problem;
    let (heads, len_q, len_kv) = (p.heads_q, p.len_q, p.len_kv);
    let all_distances = 2 * (len_q + len_kv) - 1;
    vec![
        Form {
            name: "the scores themselves",
            captured: vec![],
            blocks: |scores, _| scores,
            dense: |scores, _, _| scores,
        },
        Form {
            name: "a bias",
            captured: vec![([1, heads, len_q, len_kv], Captured::per_pair)],
            blocks: |scores, pairs| {
                let [bias] = pairs.floats();
                scores + bias
            },
            dense: |scores, captured, _| scores + captured[0].clone(),
        },
        Form {
            name: "a factor per head",
            captured: vec![([1, heads, 1, 1], of_heads)],
            blocks: |scores, pairs| {
                let [factors] = pairs.floats();
                scores * factors
            },
            dense: |scores, captured, _| scores * captured[0].clone(),
        },
        Form {
            name: "numbers of queries times numbers of keys",
            captured: vec![([2, 1, len_q, 1], of_queries), ([1, 1, 1, len_kv], of_keys)],
            blocks: |scores, pairs| {
                let [of_query, of_key] = pairs.floats();
                scores + of_query * of_key
            },
            dense: |scores, captured, _| scores + captured[0].clone() * captured[1].clone(),
        },
        Form {
            name: "a factor by distance",
            captured: vec![([1, heads, 1, all_distances], of_distances)],
            blocks: |scores, pairs| {
                let [factors] = pairs.floats();
                scores * factors
            },
            dense: |scores, captured, grid| scores * at_distance(captured[0].clone(), grid),
        },
        Form {
            name: "a polynomial",
            captured: vec![([1, 1, 1, 3], whole)],
            blocks: |scores, pairs| {
                let [powers] = pairs.floats();
                let [a, b, c] = [0, 1, 2].map(|at| powers.clone().narrow(3, at, 1));
                (scores.clone() * c + b) * scores + a
            },
            dense: |scores, captured, _| {
                let [a, b, c] = [0, 1, 2].map(|at| captured[0].clone().narrow(3, at, 1));
                a + scores.clone() * b + scores.clone() * scores * c
            },
        },
        Form {
            name: "a tanh with a learned penalty by distance",
            captured: vec![([1, heads, 1, 1], of_heads)],
            blocks: |scores, pairs| {
                let [slopes] = pairs.floats();
                let dtype: burn::tensor::FloatDType = scores.dtype().into();
                scores.tanh() * 2.0 - pairs.distances().abs().cast(dtype) * slopes
            },
            dense: |scores, captured, grid| {
                let apart = grid.positions.clone() - grid.keys.clone();
                scores.tanh() * 2.0 - apart.abs() * captured[0].clone()
            },
        },
        Form {
            name: "every index",
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

/// Other options beside a function.
fn cases() -> Vec<Case> {
    let grouped = |name| Case::new(name, [2, 6, 3, 7, 11, 5, 13]);
    vec![
        grouped("nothing else"),
        Case {
            causal: Some(CausalAlignment::BottomRight),
            softcap: Some(1.5),
            ..grouped("causal, with a softcap")
        },
        Case {
            causal: Some(CausalAlignment::TopLeft),
            key_lengths: Some(vec![11, 4]),
            ..grouped("causal top-left, with padding").with_sinks()
        },
        Case {
            query_offsets: Some(vec![3, -2]),
            causal: Some(CausalAlignment::BottomRight),
            ..grouped("at offsets, with a bias").with_bias([1, 6, 1, 11])
        },
        Case {
            scale: Some(0.3),
            ..Case::new("one query", [2, 6, 3, 1, 11, 5, 13])
        },
        Case::new(
            "more queries than keys, with a mask",
            [2, 3, 3, 11, 5, 7, 2],
        )
        .with_masked([2, 1, 11, 5]),
    ]
}

/// Output, logsumexp, the gradients of query, key and value, and those of the captured tensors.
pub type Results = Vec<Vec<f64>>;

fn captured(case: &Case, form: &Form, device: &Device, dtype: DType) -> Vec<Tensor<4>> {
    let shapes = form.captured.iter().enumerate();
    let tensors = shapes.map(|(index, &(mut shape, _))| {
        shape[0] = shape[0].min(case.problem.batch);
        let numbers = uniform_f64(20 + index as u64, shape.iter().product());
        let data = TensorData::new(numbers, shape).convert_dtype(dtype);
        Tensor::from_data(data, (device, dtype)).require_grad()
    });
    tensors.collect()
}

/// The gradients of `sum(output · output_gradient) + sum(logsumexp · logsumexp_gradient)`, behind the results.
pub fn results(
    case: &Case,
    output: Tensor<4>,
    logsumexp: Tensor<3>,
    leaves: Vec<Tensor<4>>,
) -> Results {
    let device = output.device();
    let weights = |numbers: &[f64], shape: &[usize], dtype: DType| {
        TensorData::new(numbers.to_vec(), shape.to_vec()).convert_dtype(dtype)
    };
    let of_output = weights(&case.output_gradient, &output.dims(), output.dtype());
    let of_output = Tensor::from_data(of_output, (&device, output.dtype()));
    let of_rows = weights(
        &case.logsumexp_gradient,
        &logsumexp.dims(),
        logsumexp.dtype(),
    );
    let of_rows = Tensor::from_data(of_rows, (&device, logsumexp.dtype()));
    let loss = (output.clone() * of_output).sum()
        + (logsumexp.clone() * of_rows).sum().cast(output.dtype());
    let gradients = loss.backward();
    let numbers = |data: TensorData| data.iter::<f64>().collect::<Vec<_>>();
    let gradients = leaves.iter().map(|leaf| {
        let gradient = leaf.grad(&gradients);
        gradient.map_or(vec![0.0; leaf.shape().num_elements()], |x| {
            numbers(x.into_data())
        })
    });
    let forward = [numbers(output.into_data()), numbers(logsumexp.into_data())];
    forward.into_iter().chain(gradients).collect()
}

fn by_operation(case: &Case, form: &Form, body: Body, device: &Device, dtype: DType) -> Results {
    let device = device.clone().autodiff();
    let [query, key, value] = case.operands(&device, dtype).map(Tensor::require_grad);
    let captured = captured(case, form, &device, dtype);
    let mut function = ScoreFunction::new(form.name, form.blocks);
    for (tensor, (_, capture)) in captured.iter().zip(&form.captured) {
        function = function.capture(capture(tensor.clone()));
    }
    let options = case.options(&device, dtype).score_function(function);
    let (q, k, v) = (query.clone(), key.clone(), value.clone());
    let (output, logsumexp) = body.attend([q, k, v], options);
    let leaves = [query, key, value].into_iter().chain(captured).collect();
    results(case, output, logsumexp, leaves)
}

/// In f64, all scores at once.
fn written_out(case: &Case, form: &Form) -> Results {
    let (device, dtype) = (devices::any().autodiff(), DType::F64);
    let [query, key, value] = case.operands(&device, dtype).map(Tensor::require_grad);
    let captured = captured(case, form, &device, dtype);
    let p = case.problem;
    let shape = [p.batch, p.heads_q, p.len_q, p.len_kv];
    let of_query_heads = |x: &Tensor<4>| {
        let heads = Tensor::<1, Int>::arange(0..p.heads_q as i64, &device)
            / (p.heads_q / p.heads_kv) as i64;
        x.clone().select(1, heads)
    };
    let scale = case.scale.unwrap_or(1.0 / (p.dim_qk as f64).sqrt());
    let scores = query.clone().matmul(of_query_heads(&key).transpose()) * scale;
    let scores = (form.dense)(scores, captured.clone(), &Grid::new(case, &device, dtype));
    let scores = match case.softcap {
        Some(softcap) => (scores * (1.0 / softcap)).tanh() * softcap,
        None => scores,
    };
    let scores = match &case.bias {
        Some((shape, bias)) => {
            scores + Tensor::from_data(TensorData::new(bias.clone(), *shape), (&device, dtype))
        }
        None => scores,
    };
    let hidden: Vec<bool> = Case {
        sinks: None,
        ..case.clone()
    }
    .oracle()
    .weights
    .iter()
    .map(|&weight| weight == 0.0)
    .collect();
    let hidden = Tensor::<4, Bool>::from_data(TensorData::new(hidden, shape), &device);
    // As far as f64 can tell, a weight of a row that sees something is 0 exactly there.
    let scores = scores.mask_fill(hidden.clone(), f64::NEG_INFINITY);
    let sinks = case
        .sinks
        .clone()
        .unwrap_or(vec![f64::NEG_INFINITY; p.heads_q]);
    let sinks = Tensor::<4>::from_data(
        TensorData::new(sinks, [1, p.heads_q, 1, 1]),
        (&device, dtype),
    );
    let all = Tensor::cat(
        vec![scores, sinks.expand([p.batch, p.heads_q, p.len_q, 1])],
        3,
    );
    let nothing = all.clone().equal_elem(f64::NEG_INFINITY).all_dim(3);
    // Of a row without a term, weights of 0 and a logsumexp of −∞.
    let all = all.mask_fill(
        nothing
            .clone()
            .expand([p.batch, p.heads_q, p.len_q, p.len_kv + 1]),
        0.0,
    );
    let logsumexp = all.clone().exp().sum_dim(3).log();
    let logsumexp = logsumexp.mask_fill(nothing, f64::NEG_INFINITY);
    let weights = softmax(all, 3)
        .narrow(3, 0, p.len_kv)
        .mask_fill(hidden, 0.0);
    let output = weights.matmul(of_query_heads(&value));
    let leaves = [query, key, value].into_iter().chain(captured).collect();
    results(case, output, logsumexp.squeeze_dim(3), leaves)
}

fn agree(dtype: DType, tolerance: f64) {
    for case in cases() {
        for form in forms(&case) {
            let expected = written_out(&case, &form);
            for (body, device) in implementations(dtype) {
                let actual = by_operation(&case, &form, body, &device, dtype);
                assert_eq!(actual.len(), expected.len());
                for (index, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                    let off = difference_to_largest(actual, expected);
                    assert!(
                        off <= tolerance,
                        "result {index} of '{}' in '{}' by {body:?} on {device:?} is off by {off:e}",
                        form.name,
                        case.name
                    );
                }
            }
        }
    }
}

#[test]
fn functions_in_f64_are_their_formulas() {
    agree(DType::F64, 1e-13);
}

#[test]
fn functions_in_f32_are_their_formulas() {
    agree(DType::F32, TOLERANCE_OF_F32);
}
