//! How many of the scans that a model has never seen it recognises.

use std::path::PathBuf;

use burn::tensor::Tensor;
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit, input,
};

use crate::{Task, mnist::Mnist, recognise};

/// Classes of a model of digits.
const DIGITS: usize = 10;
/// Scans that are read at once.
const BATCH: usize = 250;

/// Options of `test`.
#[derive(Args)]
pub struct TestArgs {
    /// What the model does
    task: Task,
    /// The model: a folder that `train` or transformers saved [default: the one that this repository has]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// The folder with MNIST
    #[arg(long, value_name = "FOLDER", default_value = "target/weights/mnist")]
    data: PathBuf,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

/// Prints how many scans of the test part a model recognises.
pub fn run(args: &TestArgs) -> Result<(), Error> {
    let Task::Recognise = args.task else { todo!() };
    let mnist = Mnist::test(&args.data)?;
    let device = devices::choose(args.device)?.device;
    let classifier = recognise::classifier(args.model.as_deref(), &device)?;
    let classes = classifier.labels.len();
    if classes != DIGITS {
        return Err(format!("the model has {classes} classes, not the {DIGITS} digits").into());
    }
    let bar = input::progress(mnist.len(), "scans");
    let mut right = 0;
    for first in (0..mnist.len()).step_by(BATCH) {
        let scans = first..mnist.len().min(first + BATCH);
        let images = scans.clone().map(|scan| {
            let image = classifier.processor.forward(&mnist.image(scan), &device);
            Ok(image?)
        });
        let images = images.collect::<Result<Vec<_>, Error>>()?;
        let guesses = classifier.model.logits(Tensor::cat(images, 0)).argmax(1);
        let guesses = guesses.into_data();
        let pairs = guesses.iter::<u8>().zip(&mnist.digits[scans]);
        right += pairs.filter(|(guess, digit)| guess == *digit).count();
        bar.inc(BATCH as u64);
    }
    bar.finish_and_clear();
    let of = mnist.len();
    let percent = 100.0 * right as f64 / of as f64;
    exit::println(&format!("{right} of {of} scans recognised, {percent:.2} %"));
    Ok(())
}
