//! Which digit each pixel of an image is of.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::vision::{ImageProcessor, ImageSegmenter};
use burn_attn_viz::{ImageMap, class_color};
use example_common::error::Error;
use image::DynamicImage;

use crate::{
    images::{self, Looks},
    int8, segments,
};

impl Looks for ImageSegmenter {
    const MODEL: &str = "models/segment";

    /// A model of transformers, or one of `train` in int8.
    fn load(folder: &Path, device: &Device) -> Result<Self, Error> {
        if folder.join("model.safetensors").exists() || !folder.join(int8::FILE).exists() {
            return Ok(Self::from_pretrained(folder, device)?);
        }
        Ok(Self {
            model: segments::load(folder, device)?,
            processor: ImageProcessor::from_pretrained(folder)?,
            labels: segments::labels(),
        })
    }

    fn processor(&self) -> &ImageProcessor {
        &self.processor
    }

    /// Pixels of each class, the largest first, with their colours in the picture.
    fn look(&self, image: DynamicImage, draw: bool) -> Result<(String, Option<ImageMap>), Error> {
        let seen = self.processor.cropped(&image)?;
        let classes = self.segment(&image)?;
        let mut counts = vec![0; self.labels.len()];
        for &class in &classes {
            counts[class] += 1;
        }
        let mut found: Vec<usize> = (0..counts.len()).collect();
        found.retain(|&class| counts[class] > 0 && (class > 0 || counts[0] == classes.len()));
        found.sort_by_key(|&class| usize::MAX - counts[class]);
        let text = |class: usize| {
            let color = class_color(class).filter(|_| draw);
            let color = color.map_or(String::new(), |[red, green, blue]| {
                format!(", #{red:02x}{green:02x}{blue:02x}")
            });
            format!("{} ({} pixels{color})", self.labels[class], counts[class])
        };
        let texts: Vec<String> = found.into_iter().map(text).collect();
        let map = match draw {
            true => Some(images::map_of(&seen)?.classes(classes)?),
            false => None,
        };
        Ok((texts.join(", "), map))
    }
}
