//! How many of the scans that a model has never seen it recognises.

use std::path::PathBuf;

use burn_attn_models::vision::ImageClassifier;
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit, input,
};

use crate::{Task, digits, mnist::Mnist, recognise};

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
    let Task::Recognise = args.task;
    let mnist = Mnist::test(&args.data)?;
    let device = devices::choose(args.device)?.device;
    let ImageClassifier { model, .. } = recognise::classifier(args.model.as_deref(), &device)?;
    let bar = input::progress(mnist.len(), "scans");
    let mut right = 0;
    for batch in digits::plain(&mnist, 0, &device) {
        let count = batch.targets.count;
        let guesses = model.logits(batch.images).argmax(1);
        let is_right = guesses.equal(batch.targets.tokens);
        right += is_right.int().sum().into_scalar::<i64>() as usize;
        bar.inc(count as u64);
    }
    bar.finish_and_clear();
    let of = mnist.len();
    let percent = 100.0 * right as f64 / of as f64;
    exit::println(&format!("{right} of {of} scans recognised, {percent:.2} %"));
    Ok(())
}
