//! From samples to states and tokens.

use burn::{
    module::Module,
    nn::{Dropout, Linear},
    tensor::Tensor,
};
use burn_attn::{
    LayerInput, Norm, TransformerStack, TransformerStackOutput, dropout, linear, normalised,
    padding,
};

use super::{FeatureLayer, PositionalConvolution};

/// An encoder of recordings, with a head for CTC if it has one.
///
/// # Source
///
/// "wav2vec 2.0" (arXiv:2006.11477), sections 2 and 3.3; CTC is "Connectionist temporal classification" (Graves et al., 2006). PyTorch equivalents:
/// `Wav2Vec2ForCTC` of Hugging Face's `transformers`, and `Wav2Vec2Model` without a head.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_models::wav2vec2::{FeatureLayerConfig, Wav2Vec2Config};
///
/// let device = Device::default();
/// let features = vec![FeatureLayerConfig::new(8, 10, 5), FeatureLayerConfig::new(8, 4, 4)];
/// let config = Wav2Vec2Config::new().with_features(features).with_d_model(32).with_n_heads(4).with_n_layers(2).with_d_ff(64);
/// let model = config.with_position_kernel(8).with_position_groups(4).with_vocab_size(11).init(&device);
///
/// let samples = Tensor::random([2, 500], Distribution::Default, &device);
/// let lengths = [500, 300]; // the second recording is shorter
/// assert_eq!([model.frames(500), model.frames(300)], [24, 14]);
/// assert_eq!(model.forward(samples.clone(), Some(&lengths)).dims(), [2, 24, 32]);
/// let logits = model.logits(samples, Some(&lengths));
/// assert_eq!(logits.dims(), [2, 24, 11]);
/// let tokens = model.decode(logits, Some(&lengths));
/// assert!(tokens[1].len() <= 14);
/// ```
#[derive(Module, Debug)]
pub struct Wav2Vec2 {
    /// The feature encoder: convolutions that make frames of samples.
    pub features: Vec<FeatureLayer>,
    /// The norm of the features of every frame.
    pub feature_norm: Norm,
    /// From features to the width of the model.
    pub projection: Linear,
    /// Added to the frames.
    pub positions: PositionalConvolution,
    /// The norm before the layers, if they are post-norm.
    pub norm: Option<Norm>,
    pub(super) dropout: Dropout,
    /// The layers, and the norm after them if they are pre-norm.
    pub encoder: TransformerStack,
    /// From states to logits of tokens, if the model has a head.
    pub head: Option<Linear>,
    /// The CTC blank: the token of frames without a letter.
    pub blank: usize,
}

impl Wav2Vec2 {
    /// The state of every frame, `[batch, n_frames, d_model]`, of recordings `[batch, len]`; [`frames`](Self::frames) says how many of `len` samples.
    /// Published models read 16,000 samples a second, most of them normalised: `speech::AudioProcessor`, with the feature `speech`.
    ///
    /// Recording `b` has `lengths[b]` samples; the rest of its row is padding. The states of its frames are meaningless, and
    /// hidden from other frames. Where the first convolution has a norm over all frames, as in base models, the norm includes the padding, as in
    /// `transformers`. Such models were trained without lengths, on rows padded with zeros.
    ///
    /// # Panics
    ///
    /// When the samples are too few for a frame, or the lengths do not fit: one for each row, of a frame at least and `len` at most.
    ///
    /// # Cost
    ///
    /// The cost of the convolutions, [`FeatureLayer::forward`] and [`PositionalConvolution::forward`], and of the encoder for `n_frames` tokens. In published
    /// models, the first convolution alone keeps 410 bytes in f32 for each sample, 0.4 GB a minute: cut long recordings.
    pub fn forward(&self, samples: Tensor<2>, lengths: Option<&[usize]>) -> Tensor<3> {
        self.encoder.forward(self.embed(samples, lengths))
    }

    /// As [`forward`](Self::forward), with the attention weights of every layer. This takes all scores once more, and memory for
    /// `batch · heads · n_frames²` weights per layer.
    pub fn forward_with_weights(
        &self,
        samples: Tensor<2>,
        lengths: Option<&[usize]>,
    ) -> TransformerStackOutput {
        self.encoder
            .forward_with_weights(self.embed(samples, lengths))
    }

    /// As [`forward`](Self::forward), with the states after every layer, before the last norm of pre-norm layers.
    pub fn forward_with_hidden_states(
        &self,
        samples: Tensor<2>,
        lengths: Option<&[usize]>,
    ) -> TransformerStackOutput {
        self.encoder
            .forward_with_hidden_states(self.embed(samples, lengths))
    }

    /// The logits of the tokens for every frame, `[batch, n_frames, vocab_size]`.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward), and when the model has no head.
    ///
    /// # Cost
    ///
    /// The cost of [`forward`](Self::forward).
    pub fn logits(&self, samples: Tensor<2>, lengths: Option<&[usize]>) -> Tensor<3> {
        let head = self.head.as_ref();
        let head = head.expect("Wav2Vec2: the model has no head");
        linear(head, self.forward(samples, lengths))
    }

    /// The tokens of each recording by its [`logits`](Self::logits): the most probable of every frame, with repetitions merged and
    /// the [`blank`](Self::blank) removed. `speech::CtcVocabulary`, with the feature `speech`, has their text. PyTorch equivalent: `argmax`, and the
    /// grouping in `decode` of `Wav2Vec2CTCTokenizer`.
    ///
    /// With lengths, frames of padding have no tokens. Models whose [`forward`](Self::forward) gets no lengths need them here too.
    ///
    /// # Panics
    ///
    /// When the lengths are not as many as the recordings.
    ///
    /// # Cost
    ///
    /// `batch · n_frames · vocab_size` operations. Waits for the device.
    ///
    /// # Source
    ///
    /// "Connectionist temporal classification" (Graves et al., 2006), section 3.2, best path decoding.
    pub fn decode(&self, logits: Tensor<3>, lengths: Option<&[usize]>) -> Vec<Vec<u32>> {
        let [batch, n_frames, _] = logits.dims();
        let whole = vec![n_frames; batch];
        let frames = lengths.map_or(whole, |lengths| self.frames_of(lengths));
        let found = frames.len();
        assert!(
            found == batch,
            "Wav2Vec2: {found} lengths for the logits of {batch} recordings"
        );
        let best: Vec<u32> = logits.argmax(2).into_data().iter().collect();
        let rows = best.chunks(n_frames.max(1)).zip(frames);
        let decoded = rows.map(|(row, frames)| {
            let mut tokens = row[..frames.min(n_frames)].to_vec();
            tokens.dedup();
            tokens.retain(|&token| token as usize != self.blank);
            tokens
        });
        decoded.collect()
    }

    /// The number of frames of a recording with this many samples.
    pub fn frames(&self, samples: usize) -> usize {
        let layers = self.features.iter();
        layers.fold(samples, |len, layer| layer.frames(len))
    }

    fn frames_of(&self, lengths: &[usize]) -> Vec<usize> {
        lengths.iter().map(|&length| self.frames(length)).collect()
    }

    fn embed(&self, samples: Tensor<2>, lengths: Option<&[usize]>) -> LayerInput {
        let ([batch, len], device) = (samples.dims(), samples.device());
        let [_, d_model] = self.projection.weight.dims();
        let (n_frames, dtype) = (self.frames(len), self.projection.weight.dtype());
        assert!(
            n_frames > 0,
            "Wav2Vec2: {len} samples are too few for a frame"
        );
        let frames = lengths.map(|lengths| {
            let frames = self.frames_of(lengths);
            let fit = lengths.len() == batch && lengths.iter().all(|&length| length <= len);
            assert!(
                fit && !frames.contains(&0),
                "Wav2Vec2: lengths {lengths:?} do not fit {batch} recordings of {len} samples, or are too few for a frame"
            );
            frames
        });
        // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
        if batch == 0 {
            return LayerInput::new(Tensor::zeros([0, n_frames, d_model], (&device, dtype)));
        }
        let x = samples.cast(dtype).unsqueeze_dim::<3>(1);
        let x = self.features.iter().fold(x, |x, layer| layer.forward(x));
        let x = self.feature_norm.forward(x.swap_dims(1, 2));
        let mut x = self.projection.forward(x);
        if let Some(frames) = &frames {
            // The convolution of positions has zeros around a recording without padding too.
            let padding = padding(frames, n_frames, &device).unsqueeze_dim::<3>(2);
            x = x.mask_fill(padding.expand([batch, n_frames, d_model]), 0.0);
        }
        let x = normalised(&self.norm, x.clone() + self.positions.forward(x));
        let input = LayerInput::new(dropout(&self.dropout, x));
        match frames {
            Some(frames) => input.lengths(&frames),
            None => input,
        }
    }
}
