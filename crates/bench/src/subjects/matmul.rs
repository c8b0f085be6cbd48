//! A product of two square matrices on Burn's default device: what a GPU can do.

use burn::tensor::{Device, Tensor};

use super::op::{dtype, tensor};
use super::subject::{Subject, calls, values};
use crate::generator::seed;
use crate::work::Matmul;

pub fn build(product: &Matmul) -> Box<dyn Subject> {
    let device = Device::default();
    let shape = [1, 1, product.size, product.size];
    let dtype = dtype(product.precision);
    let matrix = |seed| tensor(seed, 1.0, shape, product.precision, dtype, &device);
    let (left, right) = (matrix(seed::QUERY), matrix(seed::KEY));
    let multiply = move || left.clone().matmul(right.clone());
    // A row: a device that refuses to multiply fails when its result is read.
    calls(multiply, |product: Tensor<4>| {
        vec![("row".into(), values(product.narrow(2, 0, 1)))]
    })
}
