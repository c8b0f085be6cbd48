//! The residual sum around every sublayer, and the placement of its norms.

use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig},
    tensor::{Device, Tensor, assert_shape},
};

use super::{Norm, NormConfig};
use crate::dropout;

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
/// # Source
///
/// He et al., "Deep residual learning for image recognition" (arXiv:1512.03385), section 3.2; the placements name their sources.
#[derive(Module, Debug)]
pub struct SublayerConnection {
    /// The norm before the sublayer, of the sum (`Post`) or after the sublayer (`PostSublayer`).
    pub norm: Norm,
    /// The second norm, after the sublayer (`Sandwich`).
    pub output_norm: Option<Norm>,
    dropout: Dropout,
    #[module(skip)]
    placement: NormPlacement,
}

impl SublayerConnection {
    pub(super) fn new(
        d_model: usize,
        dropout: f64,
        norm: &NormConfig,
        placement: NormPlacement,
        device: &Device,
    ) -> Self {
        let sandwich = placement == NormPlacement::Sandwich;
        Self {
            norm: norm.init(d_model, device),
            output_norm: sandwich.then(|| norm.init(d_model, device)),
            dropout: DropoutConfig::new(dropout).init(),
            placement,
        }
    }

    /// Where the norms are.
    pub fn placement(&self) -> NormPlacement {
        self.placement
    }

    /// The input of the sublayer for `x`, both `[batch, len, d_model]`. Panics when the width is not `d_model` and there is a norm here.
    pub fn input(&self, x: Tensor<3>) -> Tensor<3> {
        match self.placement {
            NormPlacement::Pre | NormPlacement::Sandwich => self.norm.forward(x),
            NormPlacement::Post | NormPlacement::PostSublayer => x,
        }
    }

    /// The sum of `x` and `y`, the sublayer's output for [`input(x)`](Self::input), all `[batch, len, d_model]`. Panics when the shapes
    /// differ.
    pub fn sum(&self, x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        let [batch, len, d_model] = x.dims();
        assert_shape!(y, [batch, len, d_model]);
        let dropout = |y| dropout(&self.dropout, y);
        match (self.placement, &self.output_norm) {
            (NormPlacement::Post, _) => self.norm.forward(x + dropout(y)),
            (NormPlacement::PostSublayer, _) => x + dropout(self.norm.forward(y)),
            (_, Some(norm)) => x + dropout(norm.forward(y)),
            (_, None) => x + dropout(y),
        }
    }
}
