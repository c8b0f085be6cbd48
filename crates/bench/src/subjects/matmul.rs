//! A product of two square matrices on Burn's default device: what a GPU can do.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor};

use super::{
    Results, Subject,
    op::{dtype, tensor, values},
    wait_for,
};
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
    let dtype = dtype(product.precision);
    let matrix = |seed| tensor(seed, 1.0, shape, product.precision, dtype, &device);
    Ok(Box::new(Product {
        left: matrix(seed::QUERY),
        right: matrix(seed::KEY),
    }))
}

impl Product {
    fn product(&self) -> Tensor<4> {
        self.left.clone().matmul(self.right.clone())
    }
}

impl Subject for Product {
    fn step(&mut self) -> Duration {
        self.steps(1)
    }

    fn steps(&mut self, count: usize) -> Duration {
        let start = Instant::now();
        for _ in 0..count {
            drop(self.product());
        }
        wait_for(&self.left.device());
        start.elapsed()
    }

    /// A row: a device that refuses to multiply says so to whoever reads.
    fn results(&mut self) -> Results {
        vec![("row".into(), values(self.product().narrow(2, 0, 1)))]
    }
}
