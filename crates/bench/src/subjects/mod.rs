//! The contestants written in Rust.

use burn::tensor::Device;

use crate::case::Library;
use crate::text::name;
use crate::work::{Precision, Work};

mod candle;
mod decoding;
mod fma;
mod matmul;
mod module;
mod op;
mod oracle;
mod parameters;
mod pretrained;
mod subject;
mod translation;

pub use fma::instructions;
pub use subject::{Results, Subject};

/// Whether Burn's default device is a GPU, or a driver that plays one in software.
pub fn on_gpu() -> bool {
    Device::default() != Device::flex()
}

/// Why a library cannot be given numbers of this precision on Burn's default device, where it cannot.
pub fn lacks(library: Library, precision: Precision) -> Option<String> {
    let needs_to_compute = match library {
        Library::Burn => true,
        // Ours only stores what it rounds, and there are devices that do no more with bf16. None does so with f16.
        Library::Ours => precision == Precision::F16,
        _ => false,
    };
    let computes = Device::default().supports_dtype(op::dtype(precision));
    (needs_to_compute && !computes).then(|| {
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
