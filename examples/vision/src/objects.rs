//! What the detector of digits is trained on, and how it is saved.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::train::DetectionBatch;
use example_common::error::Error;
use serde_json::json;

use crate::{
    detector::Detector,
    int8,
    mnist::Mnist,
    preprocessing,
    scenes::{SIDE, Scene},
    training_scenes::{self, TrainingScenes},
    training_task::{Recipe, TrainingTask},
};

/// What scenes of digits are learned from: batches of boxes.
pub type Objects = TrainingScenes<DetectionBatch>;

/// A batch of scenes.
fn batch(scenes: &[Scene], device: &Device) -> DetectionBatch {
    let objects = scenes.iter().map(|scene| {
        let objects = scene.objects.iter().map(|object| {
            let [left, top, right, bottom] = object.corners.map(|side| side / SIDE as f32);
            let place = [
                (left + right) / 2.0,
                (top + bottom) / 2.0,
                right - left,
                bottom - top,
            ];
            (u32::from(object.digit), place)
        });
        objects.collect()
    });
    DetectionBatch::new(training_scenes::images(scenes, device), objects.collect())
}

impl TrainingTask for Objects {
    type Model = Detector;

    const RECIPE: Recipe = Recipe {
        epochs: 40,
        batch: 32,
        learning_rate: 1e-3,
        seed: 1,
    };

    fn new(mnist: Mnist, recipe: &Recipe) -> Self {
        Self::of(mnist, recipe, batch)
    }

    fn init(device: &Device) -> Detector {
        Detector::new(device)
    }

    fn save(model: Detector, folder: &Path) -> Result<(), Error> {
        let config = json!({"model_type": "detector of the example `vision`"});
        preprocessing::save(folder, &config, "ViTImageProcessor", SIDE)?;
        int8::save(model, folder)
    }
}
