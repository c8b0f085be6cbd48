//! Products of a linear layer where one size is 1: kernels that Burn tries read a column as if it were a row (burn#5122).

use burn::tensor::{Device, Tensor, TensorData};
use burn_attn::ops::{Activation, activated_linear};
use burn_attn_tests::{compare::assert_close_to_largest, devices, numbers::tensor};

const TOLERANCE: f64 = 1e-5;

/// Output, and the gradients of input, weight and bias, for sizes `[rows, d_input, d_output]`.
fn results([rows, d_input, d_output]: [usize; 3], device: &Device) -> Vec<TensorData> {
    let device = &device.clone().autodiff();
    let x: Tensor<2> = tensor([rows, d_input], 1, device).require_grad();
    let weight: Tensor<2> = tensor([d_input, d_output], 2, device).require_grad();
    let bias: Tensor<1> = tensor([d_output], 3, device).require_grad();
    // What comes before and after runs in one kernel with the product.
    let y = activated_linear(
        x.clone() * 2.0,
        weight.clone(),
        Some(bias.clone()),
        Activation::Gelu,
        false,
    );
    let y = y.clone() + y;
    let gradients = y.clone().square().sum().backward();
    let copied =
        |data: TensorData| TensorData::new(data.iter::<f32>().collect(), data.shape().clone());
    vec![
        copied(y.into_data()),
        copied(x.grad(&gradients).unwrap().into_data()),
        copied(weight.grad(&gradients).unwrap().into_data()),
        copied(bias.grad(&gradients).unwrap().into_data()),
    ]
}

#[test]
fn one_row_one_input_one_output() {
    let Some(wgpu) = devices::wgpu() else { return };
    for sizes in [
        [5, 3, 1],
        [4, 32, 1],
        [1, 32, 7],
        [1, 7, 1],
        [5, 1, 7],
        [5, 1, 1],
    ] {
        let (found, expected) = (results(sizes, &wgpu), results(sizes, &devices::any()));
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let what = format!("result {index} of {sizes:?}");
            assert_close_to_largest(&what, found, expected, TOLERANCE, 0.0);
        }
    }
}
