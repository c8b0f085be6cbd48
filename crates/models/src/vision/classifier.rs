//! From images to classes.

use std::path::Path;

use burn::tensor::{DType, Device, Tensor, activation::softmax};
use image::DynamicImage;
use serde_json::{Map, Value};

use super::{ImageProcessor, VisionError, attention_rollout};
use crate::{
    pretrained::{LoadOptions, MODEL_CONFIG, Result, Wanted, folder_with, object},
    vit::{self, Vit},
};

/// A [`Vit`] with what turns images into its input beside it.
///
/// See [the module](super) for an example.
#[derive(Debug)]
pub struct ImageClassifier {
    /// The model.
    pub model: Vit,
    /// Makes the input of the model from an image.
    pub processor: ImageProcessor,
    /// The names of the classes.
    pub labels: Vec<String>,
}

/// A class, and how probable it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// The number of the class.
    pub class: usize,
    /// The name of the class.
    pub label: String,
    /// How probable the model takes it to be, from 0 to 1.
    pub probability: f32,
}

impl ImageClassifier {
    /// Loads a [`Vit`] and the files beside it, from a folder or a [name on the Hub](crate::pretrained). A class without a name in `id2label`
    /// is called by its number.
    ///
    /// # Errors
    ///
    /// As [`vit::from_pretrained`] and [`ImageProcessor::from_pretrained`], when the model has no head or only one class, and when its
    /// `problem_type` is not `single_label_classification`.
    ///
    /// # Cost
    ///
    /// The cost of [`vit::from_pretrained`].
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, VisionError> {
        let source = source.as_ref();
        let model = vit::from_pretrained(source, options)?;
        let path = || source.to_path_buf();
        let head = model.head.as_ref().ok_or_else(|| VisionError::NoHead {
            path: path(),
            tensor: "classifier.weight",
        })?;
        let [_, n_classes] = head.weight.dims();
        if n_classes == 1 {
            return Err(VisionError::OneClass { path: path() });
        }
        let config = config(source)?;
        let problem = config.get("problem_type").and_then(Value::as_str);
        if let Some(problem) = problem.filter(|&name| name != "single_label_classification") {
            return Err(VisionError::ProblemType {
                path: path(),
                found: problem.into(),
            });
        }
        Ok(Self {
            processor: ImageProcessor::from_pretrained(source)?,
            labels: labels(&config, n_classes),
            model,
        })
    }

    /// All classes, the most probable one first.
    ///
    /// # Errors
    ///
    /// As [`ImageProcessor::forward`].
    ///
    /// # Panics
    ///
    /// When the processor makes images that the model does not read, of other channels for instance.
    ///
    /// # Cost
    ///
    /// The cost of [`ImageProcessor::forward`] and [`Vit::logits`].
    pub fn classify(&self, image: &DynamicImage) -> Result<Vec<Guess>, VisionError> {
        let images = self.processor.forward(image, &self.device())?;
        Ok(self.guesses(self.model.logits(images)))
    }

    /// As [`classify`](Self::classify), with the share of each patch in the state of the class token, by
    /// [`attention_rollout`], `[rows, columns]`. They sum to at most 1; the rest belongs to the special tokens. The patches are those of the
    /// [cropped](ImageProcessor::cropped) image.
    ///
    /// Errors and panics are those of [`classify`](Self::classify); it takes memory for the attention weights of all layers in addition.
    pub fn classify_with_rollout(
        &self,
        image: &DynamicImage,
    ) -> Result<(Vec<Guess>, Tensor<2>), VisionError> {
        let images = self.processor.forward(image, &self.device())?;
        let [rows, columns] = self.model.grid(&images);
        let output = self.model.forward_with_weights(images);
        let rollout = attention_rollout(&output.self_weights);
        let [_, len, _] = rollout.dims();
        let of_class = rollout
            .narrow(1, 0, 1)
            .narrow(2, len - rows * columns, rows * columns);
        let guesses = self.guesses(self.model.classify(output.states));
        Ok((guesses, of_class.reshape([rows, columns])))
    }

    fn device(&self) -> Device {
        self.model.positions.device()
    }

    fn guesses(&self, logits: Tensor<2>) -> Vec<Guess> {
        let probabilities = softmax(logits.cast(DType::F32), 1).into_data();
        let classes = probabilities.iter::<f32>().zip(&self.labels).enumerate();
        let guess = |(class, (probability, label)): (usize, (f32, &String))| Guess {
            class,
            label: label.clone(),
            probability,
        };
        let mut guesses: Vec<Guess> = classes.map(guess).collect();
        guesses.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        guesses
    }
}

/// `config.json` of a model that was loaded from there.
pub(super) fn config(source: &Path) -> Result<Map<String, Value>> {
    let path = folder_with(source, Wanted::Config)?.join(Wanted::Config.file());
    object(&path, MODEL_CONFIG)
}

/// What classes are called by `id2label`, or by their numbers.
pub(super) fn labels(config: &Map<String, Value>, n_classes: usize) -> Vec<String> {
    let names = config.get("id2label").and_then(Value::as_object);
    let label = |class: usize| {
        let name = names.and_then(|names| names.get(&class.to_string())?.as_str());
        name.map_or_else(|| class.to_string(), String::from)
    };
    (0..n_classes).map(label).collect()
}
