//! Recordings as models hear them that read samples.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use serde_json::json;

use crate::pretrained::{ConfigFile, PretrainedError, Wanted, folder_with, object};

const EXPECTED: &str = "the settings of an audio processor";
/// Added to a variance.
const EPSILON: f64 = 1e-7;

/// Pads recordings to one length and normalises them, as a [`Wav2Vec2`](crate::wav2vec2::Wav2Vec2) hears them.
///
/// ```text
/// (samples − mean) / √(variance + 1e-7)
/// ```
///
/// # Source
///
/// PyTorch equivalent: `Wav2Vec2FeatureExtractor` of Hugging Face's `transformers`, called with `padding=True`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn_models::speech::AudioProcessor;
///
/// let processor = AudioProcessor { has_lengths: true, ..AudioProcessor::default() };
/// let batch = processor.forward(&[&[0.1, -0.2, 0.4], &[0.5, 0.3]], &Device::default());
/// assert_eq!(batch.samples.dims(), [2, 3]);
/// assert_eq!(batch.lengths, Some(vec![3, 2]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AudioProcessor {
    /// Samples in a second that the model was trained on. They are not resampled.
    pub sample_rate: usize,
    /// Whether a recording is normalised to a mean of 0 and a variance of 1.
    pub normalizes: bool,
    /// What follows a recording that is shorter than others.
    pub padding: f64,
    /// Whether the model is told how long each recording is. If not, padding is normalised as if it were part of the recording.
    pub has_lengths: bool,
}

/// Recordings as a model hears them: the arguments of [`Wav2Vec2::forward`](crate::wav2vec2::Wav2Vec2::forward).
#[derive(Clone, Debug)]
pub struct AudioBatch {
    /// `[batch, len]`
    pub samples: Tensor<2>,
    /// The number of samples of each recording, if the model is told.
    pub lengths: Option<Vec<usize>>,
}

impl Default for AudioProcessor {
    /// As the reference has it: 16,000 samples a second, normalised, padded with zeros, without lengths.
    fn default() -> Self {
        Self {
            sample_rate: 16_000,
            normalizes: true,
            padding: 0.0,
            has_lengths: false,
        }
    }
}

impl AudioProcessor {
    /// What `preprocessor_config.json` says, in a folder or of a [name on the Hub](crate::pretrained).
    ///
    /// # Errors
    ///
    /// When the file is missing, or has a setting that is not supported.
    pub fn from_pretrained(source: impl AsRef<Path>) -> Result<Self, PretrainedError> {
        let wanted = Wanted::Preprocessor;
        let path = folder_with(source.as_ref(), wanted)?.join(wanted.file());
        let fields = object(&path, EXPECTED)?;
        let mut file = ConfigFile::of_fields(path, "speech", fields);
        file.only("feature_extractor_type", json!("Wav2Vec2FeatureExtractor"))?;
        file.only("feature_size", json!(1))?;
        file.only("padding_side", json!("right"))?;
        // Names, and the form of results.
        file.ignore("processor_class return_tensors");
        let default = Self::default();
        let processor = Self {
            sample_rate: file.size_or("sampling_rate", default.sample_rate)?,
            normalizes: file.flag("do_normalize", default.normalizes)?,
            padding: file.number("padding_value", default.padding)?,
            has_lengths: file.flag("return_attention_mask", default.has_lengths)?,
        };
        file.finish()?;
        Ok(processor)
    }

    /// Recordings, [`sample_rate`](Self::sample_rate) samples a second in −1 to 1, as a batch `[recordings, len]` of the longest one's length.
    ///
    /// # Panics
    ///
    /// When a recording has no samples, or a sample is not finite.
    ///
    /// # Cost
    ///
    /// A few operations for each number of the batch.
    pub fn forward(&self, recordings: &[&[f32]], device: &Device) -> AudioBatch {
        for (row, samples) in recordings.iter().enumerate() {
            assert!(
                !samples.is_empty(),
                "AudioProcessor: recording {row} has no samples"
            );
            if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
                let sample = samples[at];
                panic!("AudioProcessor: sample {at} of recording {row} is {sample}");
            }
        }
        let lengths: Vec<usize> = recordings.iter().map(|samples| samples.len()).collect();
        let len = lengths.iter().copied().max().unwrap_or(0);
        let mut batch = Vec::with_capacity(recordings.len() * len);
        for samples in recordings {
            let start = batch.len();
            batch.extend_from_slice(samples);
            if self.has_lengths {
                self.normalize(&mut batch[start..]);
            }
            batch.resize(start + len, self.padding as f32);
            if !self.has_lengths {
                self.normalize(&mut batch[start..]);
            }
        }
        let batch = TensorData::new(batch, [recordings.len(), len]);
        AudioBatch {
            samples: Tensor::from_data(batch, device),
            lengths: self.has_lengths.then_some(lengths),
        }
    }

    fn normalize(&self, samples: &mut [f32]) {
        if !self.normalizes {
            return;
        }
        let count = samples.len() as f64;
        let mean = samples.iter().map(|&sample| f64::from(sample)).sum::<f64>() / count;
        let square = |&sample: &f32| (f64::from(sample) - mean).powi(2);
        let variance = samples.iter().map(square).sum::<f64>() / count;
        let factor = (variance + EPSILON).sqrt().recip();
        for sample in samples {
            *sample = ((f64::from(*sample) - mean) * factor) as f32;
        }
    }
}
