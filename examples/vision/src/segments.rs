//! The model of which digit each pixel of a scene is of: its size, how it is saved, and what it is trained on.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::{
    segformer::{self, DecodeHeadConfig, Segformer, SegformerConfig, SegformerStageConfig},
    train::ImageBatch,
};
use example_common::error::Error;
use serde_json::{Map, json};

use crate::{
    int8,
    mnist::Mnist,
    preprocessing,
    scenes::{SIDE, Scene},
    training_scenes::{self, TrainingScenes},
    training_task::{Recipe, TrainingTask, save_half},
};

/// The class of what is no digit.
pub const BACKGROUND: &str = "background";

/// What scenes of digits are learned from: batches of pixels.
pub type Segments = TrainingScenes<ImageBatch>;

/// A model of 1.2 million parameters that sees 48 × 48, 24 × 24 and 12 × 12 patches.
fn config() -> SegformerConfig {
    let stage = SegformerStageConfig::new;
    SegformerConfig::new()
        .with_n_channels(1)
        .with_stages(vec![
            stage(32, 1, 1, 8).with_patch_size(7).with_mlp_ratio(2),
            stage(64, 2, 2, 4).with_mlp_ratio(2),
            stage(128, 3, 4, 2),
        ])
        .with_stochastic_depth(0.0)
        .with_decode_head(DecodeHeadConfig::new(11).with_d_model(64).with_dropout(0.0))
}

impl TrainingTask for Segments {
    type Model = Segformer;

    const RECIPE: Recipe = Recipe {
        epochs: 24,
        batch: 32,
        learning_rate: 2e-3,
        seed: 1,
    };

    fn new(mnist: Mnist, recipe: &Recipe) -> Self {
        Self::of(mnist, recipe, batch)
    }

    fn init(device: &Device) -> Segformer {
        config().init(device)
    }

    fn save(model: Segformer, folder: &Path) -> Result<(), Error> {
        let config = config();
        let list = |size: fn(&SegformerStageConfig) -> usize| -> Vec<usize> {
            config.stages.iter().map(size).collect()
        };
        let names = labels().into_iter().enumerate();
        let names = names.map(|(class, name)| (class.to_string(), name.into()));
        let head = config.decode_head.as_ref().expect("a head");
        let config = json!({
            "architectures": ["SegformerForSemanticSegmentation"],
            "model_type": "segformer",
            "num_channels": config.n_channels,
            "num_encoder_blocks": config.stages.len(),
            "hidden_sizes": list(|stage| stage.d_model),
            "depths": list(|stage| stage.n_layers),
            "num_attention_heads": list(|stage| stage.n_heads),
            "sr_ratios": list(|stage| stage.reduction),
            "patch_sizes": list(|stage| stage.patch_size),
            "strides": list(|stage| stage.stride),
            "mlp_ratios": list(|stage| stage.mlp_ratio),
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "drop_path_rate": 0.0,
            "classifier_dropout_prob": head.dropout,
            "decoder_hidden_size": head.d_model,
            "id2label": Map::from_iter(names),
            "dtype": "float32",
        });
        preprocessing::save(folder, &config, "SegformerImageProcessor", SIDE)?;
        int8::save(model.clone(), folder)?;
        save_half(&segformer::table(), model, folder)
    }
}

/// What the classes are called.
pub fn labels() -> Vec<String> {
    let digits = (0..10).map(|digit| digit.to_string());
    std::iter::once(BACKGROUND.into()).chain(digits).collect()
}

/// A batch of scenes.
fn batch(scenes: &[Scene], device: &Device) -> ImageBatch {
    let classes: Vec<u32> = scenes
        .iter()
        .flat_map(|scene| scene.classes.iter().copied().map(u32::from))
        .collect();
    ImageBatch::of_pixels(training_scenes::images(scenes, device), &classes, None)
}
