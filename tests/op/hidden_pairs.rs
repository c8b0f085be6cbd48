//! Functions that have no number, or no finite derivative, where a pair is hidden.

use burn::tensor::{DType, Device, FloatDType, Tensor};
use burn_attn::{
    AttentionMask, AttentionOptions, Captured, CausalAlignment, Number, Pair, Pairs, ScoreForm,
    ScoreFunction,
};
use burn_attn_tests::{compare::assert_near, devices, numbers::uniform_f64};

use crate::{
    body::Body,
    case::{Case, tensor},
    function_forms::Blocks,
    functions::{Results, results},
    mask_functions::SIZES,
    oracle::implementations,
};

/// What a function has captured: a factor for each head, numbers of keys, of pairs and of distances, and one as a whole.
type Leaves = [Tensor<4>; 5];

/// With `poison` where all pairs are hidden by a causal mask of this alignment.
fn leaves(case: &Case, alignment: CausalAlignment, poison: f64, device: &Device) -> Leaves {
    let p = case.problem;
    let (heads, len_q, len_kv) = (p.heads_q, p.len_q, p.len_kv);
    let first = alignment.offset(len_q, len_kv) as usize;
    let leaf = |seed, shape: [usize; 4], is_hidden: &dyn Fn(usize) -> bool| {
        let numbers = uniform_f64(seed, shape.iter().product()).into_iter();
        let numbers = numbers.enumerate().map(|(at, x)| match is_hidden(at) {
            true => poison,
            false => x + 2.0,
        });
        tensor(&numbers.collect::<Vec<_>>(), shape, device, DType::F64).require_grad()
    };
    let distances = len_q + len_kv - 1;
    let zero = len_kv - 1 - first;
    [
        leaf(40, [1, heads, 1, 1], &|_| false),
        leaf(41, [1, 1, 1, len_kv], &|key| key >= first + len_q),
        leaf(42, [1, 1, len_q, len_kv], &|at| {
            at % len_kv > first + at / len_kv
        }),
        leaf(43, [1, heads, 1, distances], &|at| at % distances < zero),
        leaf(44, [1; 4], &|_| false),
    ]
}

fn capture(
    function: ScoreFunction,
    [factors, of_keys, of_pairs, distances, whole]: Leaves,
) -> ScoreFunction {
    function
        .capture(Captured::per_head(factors.reshape([-1])))
        .capture(Captured::per_key(of_keys.squeeze_dims(&[0, 1])))
        .capture(Captured::per_pair(of_pairs))
        .capture(Captured::by_distance(distances.squeeze_dims(&[0, 2])))
        .capture(Captured::whole(whole))
}

fn log_of_distance(pairs: &Pairs, dtype: FloatDType) -> Tensor<4> {
    (pairs.distances() + 1).cast(dtype).log()
}

const FUNCTIONS: [(&str, Blocks); 6] = [
    ("divided by a number of the key", |scores, pairs| {
        let [factor, of_key, ..] = pairs.floats::<5>();
        scores / of_key * factor
    }),
    ("divided by a number of the pair", |scores, pairs| {
        let [factor, _, of_pair, ..] = pairs.floats::<5>();
        scores * factor / of_pair
    }),
    ("divided by a number by distance", |scores, pairs| {
        let [factor, _, _, of_distance, _] = pairs.floats();
        scores * factor / of_distance
    }),
    (
        "divided by numbers of pairs, times one for all",
        |scores, pairs| {
            let [_, of_key, of_pair, of_distance, whole] = pairs.floats();
            scores / (of_key * of_pair * of_distance) * whole
        },
    ),
    ("a logarithm of the distance", |scores, pairs| {
        let [factor, ..] = pairs.floats::<5>();
        let dtype = scores.dtype().into();
        scores - log_of_distance(pairs, dtype) * factor
    }),
    ("a logarithm of the score", |scores, pairs| {
        let [factor, ..] = pairs.floats::<5>();
        scores.clone() + scores.abs().log() * factor
    }),
];

/// Each query alone, with the keys that it sees: nothing is hidden.
fn alone(case: &Case, alignment: CausalAlignment, blocks: Blocks) -> Results {
    let device = devices::any().autodiff();
    let [query, key, value] = case.operands(&device, DType::F64).map(Tensor::require_grad);
    let leaves = leaves(case, alignment, f64::NAN, &device);
    let p = case.problem;
    let first = alignment.offset(p.len_q, p.len_kv) as usize;
    let zero = p.len_kv - 1 - first;
    let rows = (0..p.len_q).map(|row| {
        let count = first + row + 1;
        let [factors, of_keys, of_pairs, distances, whole] = leaves.clone();
        let seen = [
            factors,
            of_keys.narrow(3, 0, count),
            of_pairs.narrow(2, row, 1).narrow(3, 0, count),
            distances.narrow(3, zero, count),
            whole,
        ];
        let function = capture(ScoreFunction::new("alone", blocks), seen);
        let query = query.clone().narrow(2, row, 1);
        let [key, value] = [&key, &value].map(|x| x.clone().narrow(2, 0, count));
        let options = AttentionOptions::default().score_function(function);
        Body::Composed.attend([query, key, value], options)
    });
    let (outputs, logsumexps) = rows.unzip::<_, _, Vec<_>, Vec<_>>();
    let (output, logsumexp) = (Tensor::cat(outputs, 2), Tensor::cat(logsumexps, 2));
    let leaves = [query, key, value].into_iter().chain(leaves).collect();
    results(case, output, logsumexp, leaves)
}

/// What a function makes of hidden pairs is left out of results and gradients, NaN and infinite derivatives included.
#[test]
fn hidden_pairs_reach_no_gradient() {
    let case = Case::new("hidden pairs", [1, 6, 3, 7, 11, 5, 13]);
    for alignment in [CausalAlignment::BottomRight, CausalAlignment::TopLeft] {
        for (name, blocks) in FUNCTIONS {
            let expected = alone(&case, alignment, blocks);
            for poison in [f64::NAN, 0.0, f64::INFINITY] {
                for (body, device) in implementations(DType::F64) {
                    let device = device.autodiff();
                    let operands = case.operands(&device, DType::F64).map(Tensor::require_grad);
                    let leaves = leaves(&case, alignment, poison, &device);
                    let function = capture(ScoreFunction::new(name, blocks), leaves.clone());
                    let options = AttentionOptions::default()
                        .mask(AttentionMask::causal_aligned(alignment))
                        .score_function(function);
                    let (output, logsumexp) = body.attend(operands.clone(), options);
                    let leaves = operands.into_iter().chain(leaves).collect();
                    let actual = results(&case, output, logsumexp, leaves);
                    for (index, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                        let what = format!(
                            "result {index} of '{name}' with {poison} in {alignment:?} by {body:?} on {device:?}"
                        );
                        assert_near(&what, actual, expected, 1e-13);
                    }
                }
            }
        }
    }
}

struct LogOfDistance;

impl ScoreForm<1> for LogOfDistance {
    fn score<R: Number>(&self, score: R, pair: Pair, [factor]: [R; 1]) -> R {
        score - R::from_i32(pair.distance() + 1).ln() * factor
    }

    fn derivatives<R: Number>(&self, _: R, pair: Pair, _: [R; 1]) -> (R, [R; 1]) {
        let one = R::constant(1.0);
        (one, [-R::from_i32(pair.distance() + 1).ln()])
    }
}

/// The kernels do as the tensor operations do.
#[test]
fn hidden_pairs_reach_no_gradient_of_scalar_forms() {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        key_lengths: Some(vec![11, 8]),
        ..Case::new("hidden pairs", SIZES)
    };
    for (_, device) in devices::cpu() {
        let run = |body: Body| {
            let device = device.clone().autodiff();
            let operands = case.operands(&device, DType::F64).map(Tensor::require_grad);
            let factors = tensor(&uniform_f64(40, 6), [1, 6, 1, 1], &device, DType::F64);
            let factors = factors.require_grad();
            let function = ScoreFunction::new("a logarithm of the distance", |scores, pairs| {
                let [factor] = pairs.floats();
                let dtype = scores.dtype().into();
                scores - log_of_distance(pairs, dtype) * factor
            });
            let function = function
                .capture(Captured::per_head(factors.clone().reshape([-1])))
                .scalar(LogOfDistance);
            let options = case.options(&device, DType::F64).score_function(function);
            let (output, logsumexp) = body.attend(operands.clone(), options);
            let leaves = operands.into_iter().chain([factors]);
            results(&case, output, logsumexp, leaves.collect())
        };
        let expected = run(Body::Composed);
        for body in [Body::Backend, Body::Blockwise(7)] {
            for (actual, expected) in run(body).iter().zip(&expected) {
                assert_near(&format!("{body:?} on {device:?}"), actual, expected, 1e-13);
            }
        }
    }
}
