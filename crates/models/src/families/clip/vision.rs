//! From images to states and vectors.

use burn::{
    module::{Module, Param},
    nn::{Linear, conv::Conv2d},
    tensor::Tensor,
};
use burn_attn::{
    CrossAttention, CrossAttentionInput, FeedForward, LayerInput, Norm, TransformerStack,
    TransformerStackOutput, normalised,
};

use crate::families::grid::embedded;

/// The encoder of images of a CLIP or a SigLIP.
///
/// # Source
///
/// arXiv:2103.00020, section 2.4; arXiv:2303.15343. PyTorch equivalents: `CLIPVisionModel`, `CLIPVisionModelWithProjection` and `SiglipVisionModel`
/// of Hugging Face's `transformers`.
#[derive(Module, Debug)]
pub struct ClipVision {
    /// Makes a token of every patch.
    pub patches: Conv2d,
    /// `[d_model]`: the first token, whose state stands for the image (CLIP).
    pub class_token: Option<Param<Tensor<1>>>,
    /// `[len, d_model]`, added to all tokens.
    pub positions: Param<Tensor<2>>,
    /// Norm of the embedded tokens (CLIP).
    pub input_norm: Option<Norm>,
    /// The layers, and the norm after them.
    pub encoder: TransformerStack,
    /// Makes one vector of the states of all patches (SigLIP).
    pub pooling: Option<AttentionPooling>,
    /// From the pooled state to the vector of an image, if there is a projection.
    pub projection: Option<Linear>,
}

impl ClipVision {
    /// The states of all tokens, `[batch, len, d_model]`: that of the class token if there is one, then the patches row by row.
    ///
    /// Images `[batch, channels, height, width]` of another size than the table of positions is for are read with an interpolated one, as by
    /// `transformers` with `interpolate_pos_encoding=True`. Pixels that do not fill a patch at the right and at the bottom are left out.
    ///
    /// All states are normalised. `transformers` normalises only that of the class token in CLIP: its `last_hidden_state` is the last of
    /// [`forward_with_hidden_states`](Self::forward_with_hidden_states).
    ///
    /// # Panics
    ///
    /// When there are no images, the channels differ, or an image is smaller than a patch.
    ///
    /// # Cost
    ///
    /// The cost of the encoder for `len` tokens, and `2 · batch · channels · height · width · d_model` operations for the patches.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<3> {
        self.encoder.forward(self.embed(images))
    }

    /// As [`forward`](Self::forward), with the attention weights of every layer. This takes all scores once more, and memory for
    /// `batch · heads · len²` weights per layer.
    pub fn forward_with_weights(&self, images: Tensor<4>) -> TransformerStackOutput {
        self.encoder.forward_with_weights(self.embed(images))
    }

    /// As [`forward`](Self::forward), with the states after every layer, before the norm.
    pub fn forward_with_hidden_states(&self, images: Tensor<4>) -> TransformerStackOutput {
        self.encoder.forward_with_hidden_states(self.embed(images))
    }

    /// One state per image, `[batch, d_model]`, of the states of [`forward`](Self::forward): that of the class token, or what
    /// [`AttentionPooling`] makes of all. PyTorch equivalent: the `pooler_output` of `CLIPVisionModel` and `SiglipVisionModel`.
    pub fn pool(&self, states: Tensor<3>) -> Tensor<2> {
        match &self.pooling {
            Some(pooling) => pooling.forward(states),
            None => states.narrow(1, 0, 1).squeeze_dim(1),
        }
    }

    /// The vectors of images, `[batch, d_projection]`, not normalised: [pooled](Self::pool) states, projected if there is a projection.
    /// Panics and cost are those of [`forward`](Self::forward). PyTorch equivalent: the `pooler_output` of `get_image_features`.
    pub fn features(&self, images: Tensor<4>) -> Tensor<2> {
        projected(&self.projection, self.pool(self.forward(images)))
    }

    fn embed(&self, images: Tensor<4>) -> LayerInput {
        let special = self.class_token.iter().map(|token| token.val().unsqueeze());
        let (special, positions) = (special.collect(), self.positions.val().unsqueeze());
        let x = embedded("ClipVision", &self.patches, images, special, positions);
        LayerInput::new(normalised(&self.input_norm, x))
    }
}

/// Pools by attention: a learned vector asks all states, and a feed-forward network follows.
///
/// ```text
/// p      = attention(probe, states)
/// pooled = p + feed_forward(norm(p))
/// ```
///
/// # Source
///
/// "Set transformer" (arXiv:1810.00825), section 3.2; "Scaling vision transformers" (arXiv:2106.04560), appendix C. PyTorch equivalent:
/// `SiglipMultiheadAttentionPoolingHead` of Hugging Face's `transformers`.
#[derive(Module, Debug)]
pub struct AttentionPooling {
    /// `[1, 1, d_model]`: the query.
    pub probe: Param<Tensor<3>>,
    /// From the probe to the states.
    pub attention: CrossAttention,
    /// Before the feed-forward network.
    pub norm: Norm,
    /// Added to the output of the attention.
    pub feed_forward: FeedForward,
}

impl AttentionPooling {
    /// One vector `[batch, d_model]` for the states of each sequence, `[batch, len, d_model]`. Panics when the width is not `d_model`.
    ///
    /// It takes `4 · batch · len · d_model²` operations for the keys and values, and few for one query.
    pub fn forward(&self, states: Tensor<3>) -> Tensor<2> {
        let [batch, _, d_model] = states.dims();
        let probe = self.probe.val().expand([batch, 1, d_model]);
        let input = CrossAttentionInput::new(probe, states);
        let pooled = self.attention.forward(input).squeeze_dim::<2>(1);
        let added = self.feed_forward.forward(self.norm.forward(pooled.clone()));
        pooled + added
    }
}

/// Pooled states, projected if there is a projection.
pub(super) fn projected(projection: &Option<Linear>, pooled: Tensor<2>) -> Tensor<2> {
    match projection {
        Some(projection) => projection.forward(pooled),
        None => pooled,
    }
}
