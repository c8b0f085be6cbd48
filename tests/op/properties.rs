//! Properties that hold whatever the numbers are.

use burn::tensor::{Bool, DType, Device, Int, Tensor};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, BlockSize, CausalAlignment,
    ops::{attention, attention_weights},
};
use burn_attn_tests::{
    compare::{difference, numbers_f64},
    devices,
};

use crate::{body::Body, case::Case, every_case::every_case, option_tensors::gradient};

const F32: DType = DType::F32;

pub fn bits(tensor: Tensor<4>) -> Vec<u32> {
    tensor.into_data().iter::<f32>().map(f32::to_bits).collect()
}

pub fn output(case: &Case, device: &Device) -> Tensor<4> {
    output_with(case, device, case.options(device, F32))
}

/// The output of the case with other options.
pub fn output_with(case: &Case, device: &Device, options: AttentionOptions) -> Tensor<4> {
    let [query, key, value] = case.operands(device, F32);
    attention(query, key, value, options)
}

/// The keys that each query sees, in order.
pub fn seen(
    [len_q, len_kv]: [usize; 2],
    options: AttentionOptions,
    device: &Device,
) -> Vec<Vec<usize>> {
    let [query, key] = [len_q, len_kv].map(|len| Tensor::<4>::ones([1, 1, len, 3], (device, F32)));
    let weights = numbers_f64(&attention_weights(query, key, options));
    let rows = weights.chunks(len_kv);
    let rows = rows.map(|row| (0..len_kv).filter(|&key| row[key] > 0.0).collect());
    rows.collect()
}

/// How far two outputs are apart, at most.
fn apart(first: Tensor<4>, second: Tensor<4>) -> f64 {
    difference(&numbers_f64(&first), &numbers_f64(&second))
}

#[test]
fn what_is_no_sink_has_no_gradient_whatever_arrives() {
    for device in devices::all() {
        let device = device.autodiff();
        for body in [Body::Backend, Body::Blockwise(6)] {
            let operands = Case::usual("sinks").operands(&device, F32);
            let sinks = [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, 0.0, -1.0];
            let sinks = Tensor::<1>::from_floats(sinks, &device).require_grad();
            // The second batch item sees nothing: without a sink its logsumexp is −∞, and so is what arrives there.
            let lengths = Tensor::<1, Int>::from_data([11, 0], &device);
            let options = AttentionOptions::default()
                .mask(AttentionMask::key_lengths(lengths))
                .sinks(sinks.clone());
            let (_, logsumexp) = body.attend(operands, options);
            let gradient = gradient(&sinks, &logsumexp.powi_scalar(2).sum().backward());
            let what = format!("{gradient:?} by {body:?} on {device:?}");
            assert_eq!([gradient[0], gradient[2]], [0.0; 2], "{what}");
            assert!(gradient.iter().all(|x| x.is_finite()), "{what}");
        }
    }
}

#[test]
fn permuting_key_value_pairs_changes_nothing() {
    for device in devices::all() {
        let case = Case::usual("nothing masked");
        let order = Tensor::<1, Int>::from_data([3, 0, 10, 7, 1, 9, 4, 2, 8, 6, 5], &device);
        let permuted = |x: Tensor<4>| x.select(2, order.clone());
        let [query, key, value] = case.operands(&device, F32);
        let (key, value) = (permuted(key), permuted(value));
        let other = attention(query, key, value, AttentionOptions::default());
        assert!(apart(output(&case, &device), other) < 1e-6);
    }
}

#[test]
fn the_future_never_leaks() {
    for device in devices::all() {
        let case = Case {
            causal: Some(CausalAlignment::BottomRight),
            ..Case::new("causal", [2, 3, 3, 11, 11, 5, 7])
        };
        let before = output(&case, &device);
        let mut other = case.clone();
        for (index, (k, v)) in other
            .key
            .chunks_mut(5)
            .zip(other.value.chunks_mut(7))
            .enumerate()
        {
            if index % 11 >= 6 {
                k.fill(1e4);
                v.fill(-1e4);
            }
        }
        let after = output(&other, &device);
        let early = |x: Tensor<4>| bits(x.narrow(2, 0, 6));
        assert!(early(before.clone()) == early(after.clone()));
        assert!(bits(before) != bits(after));
    }
}

#[test]
fn nan_that_nobody_sees_reaches_no_output_and_no_gradient() {
    for device in devices::all() {
        let hides_the_tail = [
            Case {
                key_lengths: Some(vec![11, 6]),
                ..Case::usual("key lengths")
            },
            Case {
                segments: Some((
                    vec![0; 14],
                    [[0; 11], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]].concat(),
                )),
                ..Case::usual("segments")
            },
            Case {
                visible_blocks: Some((
                    [2, 1, 1, 2],
                    vec![true, true, true, false],
                    BlockSize::from(6),
                )),
                ..Case::usual("blocks")
            },
            Case {
                masked: Some(([2, 1, 1, 11], (0..22).map(|j| j >= 17).collect())),
                ..Case::usual("dense mask")
            },
        ];
        for clean in hides_the_tail {
            let mut dirty = clean.clone();
            let p = dirty.problem;
            for head in 5..10 {
                for key in 6..11 {
                    dirty.key[(head * p.len_kv + key) * p.dim_qk] = f64::NAN;
                    dirty.value[(head * p.len_kv + key) * p.dim_v] = f64::INFINITY;
                }
            }
            let (clean, dirty) = (clean.run(&device, F32), dirty.run(&device, F32));
            assert_eq!(clean.output, dirty.output);
            assert_eq!(clean.logsumexp, dirty.logsumexp);
            assert_eq!(clean.gradients, dirty.gradients);
            assert!(dirty.gradients.iter().flatten().all(|x| x.is_finite()));
        }
    }
}

#[test]
fn a_query_that_sees_nothing_gets_exact_zeros() {
    for device in devices::all() {
        let case = Case {
            key_lengths: Some(vec![0, 11]),
            ..Case::usual("a batch item without keys")
        };
        let results = case.run(&device, F32);
        let p = case.problem;
        let first_item = |numbers: &[f64]| numbers[..numbers.len() / p.batch].to_vec();
        assert!(first_item(&results.output).iter().all(|&x| x == 0.0));
        assert!(first_item(&results.weights).iter().all(|&x| x == 0.0));
        assert!(
            first_item(&results.logsumexp)
                .iter()
                .all(|&x| x == f64::NEG_INFINITY)
        );
        for gradient in &results.gradients {
            assert!(first_item(gradient).iter().all(|&x| x == 0.0));
        }
    }
}

#[test]
fn a_masked_key_never_wins() {
    for device in devices::all() {
        // Burn's own module masks with −1e4: there, these two hidden keys take all the weight.
        let query = Tensor::<4>::from_data([[[[1.0f32]]]], &device);
        let key = Tensor::<4>::from_data([[[[0.0f32], [-4e4], [0.0]]]], &device);
        let value = Tensor::<4>::from_data([[[[1.0f32], [2.0], [3.0]]]], &device);
        let mask = || {
            let masked = Tensor::<4, Bool>::from_data([[[[true, false, true]]]], &device);
            AttentionOptions::default()
                .mask(AttentionMask::masked(masked))
                .scale(1.0)
        };
        let plain = attention(query.clone(), key.clone(), value.clone(), mask());
        assert_eq!(numbers_f64(&plain), [2.0]);
        // Nor does the largest bias bring a hidden key back.
        let bias = Tensor::<4>::from_data([[[[f32::INFINITY, 0.0, f32::NAN]]]], &device);
        let biased = attention(query, key, value, mask().bias(AttentionBias::dense(bias)));
        assert_eq!(numbers_f64(&biased), [2.0]);
    }
}

#[test]
fn batch_items_do_not_see_each_other() {
    for device in devices::all() {
        for case in every_case()
            .into_iter()
            .filter(|case| case.problem.batch == 2)
        {
            let p = case.problem;
            let mut other = case.clone();
            for data in [&mut other.query, &mut other.key, &mut other.value] {
                let half = data.len() / 2;
                data[half..].iter_mut().for_each(|x| *x = 0.25 - *x);
            }
            let first = |case: &Case| bits(output(case, &device).narrow(0, 0, 1));
            assert_eq!(first(&case), first(&other), "{} {p:?}", case.name);
        }
    }
}

#[test]
fn strided_inputs_give_what_contiguous_ones_give() {
    for device in devices::all() {
        let case = Case::new("strided", [2, 3, 3, 5, 7, 11, 11]);
        // The layout of a projection before the heads are split: [batch, len, heads, dim].
        let strided = |x: Tensor<4>| {
            let data = x.swap_dims(1, 2).into_data();
            Tensor::<4>::from_data(data, &device).swap_dims(1, 2)
        };
        let [query, key, value] = case.operands(&device, F32).map(strided);
        let other = attention(query, key, value, AttentionOptions::default());
        assert!(apart(output(&case, &device), other) < 1e-6);
    }
}
