//! The model of digits: its size, how it is saved, and what it is trained on.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::{
    train::{BatchSize, ImageBatch, TokenBatch, TrainingData, batches_by_length},
    vit::{Vit, VitConfig, VitFamily},
};
use example_common::error::Error;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::{
    augmentation::augmented,
    mnist::{Mnist, SIDE},
    preprocessing,
    training_task::{Recipe, TrainingTask, VALIDATION, save_half},
};

/// How much of the probability is spread over all digits in training.
const SMOOTHING: f64 = 0.05;

/// A model of 206,000 parameters that sees 4 × 4 patches of 7 × 7 pixels.
fn config() -> VitConfig {
    VitConfig::new()
        .with_image_size(SIDE)
        .with_patch_size(7)
        .with_n_channels(1)
        .with_d_model(64)
        .with_n_heads(4)
        .with_n_layers(6)
        .with_d_ff(128)
        .with_n_classes(Some(10))
}

/// The training part of MNIST.
///
/// A sample is a scan in an epoch, `epoch · scans + scan`, because a scan is changed differently in each.
pub struct Digits {
    /// The scans.
    pub mnist: Mnist,
    /// Scans of a step.
    pub batch: usize,
    /// The seed of their order and of how they are changed.
    pub seed: u64,
}

impl Digits {
    /// Scans that the model is trained on.
    fn scans(&self) -> usize {
        self.mnist.len() - self.mnist.len() / VALIDATION
    }
}

impl TrainingTask for Digits {
    type Model = Vit;

    const RECIPE: Recipe = Recipe {
        epochs: 20,
        batch: 64,
        learning_rate: 2e-3,
        seed: 1,
    };

    fn new(mnist: Mnist, recipe: &Recipe) -> Self {
        Self {
            mnist,
            batch: recipe.batch,
            seed: recipe.seed,
        }
    }

    fn init(device: &Device) -> Vit {
        config().init(device)
    }

    fn save(model: Vit, folder: &Path) -> Result<(), Error> {
        let config = config();
        let digits = (0..10).map(|digit| (digit.to_string(), digit.to_string().into()));
        let config = json!({
            "architectures": ["ViTForImageClassification"],
            "model_type": "vit",
            "image_size": config.image_size,
            "patch_size": config.patch_size,
            "num_channels": config.n_channels,
            "hidden_size": config.d_model,
            "num_attention_heads": config.n_heads,
            "num_hidden_layers": config.n_layers,
            "intermediate_size": config.d_ff,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "qkv_bias": true,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "id2label": serde_json::Map::from_iter(digits),
            // In which transformers computes; the weights are stored in f16.
            "dtype": "float32",
        });
        preprocessing::save(folder, &config, "ViTImageProcessor", SIDE)?;
        save_half(&VitFamily::Vit.table(), model, folder)
    }
}

impl TrainingData for Digits {
    type Batch = ImageBatch;

    fn steps(&self, epoch: usize) -> Vec<Vec<usize>> {
        let scans = self.scans();
        let size = BatchSize::Samples(self.batch);
        let mut steps = batches_by_length(&vec![[1]; scans], size, self.seed, epoch as u64);
        for sample in steps.iter_mut().flatten() {
            *sample += epoch * scans;
        }
        steps
    }

    fn tokens(&self, _: usize) -> usize {
        1
    }

    fn batch(&self, samples: &[usize], device: &Device) -> ImageBatch {
        let scans = self.scans();
        let pixels = samples.iter().flat_map(|&sample| {
            let mut random = ChaCha8Rng::seed_from_u64(self.seed);
            random.set_stream(sample as u64);
            augmented(self.mnist.scan(sample % scans), random)
        });
        let digits = samples
            .iter()
            .map(|sample| self.mnist.digits[sample % scans]);
        batch(pixels.collect(), digits, device).smoothing(SMOOTHING)
    }

    fn validation(&self, device: &Device) -> impl Iterator<Item = ImageBatch> {
        const SCANS: usize = 250;
        let (mnist, all) = (&self.mnist, self.mnist.len());
        (self.scans()..all).step_by(SCANS).map(move |first| {
            let scans = first..all.min(first + SCANS);
            let pixels = scans.clone().flat_map(|scan| mnist.scan(scan));
            let digits = mnist.digits[scans].iter().copied();
            batch(pixels.map(|&pixel| pixel.into()).collect(), digits, device)
        })
    }
}

fn batch(pixels: Vec<f32>, digits: impl Iterator<Item = u8>, device: &Device) -> ImageBatch {
    let digits: Vec<u32> = digits.map(u32::from).collect();
    ImageBatch::new(preprocessing::images(pixels, SIDE, device), &digits)
}
