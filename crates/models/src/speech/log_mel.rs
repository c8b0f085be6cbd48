//! Spectrograms of speech.

use std::{f64::consts::PI, fmt, sync::Arc};

use burn::tensor::{Device, Tensor, TensorData};
use realfft::{RealFftPlanner, RealToComplex};

use super::SpeechError;

/// Samples of a Fourier transform: 25 ms.
const WINDOW: usize = 400;
/// Samples from one frame to the next: 10 ms.
const HOP: usize = 160;
/// Frequencies of a transform.
const BINS: usize = WINDOW / 2 + 1;

/// Spectrograms of speech as Whisper reads them: every 10 ms, the power in bands whose widths follow the mel scale, as a logarithm.
///
/// # Source
///
/// "Robust speech recognition via large-scale weak supervision" (arXiv:2212.04356), section 2.2. PyTorch equivalent:
/// `WhisperFeatureExtractor` of Hugging Face's `transformers`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use burn_attn_models::speech::LogMel;
///
/// let hum: Vec<f32> = (0..LogMel::SAMPLE_RATE).map(|i| (i as f32 * 0.1).sin()).collect();
/// let spectrogram = LogMel::new(80).forward(&hum, 3000, &Device::default());
/// assert_eq!(spectrogram.dims(), [1, 80, 3000]);
/// # }
/// ```
pub struct LogMel {
    transform: Arc<dyn RealToComplex<f64>>,
    hann: Vec<f64>,
    bands: Vec<Band>,
}

/// The weights of the frequencies from `first` on in one band.
#[derive(Debug)]
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl fmt::Debug for LogMel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogMel")
            .field("bands", &self.bands)
            .finish_non_exhaustive()
    }
}

impl LogMel {
    /// Samples in a second.
    pub const SAMPLE_RATE: usize = 16_000;

    /// Spectrograms of `n_mels` bands between 0 and 8 kHz: 80, or 128 in Whisper large v3.
    ///
    /// # Panics
    ///
    /// When `n_mels` is 0.
    pub fn new(n_mels: usize) -> Self {
        assert!(n_mels > 0, "LogMel: n_mels must be positive, got 0");
        let turn = |i: usize| 2.0 * PI * i as f64 / WINDOW as f64;
        Self {
            transform: RealFftPlanner::new().plan_fft_forward(WINDOW),
            hann: (0..WINDOW).map(|i| 0.5 - 0.5 * turn(i).cos()).collect(),
            bands: bands(n_mels),
        }
    }

    /// The spectrogram of the first `160 · n_frames` samples, with silence after the last one, `[1, n_mels, n_frames]`. Samples are in −1 to 1, [`SAMPLE_RATE`](Self::SAMPLE_RATE) a
    /// second. What is more than 80 dB below the greatest power counts as 80 dB below it.
    ///
    /// # Panics
    ///
    /// When a sample is not finite.
    ///
    /// # Cost
    ///
    /// A Fourier transform of 400 samples for each frame.
    pub fn forward(&self, samples: &[f32], n_frames: usize, device: &Device) -> Tensor<3> {
        let samples = &samples[..samples.len().min(HOP * n_frames)];
        if let Err(error) = SpeechError::check(samples) {
            panic!("LogMel: {error}");
        }
        let n_mels = self.bands.len();
        let mut logs = vec![0.0; n_mels * n_frames];
        let mut frame = self.transform.make_input_vec();
        let mut spectrum = self.transform.make_output_vec();
        let mut scratch = self.transform.make_scratch_vec();
        for column in 0..n_frames {
            for (i, (number, hann)) in frame.iter_mut().zip(&self.hann).enumerate() {
                *number = hann * reflected(samples, HOP * n_frames, column * HOP + i);
            }
            let transformed =
                self.transform
                    .process_with_scratch(&mut frame, &mut spectrum, &mut scratch);
            transformed.expect("the vectors have the lengths of the transform");
            let power: Vec<f64> = spectrum.iter().map(|number| number.norm_sqr()).collect();
            let logs = logs[column..].iter_mut().step_by(n_frames);
            for (band, log) in self.bands.iter().zip(logs) {
                let power = band.weights.iter().zip(&power[band.first..]);
                let power: f64 = power.map(|(weight, power)| weight * power).sum();
                *log = power.max(1e-10).log10();
            }
        }
        let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let numbers = logs.iter().map(|log| (log.max(greatest - 8.0) + 4.0) / 4.0);
        let numbers = numbers.map(|number| number as f32).collect::<Vec<f32>>();
        Tensor::from_data(TensorData::new(numbers, [1, n_mels, n_frames]), device)
    }
}

/// Sample `at` of a recording of `len` samples, before which and after which half a window of it is repeated backwards.
fn reflected(samples: &[f32], len: usize, at: usize) -> f64 {
    let at = at.abs_diff(WINDOW / 2);
    let at = at.min((2 * (len - 1)).saturating_sub(at));
    samples.get(at).map_or(0.0, |&sample| f64::from(sample))
}

/// Triangles between frequencies that are equally far apart on the mel scale, each of area 1.
fn bands(n_mels: usize) -> Vec<Band> {
    let step = LogMel::SAMPLE_RATE as f64 / WINDOW as f64;
    let last = mel(LogMel::SAMPLE_RATE as f64 / 2.0);
    let edge = |index: usize| hertz(last * index as f64 / (n_mels + 1) as f64);
    let band = |index: usize| {
        let [low, centre, high] = [index, index + 1, index + 2].map(edge);
        let weight = |bin: usize| {
            let frequency = bin as f64 * step;
            let rising = (frequency - low) / (centre - low);
            let falling = (high - frequency) / (high - centre);
            rising.min(falling).max(0.0) * 2.0 / (high - low)
        };
        let weights: Vec<f64> = (0..BINS).map(weight).collect();
        let is_some = |weight: &f64| *weight > 0.0;
        let first = weights.iter().position(is_some).unwrap_or(0);
        let end = weights
            .iter()
            .rposition(is_some)
            .map_or(first, |last| last + 1);
        Band {
            first,
            weights: weights[first..end].to_vec(),
        }
    };
    (0..n_mels).map(band).collect()
}

/// Slaney's mel scale is linear up to this frequency (Hz), and the frequency in mels.
const LINEAR_HZ: f64 = 1000.0;
const LINEAR_MELS: f64 = 15.0;

/// Mels for each factor of e above that frequency.
fn steps() -> f64 {
    27.0 / 6.4_f64.ln()
}

fn mel(hertz: f64) -> f64 {
    match hertz < LINEAR_HZ {
        true => hertz * LINEAR_MELS / LINEAR_HZ,
        false => LINEAR_MELS + (hertz / LINEAR_HZ).ln() * steps(),
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < LINEAR_MELS {
        true => mel * LINEAR_HZ / LINEAR_MELS,
        false => LINEAR_HZ * ((mel - LINEAR_MELS) / steps()).exp(),
    }
}
