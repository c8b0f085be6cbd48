//! How good models are on images that they have never seen.

use std::path::PathBuf;

use burn::tensor::{Device, Tensor};
use burn_attn_models::vision::{ImageClassifier, ImageSegmenter, VisionError};
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    input,
};

use crate::{
    Task,
    detect::{SceneDetector, detections},
    images,
    mnist::Mnist,
    precision::mean_average_precision,
    scenes::{SIDE, Scene, Scenes, TEST, TEST_FINGERPRINT, fingerprint},
};

/// How many digits there are.
const DIGITS: usize = 10;
/// Images that are seen at once.
const BATCH: usize = 100;

/// Options of `test`.
#[derive(Args)]
pub struct TestArgs {
    /// What the model does
    task: Task,
    /// The model: a folder that `train` saved, or, but for `detect`, transformers [default: the one that this repository has]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// The folder with MNIST
    #[arg(long, value_name = "FOLDER", default_value = "target/weights/mnist")]
    data: PathBuf,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

/// Prints how good a model is on images that it has never seen.
pub fn run(args: &TestArgs) -> Result<(), Error> {
    let mnist = Mnist::test(&args.data)?;
    let device = devices::choose(args.device)?.device;
    let model = args.model.as_deref();
    match args.task {
        Task::Recognise => recognised(&mnist, &images::model(model, &device)?, &device),
        Task::Detect => detected(&mnist, &images::model(model, &device)?, &device),
        Task::Segment => segmented(&mnist, &images::model(model, &device)?, &device),
    }
}

fn recognised(mnist: &Mnist, classifier: &ImageClassifier, device: &Device) -> Result<(), Error> {
    let classes = classifier.labels.len();
    if classes != DIGITS {
        return Err(format!("the model has {classes} classes, not the {DIGITS} digits").into());
    }
    let image = |scan| classifier.processor.forward(&mnist.image(scan), device);
    let mut right = 0;
    each_batch(mnist.len(), image, |first, images| {
        let guesses = classifier.model.logits(images).argmax(1).into_data();
        let pairs = guesses.iter::<u8>().zip(&mnist.digits[first..]);
        right += pairs.filter(|(guess, digit)| guess == *digit).count();
    })?;
    let of = mnist.len();
    let percent = 100.0 * right as f64 / of as f64;
    println!("{right} of {of} scans recognised, {percent:.2} %");
    Ok(())
}

fn detected(mnist: &Mnist, detector: &SceneDetector, device: &Device) -> Result<(), Error> {
    let scenes = scenes(mnist)?;
    let mut found = Vec::new();
    let image = |scene: usize| detector.processor.forward(&scenes[scene].image(), device);
    each_batch(TEST, image, |_, images| {
        found.extend(detections(&detector.model.forward(images, false)));
    })?;
    let objects = scenes.into_iter().map(|scene| scene.objects);
    let images: Vec<_> = found.into_iter().zip(objects).collect();
    let precision = mean_average_precision(&images);
    let objects: usize = images.iter().map(|(_, objects)| objects.len()).sum();
    println!("mAP@0.5 {precision:.4}, of {objects} digits in {TEST} scenes");
    Ok(())
}

fn segmented(mnist: &Mnist, segmenter: &ImageSegmenter, device: &Device) -> Result<(), Error> {
    let classes = segmenter.labels.len();
    if classes != DIGITS + 1 {
        return Err(format!(
            "the model has {classes} classes, not the background and {DIGITS} digits"
        )
        .into());
    }
    let scenes = scenes(mnist)?;
    // For each class: pixels that are predicted to be of it, that are of it, and both.
    let mut counts = vec![[0u64; 3]; classes];
    let image = |scene: usize| segmenter.processor.forward(&scenes[scene].image(), device);
    each_batch(TEST, image, |first, images| {
        // The logits have the size of scenes, whatever size the model sees.
        let logits = segmenter.model.pixel_logits(images, [SIDE, SIDE]);
        let said = logits.argmax(2).into_data();
        let pixels = scenes[first..].iter().flat_map(|scene| &scene.classes);
        for (said, &is) in said.iter::<u8>().zip(pixels) {
            counts[usize::from(said)][0] += 1;
            counts[usize::from(is)][1] += 1;
            counts[usize::from(is)][2] += u64::from(said == is);
        }
    })?;
    let shares = counts
        .iter()
        .map(|[said, are, both]| *both as f64 / (said + are - both) as f64);
    let shares: Vec<f64> = shares.collect();
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    println!(
        "mean IoU {:.4} of {classes} classes, {:.4} of the {DIGITS} digits alone, in {TEST} scenes",
        mean(&shares),
        mean(&shares[1..])
    );
    Ok(())
}

/// The scenes of the test part.
fn scenes(mnist: &Mnist) -> Result<Vec<Scene>, Error> {
    let scenes = Scenes::test(mnist);
    let scenes: Vec<Scene> = (0..TEST)
        .map(|number| scenes.scene(mnist, number))
        .collect();
    let found = fingerprint(&scenes);
    match found == TEST_FINGERPRINT {
        true => Ok(scenes),
        false => Err(format!(
            "the data is not MNIST's, of which the scenes are made that models are measured on: their fingerprint is {found}, not {TEST_FINGERPRINT}"
        )
        .into()),
    }
}

/// Shows images, `[1, channels, height, width]` each, to a model, some at once: `see` gets the number of the first one, and
/// `[images, channels, height, width]`.
fn each_batch(
    len: usize,
    image: impl Fn(usize) -> Result<Tensor<4>, VisionError>,
    mut see: impl FnMut(usize, Tensor<4>),
) -> Result<(), Error> {
    let bar = input::progress(len, "images");
    for first in (0..len).step_by(BATCH) {
        let images = (first..len.min(first + BATCH)).map(&image);
        let images = images.collect::<Result<Vec<_>, _>>()?;
        see(first, Tensor::cat(images, 0));
        bar.inc(BATCH as u64);
    }
    bar.finish_and_clear();
    Ok(())
}
