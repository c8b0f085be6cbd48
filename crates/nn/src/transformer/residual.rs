//! The sum around every sublayer, and where its norms are.

use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig},
    tensor::{Device, Tensor},
};

use super::{Norm, NormConfig};
use crate::dropout;

/// Where a sublayer (attention or feed-forward) is normalised.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NormPlacement {
    /// Its input: `x + sublayer(norm(x))`. Trains stably without warmup ("On layer normalization in the transformer
    /// architecture", arXiv:2002.04745); GPT-2, Llama. PyTorch equivalent: `norm_first=True`.
    Pre,
    /// The sum: `norm(x + sublayer(x))`, as in "Attention is all you need"; BERT. PyTorch equivalent:
    /// `norm_first=False`.
    Post,
    /// Its input and its output, with a norm of its own each: `x + norm(sublayer(norm(x)))` ("CogView",
    /// arXiv:2105.13290, section 2.4); Gemma 2 (arXiv:2408.00118, section 2).
    Sandwich,
}

/// The sum of a sublayer's input and output, with the norms of a [`NormPlacement`].
///
/// ```text
/// Pre:      x + dropout(sublayer(norm(x)))
/// Post:     norm(x + dropout(sublayer(x)))
/// Sandwich: x + dropout(output_norm(sublayer(norm(x))))
/// ```
#[derive(Module, Debug)]
pub struct Residual {
    /// The norm before the sublayer, or (`Post`) of the sum.
    pub norm: Norm,
    /// The norm behind the sublayer (`Sandwich`).
    pub output_norm: Option<Norm>,
    dropout: Dropout,
    #[module(skip)]
    placement: NormPlacement,
}

impl Residual {
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

    /// Runs `sublayer` inside the sum, and hands out what it returns besides its result.
    pub(super) fn forward<T>(
        &self,
        x: Tensor<3>,
        sublayer: impl FnOnce(Tensor<3>) -> (Tensor<3>, T),
    ) -> (Tensor<3>, T) {
        if self.placement == NormPlacement::Post {
            let (y, extra) = sublayer(x.clone());
            return (self.norm.forward(x + dropout(&self.dropout, y)), extra);
        }
        let (y, extra) = sublayer(self.norm.forward(x.clone()));
        let y = match &self.output_norm {
            Some(norm) => norm.forward(y),
            None => y,
        };
        (x + dropout(&self.dropout, y), extra)
    }
}
