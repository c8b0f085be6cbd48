//! Layers and stacks, from PyTorch's `nn.TransformerEncoder`, `nn.TransformerDecoder`, their layers and `nn.Transformer`, and from burn-nn's
//! `TransformerEncoder` and `TransformerDecoder`.

use burn_attn::{
    CausalTransformer, FeedForward, Norm, NormConfig, NormPlacement, Residual, Transformer,
    TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerLayer,
};

use super::{Import, ImportError, checkpoint::Layout, part::Part};

impl Import for TransformerLayer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let attention = match part.layout {
            Layout::Pytorch => "self_attn",
            Layout::BurnNn => "mha",
        };
        let [norm_1, norm_2] = norms(part, &self.attention_residual);
        let mut layer = self.clone();
        layer.attention = part.below(attention, |part| self.attention.import(part))?;
        layer.attention_residual = residual(part, &norm_1, &self.attention_residual)?;
        layer.feed_forward = feed_forward(part, &self.feed_forward)?;
        layer.feed_forward_residual = match &self.feed_forward_residual {
            Some(like) => Some(residual(part, &norm_2, like)?),
            None => {
                let reason = format!(
                    "the module's attention and feed-forward are parallel, {}'s one after the other",
                    source(part)
                );
                return Err(unsupported(part, &norm_2, reason));
            }
        };
        Ok(layer)
    }
}

impl Import for TransformerDecoderLayer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let cross_attention = match part.layout {
            Layout::Pytorch => "multihead_attn",
            Layout::BurnNn => "cross_attn",
        };
        let [norm_1, norm_2, norm_3] = norms(part, &self.self_attention_residual);
        let mut layer = self.clone();
        layer.self_attention = part.below("self_attn", |part| self.self_attention.import(part))?;
        layer.self_attention_residual = residual(part, &norm_1, &self.self_attention_residual)?;
        layer.cross_attention =
            part.below(cross_attention, |part| self.cross_attention.import(part))?;
        layer.cross_attention_residual = residual(part, &norm_2, &self.cross_attention_residual)?;
        layer.feed_forward = feed_forward(part, &self.feed_forward)?;
        layer.feed_forward_residual = residual(part, &norm_3, &self.feed_forward_residual)?;
        Ok(layer)
    }
}

impl Import for TransformerEncoder {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let mut stack = self.clone();
        (stack.layers, stack.norm) = layers(part, &self.layers, self.norm.as_ref())?;
        Ok(stack)
    }
}

impl Import for CausalTransformer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let mut stack = self.clone();
        (stack.layers, stack.norm) = layers(part, &self.layers, self.norm.as_ref())?;
        Ok(stack)
    }
}

impl Import for TransformerDecoder {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let mut stack = self.clone();
        (stack.layers, stack.norm) = layers(part, &self.layers, self.norm.as_ref())?;
        Ok(stack)
    }
}

impl Import for Transformer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let mut model = self.clone();
        model.encoder = part.below("encoder", |part| self.encoder.import(part))?;
        model.decoder = part.below("decoder", |part| self.decoder.import(part))?;
        Ok(model)
    }
}

/// The layers and the last norm of a stack.
fn layers<L: Import>(
    part: &Part,
    likes: &[L],
    last: Option<&Norm>,
) -> Result<(Vec<L>, Option<Norm>), ImportError> {
    let layers = likes
        .iter()
        .enumerate()
        .map(|(index, like)| part.below(&format!("layers.{index}"), |part| like.import(part)));
    let layers = layers.collect::<Result<_, _>>()?;
    let last = last.map(|like| norm(part, "norm", like)).transpose()?;
    Ok((layers, last))
}

/// What the norms around the sublayers are called, first to last; `first` is the sum around the first.
///
/// A norm of burn-nn's that stands behind a sublayer stands before the next one where the norms are first. Weights do not say where they are: the
/// module does.
fn norms<const N: usize>(part: &Part, first: &Residual) -> [String; N] {
    let separator = match part.layout {
        Layout::Pytorch => "",
        Layout::BurnNn => "_",
    };
    let mut names: [String; N] =
        core::array::from_fn(|index| format!("norm{separator}{}", index + 1));
    if part.layout == Layout::BurnNn && first.placement() == NormPlacement::Pre {
        names.rotate_right(1);
    }
    names
}

fn feed_forward(part: &Part, like: &FeedForward) -> Result<FeedForward, ImportError> {
    let [inner, outer] = match part.layout {
        Layout::Pytorch => ["linear1", "linear2"],
        Layout::BurnNn => ["pwff.linear_inner", "pwff.linear_outer"],
    };
    let mut loaded = like.clone();
    loaded.linear_inner = part.linear(inner, &like.linear_inner)?;
    loaded.linear_outer = part.linear(outer, &like.linear_outer)?;
    Ok(loaded)
}

fn residual(part: &Part, name: &str, like: &Residual) -> Result<Residual, ImportError> {
    if like.output_norm.is_some() {
        let reason = format!(
            "the module has a norm behind each sublayer as well (NormPlacement::Sandwich), {}'s has not",
            source(part)
        );
        return Err(unsupported(part, name, reason));
    }
    let mut loaded = like.clone();
    loaded.norm = norm(part, name, &like.norm)?;
    Ok(loaded)
}

fn norm(part: &Part, name: &str, like: &Norm) -> Result<Norm, ImportError> {
    if let NormConfig::LayerNorm { .. } = like.config() {
        return part.norm(name, like);
    }
    let reason = format!(
        "the module has RMS norms, {}'s transformers have layer norms",
        source(part)
    );
    Err(unsupported(part, name, reason))
}

/// Whose weights they are.
fn source(part: &Part) -> &'static str {
    match part.layout {
        Layout::Pytorch => "PyTorch",
        Layout::BurnNn => "burn-nn",
    }
}

fn unsupported(part: &Part, name: &str, reason: String) -> ImportError {
    ImportError::Unsupported {
        name: part.full(name),
        reason,
    }
}
