//! Which digit each pixel of an image is of.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::vision::{ImageProcessor, ImageSegmenter};
use burn_attn_viz::{ImageMap, class_color};
use example_common::{error::Error, text::printable};
use image::DynamicImage;

use crate::{
    images::{self, LONGEST, Looks},
    int8,
    segments::{self, BACKGROUND, Segments},
    training_task::TrainingTask,
};

impl Looks for ImageSegmenter {
    const MODEL: &str = "models/segment";

    /// A model of transformers, or one of `train` in int8.
    fn load(folder: &Path, device: &Device) -> Result<Self, Error> {
        if folder.join("model.safetensors").exists() || !folder.join(int8::FILE).exists() {
            return Ok(Self::from_pretrained(folder, device)?);
        }
        Ok(Self {
            model: int8::load(Segments::init, folder, device)?,
            processor: ImageProcessor::from_pretrained(folder)?,
            labels: segments::labels(),
        })
    }

    fn processor(&self) -> &ImageProcessor {
        &self.processor
    }

    /// How much of the image each class has, the largest first, with their colours in the picture.
    fn look(&self, image: DynamicImage, draw: bool) -> Result<(String, Option<ImageMap>), Error> {
        let seen = self.processor.cropped(&image)?;
        let classes = self.segment(&image)?.concat();
        let background = self.labels.iter().position(|label| label == BACKGROUND);
        let mut counts = vec![0; self.labels.len()];
        for &class in &classes {
            counts[class] += 1;
        }
        let mut found: Vec<usize> = (0..counts.len()).collect();
        let is_background =
            |class: usize| Some(class) == background && counts[class] < classes.len();
        found.retain(|&class| counts[class] > 0 && !is_background(class));
        found.sort_by_key(|&class| usize::MAX - counts[class]);
        let text = |class: usize| {
            let [red, green, blue] = class_color(class);
            let color = match draw && Some(class) != background {
                true => format!(", #{red:02x}{green:02x}{blue:02x}"),
                false => String::new(),
            };
            let percent = 100.0 * counts[class] as f64 / classes.len() as f64;
            let label = printable(&self.labels[class], LONGEST);
            format!("{label} ({percent:.1} %{color})")
        };
        let texts: Vec<String> = found.into_iter().map(text).collect();
        let map = match draw {
            true => {
                let map = images::map_of(&seen)?.class_names(self.labels.clone());
                Some(map.classes(classes, background)?)
            }
            false => None,
        };
        Ok((texts.join(", "), map))
    }
}
