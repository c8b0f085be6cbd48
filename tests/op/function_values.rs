//! Score and mask functions against files made with FlexAttention, and with NaN in padding.

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, AttentionOptions, Captured, CausalAlignment, MaskFunction, ScoreFunction,
};
use burn_attn_tests::{
    compare::{assert_near, numbers_f64},
    devices,
    golden::GoldenFile,
    numbers::uniform,
};

use crate::{
    body::Body,
    case::{Case, bools, tensor},
    functions::results,
    golden,
    mask_functions::SIZES,
    option_tensors::gradient,
    oracle::{TOLERANCE_OF_F32, assert_is_of_oracle, implementations},
    scalar_forms::OfKeys,
};

/// The functions of a file, of leaves that are in the file under these names.
type Functions = fn(AttentionOptions, &[Tensor<4>], &GoldenFile) -> AttentionOptions;

fn bias(options: AttentionOptions, leaves: &[Tensor<4>], _: &GoldenFile) -> AttentionOptions {
    // ANCHOR: bias-before-softcap
    let bias = Captured::per_pair(leaves[0].clone());
    let biased = ScoreFunction::new("bias", |scores, pairs| {
        scores + pairs.floats::<1>()[0].clone()
    });
    options.score_function(biased.capture(bias)).softcap(1.5)
    // ANCHOR_END: bias-before-softcap
}

fn documents(
    options: AttentionOptions,
    leaves: &[Tensor<4>],
    file: &GoldenFile,
) -> AttentionOptions {
    let [factors, slopes] = [0, 1].map(|at| Captured::per_head(leaves[at].clone().reshape([-1])));
    let score = ScoreFunction::new("penalty", |scores, pairs| {
        let [factors, slopes] = pairs.floats();
        let dtype: FloatDType = scores.dtype().into();
        scores * factors - pairs.distances().abs().cast(dtype) * slopes
    });
    let documents = Tensor::<2, Int>::from_data(file.data("documents"), &leaves[0].device());
    let mask = MaskFunction::new("causal documents", |pairs| {
        let [of_query, of_key] = pairs.ints();
        let same = (of_query - of_key).equal_elem(0);
        same.bool_and(pairs.distances().greater_equal_elem(0))
    })
    .capture(Captured::per_query(documents.clone()))
    .capture(Captured::per_key(documents));
    options
        .score_function(score.capture(factors).capture(slopes))
        .mask(AttentionMask::function(mask))
}

#[test]
fn functions_compute_what_flex_attention_computes() {
    let files: [(&str, &[&str], Functions); 2] = [
        ("function_bias_before_softcap", &["captured.bias"], bias),
        (
            "function_documents",
            &["captured.factors", "captured.slopes"],
            documents,
        ),
    ];
    for (name, captured, functions) in files {
        let file = golden::open(name);
        let case = golden::case(name, &file);
        for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, TOLERANCE_OF_F32)] {
            for (body, device) in implementations(dtype) {
                let device = device.autodiff();
                let [query, key, value] = case.operands(&device, dtype).map(Tensor::require_grad);
                let leaves = captured.iter().map(|name| {
                    let data = file.data(name);
                    let mut shape = [1; 4];
                    match data.shape().len() {
                        1 => shape[1] = data.shape()[0],
                        _ => shape = data.shape().dims(),
                    }
                    let numbers: Vec<f64> = data.iter().collect();
                    tensor(&numbers, shape, &device, dtype).require_grad()
                });
                let leaves: Vec<_> = leaves.collect();
                let mut options = AttentionOptions::default();
                options.softcap = case.softcap;
                let options = functions(options, &leaves, &file);
                let operands = [query, key, value];
                let (output, logsumexp) = body.attend(operands.clone(), options);
                let leaves = operands.into_iter().chain(leaves).collect();
                let actual = results(&case, output, logsumexp, leaves);
                let names = [
                    "output",
                    "logsumexp",
                    "grad.query",
                    "grad.key",
                    "grad.value",
                ];
                let names = names.map(str::to_owned).into_iter();
                let names = names.chain(captured.iter().map(|name| format!("grad.{name}")));
                for (of, actual) in names.zip(actual) {
                    let expected: Vec<f64> = golden::read(&file, &of);
                    let what = format!("{of} of '{name}' by {body:?} on {device:?} in {dtype:?}");
                    assert_near(&what, &actual, &expected, tolerance);
                }
            }
        }
    }
}

/// Integers of every kind: what a score function makes of them is a bias.
#[test]
fn score_functions_read_integers() {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new("integers", SIZES)
    };
    let of_pair = |batch_item: usize, head: usize, query: usize, key: usize| -> i64 {
        [5, -3, 1][(head * 2 + query * key) % 3] + (query * 3 + batch_item) as i64
            - (key * key % 7) as i64
            + (query * 11 + key) as i64
    };
    let shape = [2, 6, 7, 11];
    let bias = (0..shape.iter().product()).map(|at: usize| {
        let (row, key) = (at / 11, at % 11);
        let (head, query) = (row / 7, row % 7);
        of_pair(head / 6, head % 6, query, key) as f64 * 0.1
    });
    let expected = Case {
        bias: Some((shape, bias.collect())),
        ..case.clone()
    };
    for (body, device) in implementations(DType::F64) {
        let add = |options: AttentionOptions, device: &Device| {
            let ints = |numbers: Vec<i64>| Tensor::<1, Int>::from_data(&numbers[..], device);
            let of_heads = ints((0..6).map(|head| head * 2).collect());
            let of_queries = (0..14).map(|at| at % 7 * 3 + at / 7).collect();
            let of_keys = (0..11).map(|key| key * key % 7).collect();
            let of_pairs = ints((0..77).collect());
            let function = ScoreFunction::new("integers", |scores, pairs| {
                let [of_head, of_query, of_key, of_pair, table] = pairs.ints();
                let row = of_head + pairs.queries() * pairs.keys();
                let [batch, heads, queries, keys] = pairs.sizes();
                let row = row.remainder_scalar(3).reshape([1, 1, 1, -1]);
                let entries = table.gather(3, row).reshape([1, heads, queries, keys]);
                let entries = entries.expand([batch, heads, queries, keys]);
                let number = entries + of_query - of_key + of_pair;
                let dtype: FloatDType = scores.dtype().into();
                scores + number.cast(dtype) * 0.1
            })
            .capture(Captured::per_head(of_heads))
            .capture(Captured::per_query(ints(of_queries).reshape([2, 7])))
            .capture(Captured::per_key(ints(of_keys).reshape([1, 11])))
            .capture(Captured::per_pair(of_pairs.reshape([1, 1, 7, 11])))
            .capture(Captured::whole(ints(vec![5, -3, 1])));
            options.score_function(function)
        };
        let actual = case.run_with(body, &device, [DType::F64; 2], add);
        let mut expected = expected.oracle();
        // The bias of the oracle.
        expected.option_gradients.clear();
        let what = format!("by {body:?} on {device:?}");
        assert_is_of_oracle(expected, actual, 1e-13, &what);
    }
}

/// Padding may hold anything: in keys, values, and what a function has captured of them.
#[test]
fn nan_in_padding_stays_there() {
    let case = Case {
        key_lengths: Some(vec![9, 4]),
        ..Case::new("padding", [2, 6, 3, 7, 11, 5, 13])
    };
    let run = |(body, is_scalar): (Body, bool), device: &Device, poison: f32| {
        let device = device.clone().autodiff();
        let [query, key, value] = case.operands(&device, DType::F32);
        let is_padding = |at: usize| at % 11 >= [9, 4][at / 11];
        let poisoned = |x: Tensor<4>| {
            let padding = bools(
                (0..2 * 11).map(is_padding).collect(),
                [2, 1, 11, 1],
                &device,
            );
            let dims = x.dims();
            x.mask_fill(padding.expand(dims), poison).require_grad()
        };
        let [key, value] = [key, value].map(poisoned);
        let query = query.require_grad();
        let of_keys = uniform(30, 2 * 11).into_iter().enumerate();
        let of_keys = of_keys.map(|(at, x)| if is_padding(at) { poison } else { x });
        let of_keys = TensorData::new(of_keys.collect::<Vec<_>>(), [2, 11]);
        let of_keys = Tensor::<2>::from_data(of_keys, &device).require_grad();
        let factors =
            Tensor::<1>::from_data([0.5, 0.4, 0.3, 0.2, 0.1, 0.6], &device).require_grad();
        let function = ScoreFunction::new("poisoned", |scores, pairs| {
            let [of_keys, factors] = pairs.floats();
            scores * of_keys.clone() + of_keys * factors
        })
        .capture(Captured::per_key(of_keys.clone()))
        .capture(Captured::per_head(factors.clone()));
        let function = match is_scalar {
            true => function.scalar(OfKeys),
            false => function,
        };
        let options = case.options(&device, DType::F32).score_function(function);
        let operands = [query.clone(), key.clone(), value.clone()];
        let (output, _) = body.attend(operands, options);
        let gradients = output.clone().powi_scalar(2).sum().backward();
        let mut all = numbers_f64(&output);
        all.extend(
            [query, key, value]
                .iter()
                .flat_map(|x| gradient(x, &gradients)),
        );
        all.extend(gradient(&of_keys, &gradients));
        all.extend(gradient(&factors, &gradients));
        all.into_iter().map(f64::to_bits).collect::<Vec<_>>()
    };
    for (_, device) in devices::cpu() {
        for body in [
            (Body::Backend, true),
            (Body::Backend, false),
            (Body::Blockwise(1), false),
            (Body::Blockwise(7), false),
        ] {
            let clean = run(body, &device, 0.0);
            assert!(clean.iter().all(|&bits| f64::from_bits(bits).is_finite()));
            for poison in [f32::NAN, f32::INFINITY] {
                assert!(
                    run(body, &device, poison) == clean,
                    "{body:?} on {device:?}"
                );
            }
        }
    }
}
