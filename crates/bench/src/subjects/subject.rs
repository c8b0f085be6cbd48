//! What is measured, and what its subjects share.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor, TensorData};

use crate::generator::numbers;

/// Named results of one iteration, flat.
pub type Results = Vec<(String, Vec<f32>)>;

/// Something that can be done again and again.
pub trait Subject {
    /// One iteration; a GPU may still be computing afterwards.
    fn step(&mut self);

    /// How long so many iterations take; a GPU is given all of them, and waited for once.
    fn time(&mut self, count: usize) -> Duration {
        time_whole(self, count)
    }

    /// What one iteration computes, where it can be compared with another contestant's.
    fn results(&mut self) -> Results;
}

pub fn time_whole(subject: &mut (impl Subject + ?Sized), count: usize) -> Duration {
    let start = Instant::now();
    for _ in 0..count {
        subject.step();
    }
    wait();
    start.elapsed()
}

/// A subject of which an iteration is a call, and what results its value has.
struct Calls<F, T> {
    call: F,
    results: fn(T) -> Results,
}

impl<F: FnMut() -> T, T> Subject for Calls<F, T> {
    fn step(&mut self) {
        drop((self.call)());
    }

    fn results(&mut self) -> Results {
        (self.results)((self.call)())
    }
}

pub fn calls<T: 'static>(
    call: impl FnMut() -> T + 'static,
    results: fn(T) -> Results,
) -> Box<dyn Subject> {
    Box::new(Calls { call, results })
}

/// Waits until Burn's default device has computed what it was asked for; a GPU answers before.
pub fn wait() {
    Device::default()
        .sync()
        .expect("the device computes what it was asked for");
}

/// The numbers of a seed, between -1 and 1.
pub fn input<const D: usize>(seed: u32, shape: [usize; D], device: &Device) -> Tensor<D> {
    let numbers = numbers(seed, shape.iter().product(), 1.0);
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

/// The numbers of a tensor, as f32.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
