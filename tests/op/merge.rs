//! Attention over parts of the keys, merged, is attention over all of them.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::{
    AttentionMask, AttentionOptions, CausalAlignment,
    ops::{attention_with_logsumexp, merge_partial},
};
use burn_attn_tests::{
    compare::{assert_near, difference, numbers_f64},
    devices,
    numbers::uniform_f64,
    sentence,
};
use proptest::prelude::*;

use crate::{
    case::{Case, bools, tensor},
    option_tensors::gradient,
};

type Part = (Tensor<4>, Tensor<3>);

/// Output, logsumexp, and the gradients of query, key, value and sinks.
type Results = [Vec<f64>; 6];

/// The options of one part: what the mask of the whole says of its keys, and the sinks if it is the first.
fn options(
    case: &Case,
    first: usize,
    count: usize,
    sinks: Option<Tensor<1>>,
    device: &Device,
) -> AttentionOptions {
    let p = case.problem;
    let whole = case.oracle().weights;
    let masked: Vec<bool> = (0..p.query_rows())
        .flat_map(|row| {
            whole[row * p.len_kv + first..][..count]
                .iter()
                .map(|&w| w == 0.0)
        })
        .collect();
    let shape = [p.batch, p.heads_q, p.len_q, count];
    let masked = AttentionMask::masked(bools(masked, shape, device));
    let mut options = AttentionOptions::default().mask(masked);
    options.sinks = sinks;
    options.softcap = case.softcap;
    options
}

/// Attention over parts that end at `cuts`, merged, with the gradients of a loss over both results.
///
/// Parts without a key are left out on a GPU: in Burn 0.22.1 empty tensors spoil the memory of others there.
fn merged(case: &Case, cuts: &[usize], device: &Device, dtype: DType) -> Results {
    let mut cuts = cuts.to_vec();
    if !devices::is_cpu(device) {
        cuts.retain(|&cut| cut > 0);
        cuts.dedup();
    }
    let device = &device.clone().autodiff();
    let [query, key, value] = case.operands(device, dtype).map(Tensor::require_grad);
    let sinks = case.sinks.as_ref().expect("the case has sinks");
    let sinks = tensor(sinks, [sinks.len()], device, dtype).require_grad();
    let mut first = 0;
    let parts: Vec<Part> = cuts
        .iter()
        .enumerate()
        .map(|(index, &end)| {
            let sinks = (index == 0).then(|| sinks.clone());
            let count = end - first;
            let options = options(case, first, count, sinks, device);
            let of_part = |x: &Tensor<4>| {
                if count > 0 {
                    x.clone().narrow(2, first, count)
                } else {
                    let [batch, heads, _, dim] = x.dims();
                    Tensor::zeros([batch, heads, 0, dim], (device, dtype))
                }
            };
            let part =
                attention_with_logsumexp(query.clone(), of_part(&key), of_part(&value), options);
            first = end;
            part
        })
        .collect();
    let (output, logsumexp) = merge_partial(&parts);
    let loss = loss(&output, &logsumexp);
    let gradients = loss.backward();
    [
        numbers_f64(&output),
        numbers_f64(&logsumexp),
        gradient(&query, &gradients),
        gradient(&key, &gradients),
        gradient(&value, &gradients),
        gradient(&sinks, &gradients),
    ]
}

/// A loss that uses every number of both results with another weight, and the logsumexp of no row that sees nothing.
fn loss(output: &Tensor<4>, logsumexp: &Tensor<3>) -> Tensor<1> {
    fn weights<const D: usize>(seed: u64, of: &Tensor<D>) -> Tensor<D> {
        let numbers = uniform_f64(seed, of.shape().num_elements());
        tensor(&numbers, of.dims(), &of.device(), of.dtype())
    }
    let (of_output, of_logsumexp) = (weights(7, output), weights(8, logsumexp));
    let finite = logsumexp.clone().mask_fill(logsumexp.clone().is_inf(), 0.0);
    (output.clone() * of_output).sum() + (finite * of_logsumexp).sum()
}

fn assert_close(expected: &Results, actual: &Results, tolerance: f64, what: &str) {
    for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        let what = format!("{what}: result {index}");
        assert_near(&what, actual, expected, tolerance);
    }
}

/// Grouped heads, a causal mask, and a batch item in which the first rows see nothing; sinks where `sinks` says so.
fn case(sizes: [usize; 7], sinks: bool) -> Case {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        softcap: Some(3.0),
        ..Case::new("split", sizes)
    }
    .with_sinks();
    if sinks {
        return case;
    }
    Case {
        sinks: case.sinks.map(|sinks| vec![f64::NEG_INFINITY; sinks.len()]),
        ..case
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the cuts, empty parts included: output, logsumexp and all gradients.
    #[test]
    fn any_split_is_the_whole(
        sizes in (1usize..3, 1usize..3, 1usize..3, 1usize..9, 1usize..13),
        cuts in prop::collection::vec(0usize..13, 0..4),
        sinks in prop::bool::ANY,
    ) {
        let (batch, heads_kv, group, len_q, len_kv) = sizes;
        let case = case([batch, heads_kv * group, heads_kv, len_q, len_kv, 3, 2], sinks);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(len_kv)).collect();
        cuts.push(len_kv);
        cuts.sort_unstable();
        for (dtype, tolerance) in [(DType::F32, 2e-6), (DType::F64, 1e-13)] {
            for device in devices::with(dtype) {
                let whole = merged(&case, &[len_kv], &device, dtype);
                let split = merged(&case, &cuts, &device, dtype);
                assert_close(&whole, &split, tolerance, &format!("{cuts:?} on {device:?}"));
                prop_assert!(split.iter().flatten().all(|x| !x.is_nan()));
            }
        }
    }
}

#[test]
fn rows_that_no_part_shows_anything_are_zero_and_have_no_gradient() {
    for device in devices::all() {
        // The first 6 of 11 queries see none of the 5 keys.
        let case = case([2, 6, 2, 11, 5, 3, 7], false);
        let [output, logsumexp, query, key, value, _] =
            merged(&case, &[2, 2, 5], &device, DType::F32);
        for row in 0..case.problem.query_rows() {
            let hidden = row % 11 < 6;
            assert_eq!(logsumexp[row] == f64::NEG_INFINITY, hidden);
            let zero =
                |data: &[f64], dim: usize| data[row * dim..][..dim].iter().all(|&x| x == 0.0);
            assert_eq!(zero(&output, 7), hidden);
            if hidden {
                assert!(zero(&query, 3));
            }
        }
        assert!([key, value].iter().flatten().all(|x| x.is_finite()));
    }
}

#[test]
fn a_part_that_saw_nothing_gives_nothing_whatever_its_output() {
    for device in devices::all() {
        let device = device.autodiff();
        let value =
            |numbers: [f32; 2]| Tensor::<4>::from_data([[[numbers]]], &device).require_grad();
        let row = |x: f32| Tensor::<3>::from_data([[[x]]], &device).require_grad();
        let (seen, unseen) = (value([1.5, -2.0]), value([f32::NAN, f32::INFINITY]));
        let (one, none) = (row(0.25), row(f32::NEG_INFINITY));
        let (output, logsumexp) =
            merge_partial(&[(unseen.clone(), none.clone()), (seen.clone(), one.clone())]);
        assert_eq!(numbers_f64(&output), [1.5, -2.0]);
        assert_eq!(numbers_f64(&logsumexp), [0.25]);
        let gradients = (output.sum() + logsumexp.sum()).backward();
        assert_eq!(gradient(&unseen, &gradients), [0.0, 0.0]);
        assert_eq!(gradient(&none, &gradients), [0.0]);
        assert_eq!(gradient(&seen, &gradients), [1.0, 1.0]);
        assert_eq!(gradient(&one, &gradients), [1.0]);
    }
}

#[test]
fn one_part_is_merged_as_several_are() {
    for device in devices::all() {
        let output = Tensor::<4>::from_data([[[[f32::NAN], [3.0]]]], &device);
        let logsumexp = Tensor::<3>::from_data([[[f32::NEG_INFINITY, 0.5]]], &device);
        let (output, logsumexp) = merge_partial(&[(output, logsumexp)]);
        assert_eq!(numbers_f64(&output), [0.0, 3.0]);
        assert_eq!(numbers_f64(&logsumexp), [f64::NEG_INFINITY, 0.5]);
    }
}

#[test]
fn logsumexps_far_apart_neither_overflow_nor_vanish() {
    for device in devices::all() {
        let part = |x: f32, logsumexp: f32| {
            (
                Tensor::<4>::from_data([[[[x]]]], &device),
                Tensor::<3>::from_data([[[logsumexp]]], &device),
            )
        };
        let (output, logsumexp) = merge_partial(&[part(1.0, 1e4), part(3.0, 1e4), part(7.0, -1e4)]);
        assert_eq!(output.into_scalar::<f32>(), 2.0);
        assert_eq!(
            logsumexp.into_scalar::<f32>(),
            1e4 + core::f32::consts::LN_2
        );
    }
}

#[test]
fn nothing_is_merged_without_an_accident() {
    for device in devices::all() {
        let part = || {
            (
                Tensor::<4>::zeros([2, 3, 0, 5], &device),
                Tensor::<3>::zeros([2, 3, 0], &device),
            )
        };
        let (output, logsumexp) = merge_partial(&[part(), part()]);
        assert_eq!((output.dims(), logsumexp.dims()), ([2, 3, 0, 5], [2, 3, 0]));
    }
}

#[test]
fn parts_that_do_not_fit() {
    let device = &devices::any();
    let part = |output: [usize; 4], logsumexp: [usize; 3]| -> Part {
        (
            Tensor::zeros(output, device),
            Tensor::zeros(logsumexp, device),
        )
    };
    let message = |parts: &[Part]| sentence(|| merge_partial(parts));
    assert_eq!(message(&[]), "merge_partial: there are no parts to merge");
    let (output, logsumexp) = part([2, 3, 5, 7], [2, 3, 5]);
    let half = (output, logsumexp.cast(DType::F16));
    assert_eq!(
        message(&[half.clone(), half]),
        "merge_partial: the logsumexps must be f32 or wider, but are F16"
    );
    let good = || part([2, 3, 5, 7], [2, 3, 5]);
    assert_eq!(
        message(&[good(), part([2, 3, 4, 7], [2, 3, 4])]),
        "merge_partial: part 0 has an output [2, 3, 5, 7] but part 1 has [2, 3, 4, 7]"
    );
    assert_eq!(
        message(&[good(), part([2, 3, 5, 7], [2, 5, 3])]),
        "merge_partial: the output [2, 3, 5, 7] and the logsumexp [2, 5, 3] of part 1 must have the same batch, heads and length"
    );
    let (output, logsumexp) = good();
    assert_eq!(
        message(&[good(), (output, logsumexp.cast(DType::F64))]),
        "merge_partial: part 0 is [F32, F32] (output, logsumexp) but part 1 is [F32, F64]"
    );
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn parts_on_two_devices() {
    let [first, second] = devices::two();
    let part = |of_rows: &Device| -> Part {
        let output = Tensor::zeros([2, 3, 5, 7], &first);
        (output, Tensor::zeros([2, 3, 5], of_rows))
    };
    assert_eq!(
        sentence(|| merge_partial(&[part(&first), part(&second)])),
        format!("merge_partial: part 0 has an output on {first:?} but part 1 is on {second:?}")
    );
}

#[cfg(feature = "flex")]
#[test]
fn half_precision_is_merged_in_f32() {
    let device = Device::flex();
    let case = case([2, 6, 2, 7, 11, 3, 5], true);
    let whole = merged(&case, &[11], &device, DType::F32);
    let part = |first, count, sinks| {
        let options = options(&case, first, count, sinks, &device);
        let [query, key, value] = case.operands(&device, DType::F16);
        let [key, value] = [key, value].map(|x| x.narrow(2, first, count));
        attention_with_logsumexp(query, key, value, options)
    };
    let sinks = Tensor::from_data(case.sinks.clone().unwrap().as_slice(), &device);
    let (output, logsumexp) = merge_partial(&[part(0, 4, Some(sinks)), part(4, 7, None)]);
    assert_eq!(
        (output.dtype(), logsumexp.dtype()),
        (DType::F16, DType::F32)
    );
    assert!(difference(&numbers_f64(&output), &whole[0]) < 4e-3);
}
