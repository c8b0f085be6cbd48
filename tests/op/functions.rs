//! Score functions against the same formulas written out for all scores, differentiated by Burn.

use burn::tensor::{DType, Device, Int, Tensor, activation::softmax};
use burn_attn::{CausalAlignment, ScoreFunction};
use burn_attn_tests::{
    compare::{difference_to_largest, numbers_f64},
    devices,
    numbers::uniform_f64,
};

use crate::{
    body::Body,
    case::{Case, bools, tensor},
    function_forms::{Form, Grid, forms},
    oracle::{TOLERANCE_OF_F32, implementations},
};

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
        Case {
            causal: Some(CausalAlignment::BottomRight),
            ..Case::new("several tiles", [1, 2, 1, 137, 211, 8, 3])
        },
        Case::new("one query and many keys", [2, 4, 2, 1, 701, 8, 3]),
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
        tensor(&numbers, shape, device, dtype).require_grad()
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
    let (device, dtype) = (output.device(), output.dtype());
    let of_output = tensor(&case.output_gradient, output.dims(), &device, dtype);
    let dtype = logsumexp.dtype();
    let of_rows = tensor(&case.logsumexp_gradient, logsumexp.dims(), &device, dtype);
    let loss = (output.clone() * of_output).sum()
        + (logsumexp.clone() * of_rows).sum().cast(output.dtype());
    let gradients = loss.backward();
    let gradients = leaves.iter().map(|leaf| match leaf.grad(&gradients) {
        Some(gradient) => numbers_f64(&gradient),
        None => vec![0.0; leaf.shape().num_elements()],
    });
    let forward = [numbers_f64(&output), numbers_f64(&logsumexp)];
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
    let function = (form.scalar)(function);
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
        Some((shape, bias)) => scores + tensor(bias, *shape, &device, dtype),
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
    let hidden = bools(hidden, shape, &device);
    // As far as f64 can tell, a weight of a row that sees something is 0 exactly there.
    let scores = scores.mask_fill(hidden.clone(), f64::NEG_INFINITY);
    let sinks = case
        .sinks
        .clone()
        .unwrap_or(vec![f64::NEG_INFINITY; p.heads_q]);
    let sinks = tensor(&sinks, [1, p.heads_q, 1, 1], &device, dtype);
    let all = Tensor::cat(
        vec![scores, sinks.expand([p.batch, p.heads_q, p.len_q, 1])],
        3,
    );
    let nothing = all.clone().equal_elem(f64::NEG_INFINITY).all_dim(3);
    // A row without a term has weights of 0 and a logsumexp of −∞.
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

/// At most `tolerance`, or three times what the composed body is off, on the CPU or on the same device, whose sums are as long. Elsewhere than on the CPU
/// every implementation is the blockwise body.
fn agree(dtype: DType, tolerance: f64) {
    let cases = cases();
    for (at, case) in cases.iter().enumerate() {
        for (turn, form) in forms(case).iter().enumerate() {
            // On devices with samples every function is in one case, and every case has a function.
            let is_taken = (at + turn) % cases.len() == 0;
            let expected = written_out(case, form);
            let off = |body, device: &Device| -> Vec<f64> {
                let actual = by_operation(case, form, body, device, dtype);
                assert_eq!(actual.len(), expected.len());
                let pairs = actual.iter().zip(&expected);
                pairs.map(|(x, y)| difference_to_largest(x, y)).collect()
            };
            let larger =
                |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a.max(b)).collect();
            let composed = devices::cpu().into_iter();
            let composed = composed.map(|(_, device)| off(Body::Composed, &device));
            let of_cpu: Vec<f64> = composed.reduce(larger).expect("there is a CPU");
            for (body, device) in implementations(dtype) {
                let is_known = body != Body::Backend && !devices::is_cpu(&device);
                if is_known || devices::is_sampled(&device) && !is_taken {
                    continue;
                }
                let of_body = off(body, &device);
                let fits = |(off, composed): (&f64, &f64)| *off <= tolerance.max(3.0 * composed);
                let all_fit = of_body.iter().zip(&of_cpu).all(fits);
                let composed = match all_fit || devices::is_cpu(&device) {
                    true => of_cpu.clone(),
                    false => larger(of_cpu.clone(), off(Body::Composed, &device)),
                };
                for (index, pair) in of_body.iter().zip(&composed).enumerate() {
                    assert!(
                        fits(pair),
                        "result {index} of '{}' in '{}' by {body:?} on {device:?} is off by {:e}",
                        form.name,
                        case.name,
                        pair.0
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
