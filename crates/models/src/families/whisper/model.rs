//! From a spectrogram to the memory of the decoder.

use burn::{
    module::Module,
    nn::conv::Conv1d,
    tensor::{Tensor, activation::gelu},
};
use burn_attn::{LayerInput, dropout, positions::Learned};

use crate::seq2seq::{Memory, Seq2Seq, Seq2SeqState};

/// A model that turns speech into text.
///
/// # Source
///
/// "Robust speech recognition via large-scale weak supervision" (arXiv:2212.04356), section 2.2. PyTorch equivalent:
/// `WhisperForConditionalGeneration` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Int, Tensor};
/// use burn_attn_models::{generate::{GenerateOptions, generate}, whisper::WhisperConfig};
///
/// let device = Device::default();
/// let model = WhisperConfig::new(100).with_n_mels(8).with_max_frames(30).with_d_model(32).with_n_heads(4).init(&device);
/// let spectrogram = Tensor::random([1, 8, 60], Distribution::Default, &device);
/// let memory = model.encode(spectrogram.clone());
/// let target = Tensor::<2, Int>::from_data([[1, 11]], &device);
/// assert_eq!(model.seq2seq.decode(target, &memory).dims(), [1, 2, 100]);
///
/// let outputs = generate(&model.seq2seq, model.start(spectrogram), &[vec![1]], &GenerateOptions::new(5))?;
/// assert_eq!(outputs[0].tokens.len(), 5);
/// # Ok::<(), burn_attn_models::generate::GenerateError>(())
/// ```
#[derive(Module, Debug)]
pub struct Whisper {
    /// From mel bands to the width of the model.
    pub conv1: Conv1d,
    /// Makes one frame of two.
    pub conv2: Conv1d,
    /// Added to the frames.
    pub positions: Learned,
    /// The encoder of the frames, and the decoder with its tokens.
    pub seq2seq: Seq2Seq,
}

impl Whisper {
    /// Number of mel bands of a spectrogram.
    pub fn n_mels(&self) -> usize {
        let [_, n_mels, _] = self.conv1.weight.dims();
        n_mels
    }

    /// Longest recording, in frames of 20 ms.
    pub fn max_frames(&self) -> usize {
        let [max_frames, _] = self.positions.table.dims();
        max_frames
    }

    /// Number of tokens in the vocabulary.
    pub fn vocab_size(&self) -> usize {
        let [vocab_size, _] = self.seq2seq.embedding.weight.dims();
        vocab_size
    }

    /// Encodes spectrograms, `[batch, n_mels, n_frames]`: those of `speech::LogMel`, with the feature `speech`. Published models were
    /// trained on 30 seconds, silence included. The memory has one state for every two frames, `[batch, ⌈n_frames / 2⌉, d_model]`.
    ///
    /// # Panics
    ///
    /// When there are not [`n_mels`](Self::n_mels) bands, no frames, or more than twice [`max_frames`](Self::max_frames).
    ///
    /// # Cost
    ///
    /// The cost of the encoder, for as many tokens as there are states, and `6 · batch · n_frames · d_model · (n_mels + d_model / 2)` operations.
    pub fn encode(&self, spectrogram: Tensor<3>) -> Memory {
        let [batch, bands, n_frames] = spectrogram.dims();
        let (n_mels, most) = (self.n_mels(), 2 * self.max_frames());
        assert!(
            bands == n_mels,
            "Whisper: a spectrogram of {bands} bands for a model of {n_mels}"
        );
        assert!(
            (1..=most).contains(&n_frames),
            "Whisper: a spectrogram has {n_frames} frames, but must have 1 to {most}"
        );
        let (dtype, device) = (self.conv1.weight.dtype(), spectrogram.device());
        let len = n_frames.div_ceil(2);
        let states = match batch {
            // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
            0 => {
                let [_, d_model] = self.positions.table.dims();
                Tensor::zeros([0, len, d_model], (&device, dtype))
            }
            _ => {
                let frames = gelu(self.conv1.forward(spectrogram.cast(dtype)));
                let frames = gelu(self.conv2.forward(frames)).swap_dims(1, 2);
                let frames = dropout(&self.seq2seq.dropout, self.positions.forward(frames));
                let encoder = &self.seq2seq.transformer.encoder;
                encoder.forward(LayerInput::new(frames))
            }
        };
        Memory {
            lengths: vec![len; batch],
            states,
        }
    }

    /// Encodes spectrograms, and returns a state to [generate](crate::generate) a text for each, with the model
    /// [`seq2seq`](Self::seq2seq). Shapes, panics and cost are those of [`encode`](Self::encode).
    pub fn start(&self, spectrogram: Tensor<3>) -> Seq2SeqState {
        self.seq2seq.start_from(self.encode(spectrogram))
    }
}
