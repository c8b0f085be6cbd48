//! Which digit is in an image.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::vision::{Guess, ImageClassifier, ImageProcessor};
use burn_attn_viz::ImageMap;
use example_common::{error::Error, text::printable};
use image::DynamicImage;

use crate::images::{self, LONGEST, Looks};

/// The least probability of a class that is printed beside the first one.
const LEAST: f32 = 0.005;

impl Looks for ImageClassifier {
    const MODEL: &str = "models/recognise";

    fn load(folder: &Path, device: &Device) -> Result<Self, Error> {
        Ok(Self::from_pretrained(folder, device)?)
    }

    fn processor(&self) -> &ImageProcessor {
        &self.processor
    }

    /// The most probable classes, and where the model looked.
    fn look(&self, image: DynamicImage, draw: bool) -> Result<(String, Option<ImageMap>), Error> {
        let (guesses, map) = match draw {
            false => (self.classify(&image)?, None),
            true => {
                let (guesses, rollout) = self.classify_with_rollout(&image)?;
                let grid = rollout.dims();
                let weights = rollout.into_data().iter::<f32>().collect();
                // A crop leaves out what the model does not see.
                let seen = match self.processor.crop {
                    Some(_) => self.processor.cropped(&image)?,
                    None => image,
                };
                let map = images::map_of(&seen)?.attention(grid, weights)?;
                (guesses, Some(map))
            }
        };
        let text = |guess: &Guess| {
            format!(
                "{} ({:.2})",
                printable(&guess.label, LONGEST),
                guess.probability
            )
        };
        let (first, others) = guesses.split_first().ok_or("the model has no classes")?;
        let others = others
            .iter()
            .filter(|guess| guess.probability >= LEAST)
            .take(2);
        let texts: Vec<String> = [first].into_iter().chain(others).map(text).collect();
        Ok((texts.join(", "), map))
    }
}
