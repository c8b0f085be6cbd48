//! From images to classes with a [`Vit`](crate::vit::Vit), and the attention rollout behind them; to objects with a [`Detr`](crate::detr::Detr); to classes of
//! pixels with a [`Segformer`](crate::segformer::Segformer).
//!
//! ```no_run
//! // Not run: it reads the weights, with the feature `hub` from the Hub.
//! use burn::tensor::Device;
//! use burn_attn_models::vision::ImageClassifier;
//! use burn_attn_models::vision::image::DynamicImage;
//!
//! let classifier = ImageClassifier::from_pretrained("google/vit-base-patch16-224", &Device::default())?;
//! let image = DynamicImage::new_rgb8(640, 480);
//! for guess in classifier.classify(&image)?.iter().take(3) {
//!     println!("{:.3} {}", guess.probability, guess.label);
//! }
//! # Ok::<(), burn_attn_models::vision::VisionError>(())
//! ```
//!
//! | file | what it says |
//! | --- | --- |
//! | `config.json`, weights | the model; `id2label`, what its classes are called |
//! | `preprocessor_config.json`, or `image_processor` in `processor_config.json` | how an image is resized, cropped and normalised |
//!
//! Images are those of the crate [`image`], here without its file formats: a program that reads files depends on it with the features of its formats.
//! The crate does not apply the EXIF orientation of a photograph by itself: ask the decoder for its `ImageDecoder::orientation`, and give that to
//! [`DynamicImage::apply_orientation`](image::DynamicImage::apply_orientation).

pub use image;

mod classifier;
mod detector;
mod error;
mod kind;
mod processor;
mod rollout;
mod segmenter;

pub use classifier::{Guess, ImageClassifier};
pub use detector::ObjectDetector;
pub use error::VisionError;
pub use processor::{ImageProcessor, ImageSize};
pub use rollout::attention_rollout;
pub use segmenter::ImageSegmenter;
