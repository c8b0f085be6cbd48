//! Properties that hold whatever the numbers are.

use burn::tensor::{Bool, DType, Device, Int, Tensor};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, BlockSize, CausalAlignment,
    ops::{self, attention},
};
use burn_attn_tests::{compare::difference, devices};

use crate::{case::Case, every_case::every_case};

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

/// How far two outputs are apart, at most.
fn apart(first: Tensor<4>, second: Tensor<4>) -> f64 {
    let [first, second] = [first, second].map(|x| x.into_data().iter::<f64>().collect::<Vec<_>>());
    difference(&first, &second)
}

#[test]
fn what_is_no_sink_has_no_gradient_whatever_arrives() {
    type Attention = fn([Tensor<4>; 3], AttentionOptions) -> (Tensor<4>, Tensor<3>);
    let bodies: [Attention; 2] = [
        |[q, k, v], options| ops::attention_with_logsumexp(q, k, v, options),
        |[q, k, v], options| ops::backend::blockwise_attention(q, k, v, options, Some(12)),
    ];
    for device in devices::all() {
        let device = device.autodiff();
        for body in bodies {
            let case = Case::usual("sinks");
            let operands = [
                case.query(&device, F32),
                case.key(&device, F32),
                case.value(&device, F32),
            ];
            let sinks = [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, 0.0, -1.0];
            let sinks = Tensor::<1>::from_floats(sinks, &device).require_grad();
            // The second batch item sees nothing: without a sink its logsumexp is −∞, and so is what arrives there.
            let lengths = Tensor::<1, Int>::from_data([11, 0], &device);
            let options = AttentionOptions::default()
                .mask(AttentionMask::key_lengths(lengths))
                .sinks(sinks.clone());
            let (_, logsumexp) = body(operands, options);
            let gradients = logsumexp.powi_scalar(2).sum().backward();
            let gradient = sinks.grad(&gradients).expect("the sinks are tracked");
            let gradient: Vec<f32> = gradient.into_data().iter().collect();
            assert_eq!(
                [gradient[0], gradient[2]],
                [0.0; 2],
                "{gradient:?} on {device:?}"
            );
            assert!(
                gradient.iter().all(|x| x.is_finite()),
                "{gradient:?} on {device:?}"
            );
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
        let plain = attention(
            query.clone(),
            key.clone(),
            value.clone(),
            AttentionOptions::default(),
        );
        let other = attention(
            query,
            permuted(key),
            permuted(value),
            AttentionOptions::default(),
        );
        assert!(apart(plain, other) < 1e-6);
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
        assert_eq!(plain.into_data().iter::<f32>().collect::<Vec<_>>(), [2.0]);
        // Nor does the largest bias bring a hidden key back.
        let bias = Tensor::<4>::from_data([[[[f32::INFINITY, 0.0, f32::NAN]]]], &device);
        let biased = attention(query, key, value, mask().bias(AttentionBias::dense(bias)));
        assert_eq!(biased.into_data().iter::<f32>().collect::<Vec<_>>(), [2.0]);
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
fn nothing_to_attend_to_or_from_is_no_accident() {
    for device in devices::all() {
        for sizes in [
            [0, 3, 3, 5, 7, 2, 2],
            [2, 3, 3, 0, 7, 2, 2],
            [2, 3, 3, 5, 0, 2, 2],
        ] {
            let case = Case::new("empty", sizes);
            let output = output(&case, &device);
            assert_eq!(output.dims(), [sizes[0], sizes[1], sizes[3], sizes[6]]);
            assert!(output.into_data().iter::<f32>().all(|x| x == 0.0));
        }
    }
}

#[test]
fn strided_inputs_give_what_contiguous_ones_give() {
    for device in devices::all() {
        let case = Case::new("strided", [2, 3, 3, 5, 7, 11, 11]);
        let [query, key, value] = case.operands(&device, F32);
        // The layout of a projection before the heads are split: [batch, len, heads, dim].
        let strided = |x: Tensor<4>| {
            let data = x.swap_dims(1, 2).into_data();
            Tensor::<4>::from_data(data, &device).swap_dims(1, 2)
        };
        let plain = attention(
            query.clone(),
            key.clone(),
            value.clone(),
            AttentionOptions::default(),
        );
        let other = attention(
            strided(query),
            strided(key),
            strided(value),
            AttentionOptions::default(),
        );
        assert!(apart(plain, other) < 1e-6);
    }
}
