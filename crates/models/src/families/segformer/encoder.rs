//! The stages of the encoder.

use burn::{
    module::Module,
    nn::{Dropout, Linear, conv::Conv2d},
    tensor::Tensor,
};
use burn_attn::{
    CrossAttention, CrossAttentionInput, FeedForwardActivation, Norm, SublayerConnection, dropout,
};

use crate::families::grid::{to_map, to_tokens};

/// Makes tokens of patches: a convolution with a stride, and a layer norm.
#[derive(Module, Debug)]
pub struct PatchEmbedding {
    /// From the channels of a patch to the width of a token.
    pub projection: Conv2d,
    /// The norm of every token.
    pub norm: Norm,
}

impl PatchEmbedding {
    /// The tokens of a map `[batch, channels, rows, columns]`, `[batch, len, d_model]`, and how many rows and columns of them there are.
    pub fn forward(&self, map: Tensor<4>) -> (Tensor<3>, [usize; 2]) {
        let (tokens, grid) = to_tokens(self.projection.forward(map));
        (self.norm.forward(tokens), grid)
    }
}

/// A feed-forward network with a convolution over the tokens beside each one, whose padding encodes the position: there are no other positions.
///
/// # Source
///
/// Mix-FFN, "SegFormer" (arXiv:2105.15203), equation 3. PyTorch equivalent: `SegformerMixMLP` of `transformers`.
#[derive(Module, Debug)]
pub struct MixFeedForward {
    /// `[d_model, d_ff]`
    pub linear_inner: Linear,
    /// A convolution of 3 × 3 tokens for each channel.
    pub depthwise: Conv2d,
    /// `[d_ff, d_model]`
    pub linear_outer: Linear,
    pub(super) dropout: Dropout,
    #[module(skip)]
    pub(super) activation: FeedForwardActivation,
}

impl MixFeedForward {
    /// The output for every token of a grid of `[rows, columns]`, `[batch, rows · columns, d_model]` as the input. Panics when there are not as
    /// many tokens. It takes `batch · rows · columns · d_ff · (4 · d_model + 18)` operations.
    pub fn forward(&self, x: Tensor<3>, grid: [usize; 2]) -> Tensor<3> {
        let inner = to_map(self.linear_inner.forward(x), grid);
        let (inner, _) = to_tokens(self.depthwise.forward(inner));
        let inner = dropout(&self.dropout, self.activation.forward(inner));
        self.linear_outer.forward(inner)
    }
}

/// One layer of a stage: attention with fewer keys than queries, and a [`MixFeedForward`].
///
/// # Source
///
/// "SegFormer" (arXiv:2105.15203), section 3.1; the reduction is that of "Pyramid vision transformer" (arXiv:2102.12122), section 3.3, as a
/// convolution. PyTorch equivalent: `SegformerLayer` of `transformers`.
#[derive(Module, Debug)]
pub struct SegformerBlock {
    /// Makes one token of a square of them for keys and values, unless every token gives its own.
    pub reduction: Option<PatchEmbedding>,
    /// From all tokens to the reduced ones.
    pub attention: CrossAttention,
    /// The residual sum and norm of the attention.
    pub attention_residual: SublayerConnection,
    /// The feed-forward network.
    pub feed_forward: MixFeedForward,
    /// The residual sum and norm of the feed-forward network.
    pub feed_forward_residual: SublayerConnection,
}

impl SegformerBlock {
    /// The states of the tokens of a grid of `[rows, columns]`, `[batch, rows · columns, d_model]` as the input, and, if wanted, the attention
    /// weights `[batch, heads, rows · columns, len_kv]`; `len_kv` is the number of whole squares of the reduction.
    ///
    /// # Panics
    ///
    /// When there are not as many tokens, or they are too few for one square.
    ///
    /// # Cost
    ///
    /// `4 · batch · rows · columns · len_kv · d_model` operations for the attention, those of four linear layers and of
    /// [`MixFeedForward::forward`]. The weights take all scores once more.
    pub fn forward(
        &self,
        x: Tensor<3>,
        grid: [usize; 2],
        with_weights: bool,
    ) -> (Tensor<3>, Option<Tensor<4>>) {
        let query = self.attention_residual.input(x.clone());
        let memory = match &self.reduction {
            Some(reduction) => {
                let ([rows, columns], [square, _]) = (grid, reduction.projection.kernel_size);
                assert!(
                    rows >= square && columns >= square,
                    "Segformer: {rows} × {columns} tokens cannot be reduced by {square}: the images are too small"
                );
                reduction.forward(to_map(query.clone(), grid)).0
            }
            None => query.clone(),
        };
        let input = CrossAttentionInput::new(query, memory);
        let (attended, weights) = match with_weights {
            true => {
                let output = self.attention.forward_with_weights(input);
                (output.states, Some(output.weights))
            }
            false => (self.attention.forward(input), None),
        };
        let x = self.attention_residual.sum(x, attended);
        let residual = &self.feed_forward_residual;
        let output = self.feed_forward.forward(residual.input(x.clone()), grid);
        (residual.sum(x, output), weights)
    }
}

/// Blocks on a map of the same rows and columns.
#[derive(Module, Debug)]
pub struct SegformerStage {
    /// Makes a token of every patch; patches overlap.
    pub patches: PatchEmbedding,
    /// The layers.
    pub blocks: Vec<SegformerBlock>,
    /// The norm after them.
    pub norm: Norm,
}
