//! Recordings for models that read samples.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use serde_json::json;

use super::SpeechError;
use crate::pretrained::{
    AUDIO_SETTINGS, ConfigFile, PretrainedError, Wanted, folder_with, preprocessor,
};

/// Added to a variance.
const EPSILON: f64 = 1e-7;

/// Pads recordings to one length and normalises them, as a [`Wav2Vec2`](crate::wav2vec2::Wav2Vec2) reads them.
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
/// let batch = processor.forward(&[&[0.1, -0.2, 0.4], &[0.5, 0.3]], 16_000, &Device::default())?;
/// assert_eq!(batch.samples.dims(), [2, 3]);
/// assert_eq!(batch.seen_lengths(), Some(&[3, 2][..]));
/// # Ok::<(), burn_attn_models::speech::SpeechError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AudioProcessor {
    /// Samples in a second that the model was trained on. They are not resampled.
    pub sample_rate: usize,
    /// Whether a recording is normalised to a mean of 0 and a variance of 1.
    pub normalizes: bool,
    /// The value of the samples after a recording that is shorter than others.
    pub padding: f64,
    /// Whether the model gets the length of each recording. If not, padding is normalised as a part of the recording.
    pub has_lengths: bool,
}

/// Recordings as a model reads them.
#[derive(Clone, Debug)]
pub struct AudioBatch {
    /// `[batch, len]`
    pub samples: Tensor<2>,
    /// The number of samples of each recording: for [`Wav2Vec2::decode`](crate::wav2vec2::Wav2Vec2::decode).
    pub lengths: Vec<usize>,
    has_lengths: bool,
}

impl AudioBatch {
    /// The lengths if the model gets them: beside `samples`, the argument of [`Wav2Vec2::forward`](crate::wav2vec2::Wav2Vec2::forward).
    pub fn seen_lengths(&self) -> Option<&[usize]> {
        self.has_lengths.then_some(self.lengths.as_slice())
    }
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
    /// What `preprocessor_config.json` says, in a folder or of a [name on the Hub](crate::pretrained), or the `feature_extractor` of
    /// `processor_config.json`, which comes first.
    ///
    /// # Errors
    ///
    /// When the file is missing, or has a setting that is not supported.
    pub fn from_pretrained(source: impl AsRef<Path>) -> Result<Self, PretrainedError> {
        let folder = folder_with(source.as_ref(), Wanted::Preprocessor)?;
        let (path, fields) = preprocessor(&folder, "feature_extractor", AUDIO_SETTINGS)?;
        let mut file = ConfigFile::of_fields(path, "wav2vec 2.0", fields);
        file.only("feature_extractor_type", json!("Wav2Vec2FeatureExtractor"))?;
        file.only("feature_size", json!(1))?;
        file.only("padding_side", json!("right"))?;
        // Fields of names, and of the form of results.
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

    /// Recordings, `sample_rate` samples a second in −1 to 1, as a batch `[recordings, len]` of the longest one's length.
    ///
    /// # Errors
    ///
    /// When the sample rate is not [that of the model](Self::sample_rate), a recording has no samples, or a sample is not finite.
    ///
    /// # Cost
    ///
    /// A few operations for each number of the batch.
    pub fn forward(
        &self,
        recordings: &[&[f32]],
        sample_rate: usize,
        device: &Device,
    ) -> Result<AudioBatch, SpeechError> {
        if sample_rate != self.sample_rate {
            return Err(SpeechError::SampleRate {
                found: sample_rate,
                expected: self.sample_rate,
            });
        }
        for (row, samples) in recordings.iter().enumerate() {
            if samples.is_empty() {
                return Err(SpeechError::Empty(row));
            }
            SpeechError::check(samples)
                .map_err(|error| SpeechError::Recording(row, error.into()))?;
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
        Ok(AudioBatch {
            samples: Tensor::from_data(batch, device),
            lengths,
            has_lengths: self.has_lengths,
        })
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
