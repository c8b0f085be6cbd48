//! Where digits are in an image, and which.

use std::path::Path;

use burn::tensor::{Device, activation::sigmoid};
use burn_attn_models::vision::ImageProcessor;
use burn_attn_viz::ImageMap;
use example_common::error::Error;
use image::DynamicImage;

use crate::{
    detector::{Detector, DetectorOutput},
    images::{self, Looks},
    int8,
    scenes::{Corners, intersection_over_union},
};

/// The least score of a digit that is printed; mean average precision counts all.
const LEAST: f32 = 0.4;
/// Two boxes that overlap more than this, as intersection over union, are of the same digit.
const SAME: f32 = 0.6;

/// The model, and what an image becomes before it.
pub struct SceneDetector {
    /// The model.
    pub model: Detector,
    /// What an image becomes.
    pub processor: ImageProcessor,
}

/// A digit that may be there.
#[derive(Clone, Copy, Debug)]
pub struct Detection {
    /// Which digit.
    pub digit: usize,
    /// How probable it is, from 0 to 1.
    pub score: f32,
    /// Where it is, as fractions of the image.
    pub corners: Corners,
    /// The query that found it.
    pub query: usize,
}

/// All digits at the boxes of all queries of the last layer, for each image.
pub fn detections(output: &DetectorOutput) -> Vec<Vec<Detection>> {
    let last = output.layers.last().expect("there are layers");
    let [_, queries, digits] = last.logits.dims();
    let scores = sigmoid(last.logits.clone()).into_data();
    let scores: Vec<f32> = scores.iter().collect();
    let boxes: Vec<f32> = last.boxes.clone().into_data().iter().collect();
    let images = scores
        .chunks(queries * digits)
        .zip(boxes.chunks(queries * 4));
    let images = images.map(|(scores, boxes)| {
        let detection = |(index, &score): (usize, &f32)| {
            let (query, digit) = (index / digits, index % digits);
            let [x, y, width, height] = [0, 1, 2, 3].map(|side| boxes[query * 4 + side]);
            let (left, right) = (x - width / 2.0, x + width / 2.0);
            let (top, bottom) = (y - height / 2.0, y + height / 2.0);
            let corners = [left, top, right, bottom].map(|side| side.clamp(0.0, 1.0));
            Detection {
                digit,
                score,
                corners,
                query,
            }
        };
        scores.iter().enumerate().map(detection).collect()
    });
    images.collect()
}

impl Looks for SceneDetector {
    const MODEL: &str = "models/detect";

    fn load(folder: &Path, device: &Device) -> Result<Self, Error> {
        Ok(Self {
            model: int8::load(Detector::new, folder, device)?,
            processor: ImageProcessor::from_pretrained(folder)?,
        })
    }

    fn processor(&self) -> &ImageProcessor {
        &self.processor
    }

    /// Digits with their scores and boxes (pixels), and where the query of each looked.
    fn look(&self, image: DynamicImage, draw: bool) -> Result<(String, Option<ImageMap>), Error> {
        let device = self.model.device();
        let input = self.processor.forward(&image, &device)?;
        let output = self.model.forward(input, draw);
        let mut all = detections(&output).swap_remove(0);
        all.retain(|detection| detection.score >= LEAST);
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut found: Vec<Detection> = Vec::new();
        for detection in all {
            let is_same = |other: &Detection| {
                intersection_over_union(&other.corners, &detection.corners) > SAME
            };
            if !found.iter().any(is_same) {
                found.push(detection);
            }
        }
        let (width, height) = (image.width() as f32, image.height() as f32);
        let corners = |[left, top, right, bottom]: Corners| {
            [left * width, top * height, right * width, bottom * height]
        };
        let text = |found: &Detection| {
            let [left, top, right, bottom] = corners(found.corners).map(f32::round);
            let Detection { digit, score, .. } = found;
            format!("{digit} ({score:.2}) at {left}, {top} to {right}, {bottom}")
        };
        let texts: Vec<String> = found.iter().map(text).collect();
        let text = match texts.is_empty() {
            true => "no digit".into(),
            false => texts.join("; "),
        };
        let Some(weights) = &output.weights else {
            return Ok((text, None));
        };
        // The mean of the heads, `[1, queries, places]`.
        let weights = weights.clone().mean_dim(1).squeeze_dim::<3>(1);
        let [_, _, places] = weights.dims();
        let weights: Vec<f32> = weights.into_data().iter().collect();
        let mut map = images::map_of(&image)?;
        for (color, found) in found.iter().enumerate() {
            let weights = weights[found.query * places..][..places].to_vec();
            map = map.attention(output.grid, weights)?;
            map = map.boxed(corners(found.corners), color)?;
        }
        Ok((text, Some(map)))
    }
}
