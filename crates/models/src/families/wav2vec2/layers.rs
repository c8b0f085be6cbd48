//! The convolutions before the encoder: of samples, and of frames.

use burn::{
    module::{Module, Param},
    nn::{GroupNorm, conv::Conv1d},
    tensor::{Tensor, module::conv1d, ops::ConvOptions},
};
use burn_attn::{FeedForwardActivation, Norm};

use crate::loss::wide;

/// A convolution of the feature encoder, with its norm, if it has one, and its activation.
///
/// # Source
///
/// "wav2vec 2.0" (arXiv:2006.11477), section 2. PyTorch equivalents: `Wav2Vec2GroupNormConvLayer`, `Wav2Vec2LayerNormConvLayer` and
/// `Wav2Vec2NoLayerNormConvLayer` of `transformers`.
#[derive(Module, Debug)]
pub struct FeatureLayer {
    /// From the channels of the layer before, or the samples, to those of this one.
    pub convolution: Conv1d,
    /// The norm of every channel over all frames, if there is one.
    pub group_norm: Option<GroupNorm>,
    /// The norm of every frame over its channels, if there is one.
    pub norm: Option<Norm>,
    #[module(skip)]
    pub(super) activation: FeedForwardActivation,
}

impl FeatureLayer {
    /// Frames `[batch, n_channels, n_frames]` of `[batch, channels, len]`. Panics when the channels differ, or `len` is less than the width of the
    /// kernel. It takes `2 · batch · n_frames · kernel · channels · n_channels` operations.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let mut x = self.convolution.forward(x);
        if let Some(norm) = &self.group_norm {
            x = norm.forward(x);
        }
        if let Some(norm) = &self.norm {
            x = norm.forward(x.swap_dims(1, 2)).swap_dims(1, 2);
        }
        self.activation.forward(x)
    }

    /// The number of frames that the layer makes of `len` frames of the layer before.
    pub(super) fn frames(&self, len: usize) -> usize {
        let rest = len.checked_sub(self.convolution.kernel_size);
        rest.map_or(0, |rest| rest / self.convolution.stride + 1)
    }
}

/// Encodes the position of a frame by the frames around it: a convolution in groups of channels, with a weight norm for each place in the kernel.
///
/// ```text
/// weight = magnitude · direction / ‖direction‖      the norm of each place in the kernel, over all channels
/// ```
///
/// # Source
///
/// "wav2vec 2.0" (arXiv:2006.11477), section 2; "Weight normalization" (arXiv:1602.07868). PyTorch equivalent:
/// `Wav2Vec2PositionalConvEmbedding` of `transformers`.
#[derive(Module, Debug)]
pub struct PositionalConvolution {
    /// `[1, 1, kernel]`
    pub magnitude: Param<Tensor<3>>,
    /// `[d_model, d_model / groups, kernel]`
    pub direction: Param<Tensor<3>>,
    /// `[d_model]`
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    pub(super) activation: FeedForwardActivation,
}

impl PositionalConvolution {
    /// What is to be added to frames `[batch, len, d_model]`, of the same shape; there are zeros around them. Panics when the width differs. It takes
    /// `2 · batch · len · kernel · d_model² / groups` operations.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [d_model, d_group, kernel] = self.direction.dims();
        let [_, len, _] = x.dims();
        let options = ConvOptions::new([1], [kernel / 2], [1], d_model / d_group);
        let (weight, bias) = (self.weight(), self.bias.val());
        let x = conv1d(x.swap_dims(1, 2), weight, Some(bias), options);
        // With an even kernel there is one more.
        let x = self.activation.forward(x.narrow(2, 0, len));
        x.swap_dims(1, 2)
    }

    /// The weight of the convolution, `[d_model, d_model / groups, kernel]`.
    pub fn weight(&self) -> Tensor<3> {
        let dtype = self.direction.dtype();
        // The sum of that many squares is too large for f16.
        let direction = self.direction.val().cast(wide(dtype));
        let norm = direction.clone().square().sum_dim(0).sum_dim(1).sqrt();
        let factor = self.magnitude.val().cast(wide(dtype)) / norm;
        (direction * factor).cast(dtype)
    }
}
