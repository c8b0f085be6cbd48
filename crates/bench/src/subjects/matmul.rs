//! A product of two square matrices on Burn's default device: what a GPU can do.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor};

use super::{Results, Subject, op::tensor, wait_for};
use crate::case::Library;
use crate::generator::seed;
use crate::work::Matmul;

struct Product {
    left: Tensor<4>,
    right: Tensor<4>,
}

/// The matrices.
pub fn build(product: &Matmul, library: Library) -> Result<Box<dyn Subject>, String> {
    if library != Library::Burn {
        return Err(format!("{} has no matrix product here", library.name()));
    }
    let device = Device::default();
    let shape = [1, 1, product.size, product.size];
    let matrix = |seed| tensor(seed, 1.0, shape, product.precision, &device);
    Ok(Box::new(Product {
        left: matrix(seed::QUERY),
        right: matrix(seed::KEY),
    }))
}

impl Subject for Product {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        let product = self.left.clone().matmul(self.right.clone());
        wait_for(&product.device());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        Vec::new()
    }
}
