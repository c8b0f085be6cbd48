//! From images to objects.

use std::path::Path;

use image::DynamicImage;

use super::{
    ImageProcessor, VisionError,
    classifier::{config, labels},
};
use crate::{
    detr::{self, Detection, Detr, post_process},
    pretrained::LoadOptions,
};

/// A [`Detr`] with what turns images into its input beside it.
///
/// ```no_run
/// // Not run: it reads the weights, with the feature `hub` from the Hub.
/// use burn::tensor::Device;
/// use burn_attn_models::vision::{ObjectDetector, image::DynamicImage};
///
/// let detector = ObjectDetector::from_pretrained("facebook/detr-resnet-50", &Device::default())?;
/// let image = DynamicImage::new_rgb8(640, 480);
/// for found in detector.detect(&image, 0.9)? {
///     println!("{} at {:?}", detector.labels[found.label], found.corners);
/// }
/// # Ok::<(), burn_attn_models::vision::VisionError>(())
/// ```
#[derive(Debug)]
pub struct ObjectDetector {
    /// The model.
    pub model: Detr,
    /// Makes the input of the model from an image.
    pub processor: ImageProcessor,
    /// The names of the classes.
    pub labels: Vec<String>,
}

impl ObjectDetector {
    /// Loads a [`Detr`] and the files beside it, from a folder or a [name on the Hub](crate::pretrained). A class without a name in `id2label`
    /// is called by its number.
    ///
    /// # Errors
    ///
    /// As [`detr::from_pretrained`] and [`ImageProcessor::from_pretrained`], and when the model has no heads.
    ///
    /// # Cost
    ///
    /// The cost of [`detr::from_pretrained`].
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, VisionError> {
        let source = source.as_ref();
        let model = detr::from_pretrained(source, options)?;
        let head = model.class_head.as_ref();
        let head = head.ok_or_else(|| VisionError::NoHead {
            path: source.into(),
            tensor: "class_labels_classifier.weight",
        })?;
        // The last one is "no object".
        let [_, n_logits] = head.weight.dims();
        Ok(Self {
            processor: ImageProcessor::from_pretrained(source)?,
            labels: labels(&config(source)?, n_logits - 1),
            model,
        })
    }

    /// The objects in an image, with their boxes in the pixels of the image, as [`post_process`] returns it for this threshold. Boxes of a processor with a centre
    /// crop are those of the [cropped](ImageProcessor::cropped) image.
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
    /// The cost of [`ImageProcessor::forward`] and [`Detr::forward`].
    pub fn detect(
        &self,
        image: &DynamicImage,
        threshold: f32,
    ) -> Result<Vec<Detection>, VisionError> {
        let images = self
            .processor
            .forward(image, &self.model.queries.device())?;
        let [.., height, width] = images.dims();
        let size = match self.processor.crop {
            Some(_) => [height, width],
            None => [image.height() as usize, image.width() as usize],
        };
        let output = self.model.forward(images, None);
        Ok(post_process(&output, threshold, &[size]).swap_remove(0))
    }
}
