//! The contestants written in Rust.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor, TensorData};

use crate::case::Library;
use crate::generator::numbers;
use crate::text::name;
use crate::work::Work;

mod candle;
mod decoding;
mod fma;
mod matmul;
mod module;
mod op;
mod oracle;
mod parameters;
mod pretrained;
mod translation;

pub use fma::instructions;

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

fn time_whole(subject: &mut (impl Subject + ?Sized), count: usize) -> Duration {
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

fn calls<T: 'static>(
    call: impl FnMut() -> T + 'static,
    results: fn(T) -> Results,
) -> Box<dyn Subject> {
    Box::new(Calls { call, results })
}

/// Waits until Burn's default device has computed what it was asked for; a GPU answers before.
fn wait() {
    Device::default()
        .sync()
        .expect("the device computes what it was asked for");
}

/// The numbers of a seed, between -1 and 1.
fn input<const D: usize>(seed: u32, shape: [usize; D], device: &Device) -> Tensor<D> {
    let numbers = numbers(seed, shape.iter().product(), 1.0);
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

/// The numbers of a tensor, as f32.
fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Whether Burn's default device is a GPU, or a driver that plays one in software.
pub fn on_gpu() -> bool {
    Device::default() != Device::flex()
}

/// Why a library cannot be given this work on Burn's default device, where it cannot.
pub fn lacks(library: Library, work: &Work) -> Option<String> {
    let precision = work.precision();
    // Ours only stores what it rounds.
    let computes = Device::default().supports_dtype(op::dtype(precision));
    (library == Library::Burn && !computes).then(|| {
        let name = name(precision);
        format!("Burn does not compute in {name} on this device")
    })
}

/// Prepares the inputs of a work for a library.
pub fn build(work: &Work, library: Library) -> Result<Box<dyn Subject>, String> {
    use Library::{Burn, BurnNn, Candle, Ours};
    Ok(match (work, library) {
        (Work::Op(op), Candle) => candle::build(op)?,
        (Work::Op(op), _) => op::build(op, library)?,
        (Work::Module(module), Ours) => module::ours(module),
        (Work::Module(module), BurnNn) => module::burn_nn(module),
        (Work::Decoding(decoding), Ours) => Box::new(decoding::Ours::new(decoding)),
        (Work::Decoding(decoding), BurnNn) => decoding::burn_nn(decoding)?,
        (Work::Translation(step), Ours) => translation::ours(step),
        (Work::Translation(step), BurnNn) => translation::burn_nn(step),
        (Work::Pretrained(work), Ours) => pretrained::build(work)?,
        (&Work::Fma(threads), Ours) => fma::build(threads),
        (Work::Matmul(product), Burn) => matmul::build(product),
        _ => return Err(format!("{} does no such work here", name(library))),
    })
}

/// Checks results before they are timed: ours against the f64 oracle. Peers are compared with ours by the parent.
pub fn check(work: &Work, library: Library, results: &Results) -> Result<(), String> {
    match (work, library) {
        (Work::Op(op), Library::Ours) => oracle::check(op, results),
        _ => Ok(()),
    }
}
