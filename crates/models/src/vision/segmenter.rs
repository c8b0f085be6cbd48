//! From images to classes of pixels.

use std::path::Path;

use image::DynamicImage;

use super::{
    ImageProcessor, VisionError,
    classifier::{config, labels},
};
use crate::{
    pretrained::LoadOptions,
    segformer::{self, Segformer},
};

/// A [`Segformer`] with what turns images into its input beside it.
///
/// ```no_run
/// // Not run: it reads the weights, with the feature `hub` from the Hub.
/// use burn::tensor::Device;
/// use burn_attn_models::vision::{ImageSegmenter, image::DynamicImage};
///
/// let name = "nvidia/segformer-b0-finetuned-ade-512-512";
/// let segmenter = ImageSegmenter::from_pretrained(name, &Device::default())?;
/// let image = DynamicImage::new_rgb8(640, 480);
/// let classes = segmenter.segment(&image)?;
/// println!("{} at the top left", segmenter.labels[classes[0][0]]);
/// # Ok::<(), burn_attn_models::vision::VisionError>(())
/// ```
#[derive(Debug)]
pub struct ImageSegmenter {
    /// The model.
    pub model: Segformer,
    /// Makes the input of the model from an image.
    pub processor: ImageProcessor,
    /// The names of the classes.
    pub labels: Vec<String>,
}

impl ImageSegmenter {
    /// Loads a [`Segformer`] and the files beside it, from a folder or a [name on the Hub](crate::pretrained). A class without a name in `id2label`
    /// is called by its number.
    ///
    /// # Errors
    ///
    /// As [`segformer::from_pretrained`] and [`ImageProcessor::from_pretrained`], and when the model has no head for classes of pixels.
    ///
    /// # Cost
    ///
    /// The cost of [`segformer::from_pretrained`].
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, VisionError> {
        let source = source.as_ref();
        let model = segformer::from_pretrained(source, options)?;
        let head = model.decode_head.as_ref();
        let head = head.ok_or_else(|| VisionError::NoHead {
            path: source.into(),
            tensor: "decode_head.classifier.weight",
        })?;
        let [n_classes, ..] = head.classifier.weight.dims();
        Ok(Self {
            processor: ImageProcessor::from_pretrained(source)?,
            labels: labels(&config(source)?, n_classes),
            model,
        })
    }

    /// The class of every pixel of the image that the model reads, [resized and cropped](ImageProcessor::cropped), `[height][width]`: not of the pixels
    /// of `image`, for which [`Segformer::pixel_logits`] takes a size.
    ///
    /// # Errors
    ///
    /// As [`ImageProcessor::forward`].
    ///
    /// # Panics
    ///
    /// When the processor makes images that the model does not read: of other channels, or too small for [`Segformer::forward`].
    ///
    /// # Cost
    ///
    /// The cost of [`ImageProcessor::forward`] and [`Segformer::segment`].
    pub fn segment(&self, image: &DynamicImage) -> Result<Vec<Vec<usize>>, VisionError> {
        let device = self.model.stages[0].patches.projection.weight.device();
        let images = self.processor.forward(image, &device)?;
        let classes = self.model.segment(images);
        let [_, _, width] = classes.dims();
        let classes = classes.into_data();
        let classes: Vec<usize> = classes.iter::<i64>().map(|class| class as usize).collect();
        Ok(classes.chunks(width).map(<[usize]>::to_vec).collect())
    }
}
