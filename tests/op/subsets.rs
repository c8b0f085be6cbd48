//! Whichever inputs have a gradient, it is what it is when all have one.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_attn::{
    CausalAlignment,
    ops::{attention_with_logsumexp, backend::blockwise_attention},
};
use burn_attn_tests::{compare::difference_to_largest, devices};

use crate::{case::Case, option_tensors::OptionTensors};

const F32: DType = DType::F32;

/// The gradients of the inputs that `tracked` names, by the names of the oracle's.
fn gradients(case: &Case, tracked: [bool; 6], device: &Device, blockwise: bool) -> Vec<Vec<f64>> {
    fn leaf<const D: usize>(tensor: Tensor<D>, tracked: bool) -> Tensor<D> {
        match tracked {
            true => tensor.require_grad(),
            false => tensor,
        }
    }
    let query = leaf(case.query(device, F32), tracked[0]);
    let key = leaf(case.key(device, F32), tracked[1]);
    let value = leaf(case.value(device, F32), tracked[2]);
    let tensors = case.option_tensors(device, F32);
    let tensors = OptionTensors {
        bias: tensors.bias.map(|bias| leaf(bias, tracked[3])),
        alibi: tensors.alibi.map(|slopes| leaf(slopes, tracked[4])),
        sinks: tensors.sinks.map(|sinks| leaf(sinks, tracked[5])),
        ..tensors
    };
    let options = case.options_of(device, &tensors);
    let (q, k, v) = (query.clone(), key.clone(), value.clone());
    let (output, logsumexp) = match blockwise {
        true => blockwise_attention(q, k, v, options, Some(12)),
        false => attention_with_logsumexp(q, k, v, options),
    };
    let weights = |data: &[f64]| TensorData::new(data.to_vec(), [data.len()]).convert_dtype(F32);
    let of_output = Tensor::<1>::from_data(weights(&case.output_gradient), device);
    let of_logsumexp = Tensor::<1>::from_data(weights(&case.logsumexp_gradient), device);
    let loss = (output.flatten::<1>(0, 3) * of_output).sum()
        + (logsumexp.flatten::<1>(0, 2) * of_logsumexp).sum();
    let gradients = loss.backward();
    let numbers = |data: Option<TensorData>| -> Vec<f64> {
        data.map_or(Vec::new(), |data| data.iter().collect())
    };
    let of_four = |x: &Tensor<4>| numbers(x.grad(&gradients).map(Tensor::into_data));
    let of_heads = |x: &Tensor<1>| numbers(x.grad(&gradients).map(Tensor::into_data));
    vec![
        of_four(&query),
        of_four(&key),
        of_four(&value),
        of_four(&tensors.bias.unwrap()),
        of_heads(&tensors.alibi.unwrap()),
        of_heads(&tensors.sinks.unwrap()),
    ]
}

#[test]
fn every_subset_of_the_inputs_gets_its_gradients() {
    let case = Case {
        causal: Some(CausalAlignment::BottomRight),
        ..Case::new("subset", [2, 6, 3, 7, 11, 3, 5])
    };
    let case = case.with_bias([1, 6, 7, 11]).with_alibi().with_sinks();
    let oracle = case.oracle();
    let mut expected = oracle.gradients.to_vec();
    for name in ["bias gradient", "slopes gradient", "sinks gradient"] {
        let mut options = oracle.option_gradients.iter();
        expected.push(options.find(|(n, _)| *n == name).unwrap().1.clone());
    }
    for device in devices::all() {
        let bodies = match devices::is_sampled(&device) {
            true => &[false][..],
            false => &[false, true],
        };
        let device = device.autodiff();
        for subset in 1..1_usize << expected.len() {
            for &blockwise in bodies {
                let tracked = std::array::from_fn(|input| subset >> input & 1 == 1);
                let actual = gradients(&case, tracked, &device, blockwise);
                let what = format!("{subset:06b} on {device:?}, blockwise {blockwise}");
                for ((expected, actual), tracked) in expected.iter().zip(&actual).zip(tracked) {
                    if !tracked {
                        assert!(actual.is_empty(), "{what}");
                        continue;
                    }
                    let error = difference_to_largest(actual, expected);
                    let tolerance = 16.0 * f64::from(f32::EPSILON);
                    assert!(
                        error <= tolerance,
                        "a gradient of {what} is off by {error:e}"
                    );
                }
            }
        }
    }
}
