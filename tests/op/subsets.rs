//! Whichever inputs have a gradient, it is what it is when all have one.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::CausalAlignment;
use burn_attn_tests::{
    compare::{assert_near, numbers_f64},
    devices,
};

use crate::{
    body::Body,
    case::{Case, tensor},
    option_tensors::OptionTensors,
    oracle::TOLERANCE_OF_F32,
};

const F32: DType = DType::F32;

/// The gradients of the inputs that `tracked` names, by the names of the oracle's.
fn gradients(case: &Case, tracked: [bool; 6], device: &Device, body: Body) -> Vec<Vec<f64>> {
    let [query, key, value] = case.operands(device, F32);
    let operands = [(query, tracked[0]), (key, tracked[1]), (value, tracked[2])];
    let operands = operands.map(|(operand, tracked)| operand.set_require_grad(tracked));
    let tensors = case.option_tensors(device, F32);
    let tensors = OptionTensors {
        bias: tensors.bias.map(|x| x.set_require_grad(tracked[3])),
        alibi: tensors.alibi.map(|x| x.set_require_grad(tracked[4])),
        sinks: tensors.sinks.map(|x| x.set_require_grad(tracked[5])),
        ..tensors
    };
    let options = case.options_of(device, &tensors);
    let (output, logsumexp) = body.attend(operands.clone(), options);
    let of_output = tensor(&case.output_gradient, output.dims(), device, F32);
    let of_logsumexp = tensor(&case.logsumexp_gradient, logsumexp.dims(), device, F32);
    let loss = (output * of_output).sum() + (logsumexp * of_logsumexp).sum();
    let gradients = loss.backward();
    let of_four = |x: &Tensor<4>| x.grad(&gradients).as_ref().map_or(Vec::new(), numbers_f64);
    let of_heads = |x: &Tensor<1>| x.grad(&gradients).as_ref().map_or(Vec::new(), numbers_f64);
    let mut all: Vec<_> = operands.iter().map(of_four).collect();
    all.extend([
        of_four(&tensors.bias.unwrap()),
        of_heads(&tensors.alibi.unwrap()),
        of_heads(&tensors.sinks.unwrap()),
    ]);
    all
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
            true => &[Body::Backend][..],
            false => &[Body::Backend, Body::Blockwise(6)],
        };
        let device = device.autodiff();
        for subset in 1..1_usize << expected.len() {
            for &body in bodies {
                let tracked = std::array::from_fn(|input| subset >> input & 1 == 1);
                let actual = gradients(&case, tracked, &device, body);
                let what = format!("a gradient of {subset:06b} on {device:?} by {body:?}");
                for ((expected, actual), tracked) in expected.iter().zip(&actual).zip(tracked) {
                    match tracked {
                        true => assert_near(&what, actual, expected, TOLERANCE_OF_F32),
                        false => assert!(actual.is_empty(), "{what}"),
                    }
                }
            }
        }
    }
}
