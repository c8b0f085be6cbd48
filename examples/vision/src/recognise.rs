//! Which digit is in an image.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_attn_models::vision::{Guess, ImageClassifier, ImageSize};
use burn_attn_viz::ImageMap;
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit, files,
};
use image::DynamicImage;

use crate::images;

/// The model that this repository has.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/recognise");
/// The least probability of a class that is printed beside the first one.
const LEAST: f32 = 0.005;

/// Options of `recognise`.
#[derive(Args)]
pub struct RecogniseArgs {
    /// The images: PNG, JPEG, WebP, BMP or PNM
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// The digits are dark on a light ground; the model has seen light ones on a dark ground
    #[arg(long)]
    invert: bool,
    /// Draw where the model looked, beside the image, into a PNG; for one image
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// The model: a folder that `train` or transformers saved [default: the one that this repository has]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

/// Prints what is in each image, and why an image cannot be read; returns the exit code.
pub fn run(args: &RecogniseArgs) -> Result<u8, Error> {
    if let Some(path) = &args.picture {
        if args.images.len() > 1 {
            let count = args.images.len();
            return Err(format!("--picture draws one image, but there are {count}").into());
        }
        let place = path.canonicalize().ok();
        let same = |image: &PathBuf| place.is_some() && image.canonicalize().ok() == place;
        if args.images.iter().any(same) {
            return Err(format!("--picture would overwrite {}", path.display()).into());
        }
        files::probe(path)?;
    }
    let device = devices::choose(args.device)?.device;
    let classifier = classifier(args.model.as_deref(), &device)?;
    let mut code = 0;
    for path in &args.images {
        if let Err(error) = recognise(args, &classifier, path) {
            exit::warn(&format!("error: {error}"));
            code = 1;
        }
    }
    Ok(code)
}

/// The model in a folder, or that of this repository.
pub fn classifier(folder: Option<&Path>, device: &Device) -> Result<ImageClassifier, Error> {
    let folder = folder.unwrap_or(Path::new(MODEL));
    if !folder.is_dir() {
        return Err(format!("{} is not the folder of a model", folder.display()).into());
    }
    Ok(ImageClassifier::from_pretrained(folder, device)?)
}

fn recognise(args: &RecogniseArgs, classifier: &ImageClassifier, path: &Path) -> Result<(), Error> {
    let mut image = images::read(path)?;
    let name = path.display();
    if args.invert {
        image.invert();
    }
    let (width, height) = (image.width(), image.height());
    let is_exact = matches!(classifier.processor.size, Some(ImageSize::Exact(_)));
    if width != height && is_exact {
        exit::warn(&format!(
            "{name}: {width} × {height} pixels become a square"
        ));
    }
    if is_light(&image) && args.model.is_none() {
        let invert = if args.invert { "without" } else { "with" };
        exit::warn(&format!(
            "{name}: most of it is light, but the model has seen light digits on a dark ground: try {invert} --invert"
        ));
    }
    let guesses = match &args.picture {
        None => classifier.classify(&image)?,
        Some(file) => {
            let (guesses, rollout) = classifier.classify_with_rollout(&image)?;
            let size = rollout.dims();
            let weights: Vec<f32> = rollout.into_data().iter::<f32>().collect();
            // A crop leaves out what the model does not see.
            let seen = match classifier.processor.crop {
                Some(_) => classifier.processor.cropped(&image)?,
                None => image,
            };
            let (height, width) = (seen.height() as usize, seen.width() as usize);
            let map = ImageMap::new([height, width], seen.to_rgb8().into_raw(), size, weights)?;
            files::replace(file, &map.to_png())?;
            guesses
        }
    };
    let text = |guess: &Guess| format!("{} ({:.2})", guess.label, guess.probability);
    let (first, others) = guesses.split_first().ok_or("the model has no classes")?;
    let others = others
        .iter()
        .filter(|guess| guess.probability >= LEAST)
        .take(2);
    let texts: Vec<String> = [first].into_iter().chain(others).map(text).collect();
    exit::println(&format!("{name}: {}", texts.join(", ")));
    Ok(())
}

/// Whether more than half of the light that an image could have is there.
fn is_light(image: &DynamicImage) -> bool {
    let grey = image.to_luma8();
    let light: u64 = grey.pixels().map(|pixel| u64::from(pixel.0[0])).sum();
    2 * light > 255 * u64::from(image.width()) * u64::from(image.height())
}
