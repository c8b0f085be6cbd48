//! The contestants written in Rust.

use std::time::Duration;

use burn::tensor::Device;

use crate::case::{Library, Task};
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
    /// One iteration, and how long the part that counts took.
    fn step(&mut self) -> Duration;

    /// So many iterations; a GPU is given all of them, and waited for once.
    fn steps(&mut self, count: usize) -> Duration {
        (0..count).map(|_| self.step()).sum()
    }

    /// What one iteration computes, where it can be compared with another contestant's.
    fn results(&mut self) -> Results;
}

/// Waits until the device has computed what it was asked for; a GPU answers before.
fn wait_for(device: &Device) {
    device
        .sync()
        .expect("the device computes what it was asked for");
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
        format!(
            "Burn does not compute in {} on this device",
            precision.name()
        )
    })
}

/// Prepares the inputs of a task.
pub fn build(task: &Task) -> Result<Box<dyn Subject>, String> {
    match (&task.work, task.library) {
        (Work::Op(op), Library::Candle) => candle::build(op),
        (Work::Op(op), library) => op::build(op, library),
        (Work::Module(module), library) => module::build(module, library),
        (Work::Decoding(decoding), library) => decoding::build(decoding, library),
        (Work::Translation(step), library) => translation::build(step, library),
        (Work::Pretrained(work), _) => pretrained::build(work),
        (&Work::Fma(threads), _) => Ok(Box::new(fma::Fma { threads })),
        (Work::Matmul(product), library) => matmul::build(product, library),
    }
}

/// Checks results before they are timed: ours against the f64 oracle. Peers are compared with ours by the parent.
pub fn check(task: &Task, results: &Results) -> Result<(), String> {
    match (&task.work, task.library) {
        (Work::Op(op), Library::Ours) => oracle::check(op, results),
        _ => Ok(()),
    }
}
