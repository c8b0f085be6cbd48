//! The residual sum around every sublayer, and the placement of its norms.

use burn::{
    config::Config,
    module::{Module, Param},
    nn::Dropout,
    tensor::{Tensor, TensorData, assert_shape},
};
use burn_attn_ops::{AttentionDropout, next_dropout_seed};

use crate::{
    Norm, dropout,
    dropout::is_active,
    normalised,
    parameter::{floats, wide},
};

/// Where the norms of a sublayer (attention or feed-forward network) are.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NormPlacement {
    /// Before the sublayer: `x + sublayer(norm(x))`. Trains stably without warmup ("On layer normalization in the transformer
    /// architecture", arXiv:2002.04745); GPT-2, Llama. PyTorch equivalent: `norm_first=True`.
    Pre,
    /// After the sum: `norm(x + sublayer(x))`, as in "Attention is all you need"; BERT. PyTorch equivalent:
    /// `norm_first=False`.
    Post,
    /// Before and after the sublayer, two norms: `x + norm(sublayer(norm(x)))` ("CogView",
    /// arXiv:2105.13290, section 2.4); Gemma 2 (arXiv:2408.00118, section 2).
    Sandwich,
    /// After the sublayer: `x + norm(sublayer(x))`; OLMo 2 (arXiv:2501.00656, section 2), Swin v2 (arXiv:2111.09883, section 3.2).
    PostSublayer,
}

/// The sum of a sublayer's input and output, with the norms of a [`NormPlacement`].
///
/// ```text
/// Pre:      x + dropout(sublayer(norm(x)))
/// Post:     norm(x + dropout(sublayer(x)))
/// Sandwich: x + dropout(output_norm(sublayer(norm(x))))
/// PostSublayer: x + dropout(norm(sublayer(x)))
/// ```
///
/// A [layer scale](crate::BlockConfig::layer_scale) multiplies what is added to `x`; [stochastic depth](crate::BlockConfig::stochastic_depth) leaves
/// it out for some sequences in training.
///
/// # Source
///
/// He et al., "Deep residual learning for image recognition" (arXiv:1512.03385), section 3.2; the placements name their sources.
#[derive(Module, Debug)]
pub struct SublayerConnection {
    /// The norm before the sublayer, of the sum (`Post`) or after the sublayer (`PostSublayer`).
    pub norm: Option<Norm>,
    /// The second norm, after the sublayer (`Sandwich`).
    pub output_norm: Option<Norm>,
    /// The factor on every number that is added, if there is a layer scale: `[d_model]`.
    pub scale: Option<Param<Tensor<1>>>,
    pub(super) dropout: Dropout,
    pub(super) stochastic_depth: Dropout,
    #[module(skip)]
    pub(super) placement: NormPlacement,
}

impl SublayerConnection {
    /// Where the norms are.
    pub fn placement(&self) -> NormPlacement {
        self.placement
    }

    /// The input of the sublayer for `x`, both `[batch, len, d_model]`. Panics when the width is not `d_model` and there is a norm here.
    pub fn input(&self, x: Tensor<3>) -> Tensor<3> {
        match self.placement {
            NormPlacement::Pre | NormPlacement::Sandwich => normalised(&self.norm, x),
            NormPlacement::Post | NormPlacement::PostSublayer => x,
        }
    }

    /// The sum of `x` and `y`, the sublayer's output for [`input(x)`](Self::input), all `[batch, len, d_model]`. Panics when the shapes
    /// differ.
    pub fn sum(&self, x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        let [batch, len, d_model] = x.dims();
        assert_shape!(y, [batch, len, d_model]);
        match self.placement {
            NormPlacement::Post => normalised(&self.norm, x + self.branch(y)),
            NormPlacement::PostSublayer => x + self.branch(normalised(&self.norm, y)),
            NormPlacement::Pre | NormPlacement::Sandwich => {
                x + self.branch(normalised(&self.output_norm, y))
            }
        }
    }

    /// What is added to the input: `y`, scaled, and in training dropped in part or, for some sequences, as a whole.
    fn branch(&self, y: Tensor<3>) -> Tensor<3> {
        let y = match &self.scale {
            Some(scale) => scaled(y, floats(scale).unsqueeze()),
            None => y,
        };
        let y = dropout(&self.dropout, y);
        let (device, [batch, _, _]) = (y.device(), y.dims());
        if batch == 0 || !is_active(&self.stochastic_depth, &device) {
            return y;
        }
        // Drawn on the host, so that every backend drops the same sequences.
        let depth = AttentionDropout {
            probability: self.stochastic_depth.prob,
            seed: next_dropout_seed(),
        };
        let factors = (0..batch).map(|item| match depth.keep(item, 0, 0, 0) {
            true => depth.kept_scale(),
            false => 0.0,
        });
        let factors = TensorData::new(factors.collect::<Vec<f64>>(), [batch, 1, 1]);
        let factors = Tensor::from_data(factors, (&device, wide(y.dtype())));
        scaled(y, factors)
    }
}

/// `y · factors` in [`wide`]: bf16 would round a factor of `1 / 0.9` to 1.109, and make all that is added 0.16 % smaller.
fn scaled(y: Tensor<3>, factors: Tensor<3>) -> Tensor<3> {
    let dtype = y.dtype();
    (y.cast(wide(dtype)) * factors.cast(wide(dtype))).cast(dtype)
}
