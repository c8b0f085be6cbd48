//! Layers and stacks, from PyTorch's `nn.TransformerEncoder`, `nn.TransformerDecoder`, their layers and `nn.Transformer`.

use burn_attn::{
    CausalTransformer, FeedForward, Norm, NormConfig, Residual, Transformer, TransformerDecoder,
    TransformerDecoderLayer, TransformerEncoder, TransformerLayer,
};

use super::{Import, ImportError, checkpoint::Layout, part::Part};

impl Import for TransformerLayer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        refuse_burn_nn(part)?;
        let mut layer = self.clone();
        layer.attention = part.below("self_attn", |part| self.attention.import(part))?;
        layer.attention_residual = residual(part, "norm1", &self.attention_residual)?;
        layer.feed_forward = feed_forward(part, &self.feed_forward)?;
        layer.feed_forward_residual = match &self.feed_forward_residual {
            Some(like) => Some(residual(part, "norm2", like)?),
            None => {
                let reason = "the module's attention and feed-forward are parallel, PyTorch's one after the other";
                return Err(unsupported(part, "norm2", reason));
            }
        };
        Ok(layer)
    }
}

impl Import for TransformerDecoderLayer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        refuse_burn_nn(part)?;
        let mut layer = self.clone();
        layer.self_attention = part.below("self_attn", |part| self.self_attention.import(part))?;
        layer.self_attention_residual = residual(part, "norm1", &self.self_attention_residual)?;
        layer.cross_attention =
            part.below("multihead_attn", |part| self.cross_attention.import(part))?;
        layer.cross_attention_residual = residual(part, "norm2", &self.cross_attention_residual)?;
        layer.feed_forward = feed_forward(part, &self.feed_forward)?;
        layer.feed_forward_residual = residual(part, "norm3", &self.feed_forward_residual)?;
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
    refuse_burn_nn(part)?;
    let layers = likes
        .iter()
        .enumerate()
        .map(|(index, like)| part.below(&format!("layers.{index}"), |part| like.import(part)));
    let layers = layers.collect::<Result<_, _>>()?;
    let last = last.map(|like| norm(part, "norm", like)).transpose()?;
    Ok((layers, last))
}

fn feed_forward(part: &Part, like: &FeedForward) -> Result<FeedForward, ImportError> {
    let mut loaded = like.clone();
    loaded.linear_inner = part.linear("linear1", &like.linear_inner)?;
    loaded.linear_outer = part.linear("linear2", &like.linear_outer)?;
    Ok(loaded)
}

fn residual(part: &Part, name: &str, like: &Residual) -> Result<Residual, ImportError> {
    if like.output_norm.is_some() {
        let reason = "the module has a norm behind each sublayer as well (NormPlacement::Sandwich), PyTorch's has not";
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
    let reason = "the module has RMS norms, PyTorch's transformers have layer norms";
    Err(unsupported(part, name, reason))
}

/// burn-nn's records do not say whether they are pre-norm, and which norm is where depends on it.
fn refuse_burn_nn(part: &Part) -> Result<(), ImportError> {
    if part.layout == Layout::Pytorch {
        return Ok(());
    }
    let reason =
        "the weights of burn-nn's transformers cannot be loaded as a whole, only their attention";
    Err(unsupported(part, "", reason))
}

fn unsupported(part: &Part, name: &str, reason: &str) -> ImportError {
    ImportError::Unsupported {
        name: part.full(name),
        reason: reason.into(),
    }
}
