//! Layers and stacks, from PyTorch's `nn.TransformerEncoder`, `nn.TransformerDecoder`, their layers and `nn.Transformer`, and from burn-nn's
//! `TransformerEncoder` and `TransformerDecoder`.

use burn::module::Module;
use burn_attn::{
    FeedForward, Norm, NormConfig, NormPlacement, Residual, Transformer, TransformerLayer,
    TransformerStack,
};

use super::{Import, ImportError, checkpoint::Layout, part::Part};

impl Import for TransformerLayer {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let names = Names::of(part, self);
        let mut layer = self.clone();
        layer.self_attention = part.below(names.self_attention, |part| {
            self.self_attention.import(part)
        })?;
        layer.self_attention_residual =
            residual(part, &names.norms[0], &self.self_attention_residual)?;
        if let Some(attention) = &self.cross_attention {
            layer.cross_attention =
                Some(part.below(names.cross_attention, |part| attention.import(part))?);
        }
        if let Some(like) = &self.cross_attention_residual {
            layer.cross_attention_residual = Some(residual(part, &names.norms[1], like)?);
        }
        layer.feed_forward = feed_forward(part, &self.feed_forward)?;
        let last = names.norms.last().expect("two or three names");
        layer.feed_forward_residual = match &self.feed_forward_residual {
            Some(like) if !self.is_parallel() => Some(residual(part, last, like)?),
            _ => {
                let reason = format!(
                    "the module's attention and feed-forward are parallel, {}'s one after the other",
                    source(part)
                );
                return Err(unsupported(part, last, reason));
            }
        };
        Ok(layer)
    }
}

impl Import for TransformerStack {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let own: usize = self.positions.iter().map(Module::num_params).sum();
        if own > 0 {
            let reason = format!(
                "the stack's positions have {own} parameters of their own, which {}'s stacks have not",
                source(part)
            );
            return Err(unsupported(part, "positions", reason));
        }
        let mut stack = self.clone();
        for (index, layer) in stack.layers.iter_mut().enumerate() {
            *layer = part.below(&format!("layers.{index}"), |part| layer.import(part))?;
        }
        if let Some(like) = &mut stack.norm {
            *like = norm(part, "norm", like)?;
        }
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

/// What the parts of a layer are called.
struct Names {
    self_attention: &'static str,
    cross_attention: &'static str,
    /// Of the norms around the sublayers, first to last.
    norms: Vec<String>,
}

impl Names {
    fn of(part: &Part, layer: &TransformerLayer) -> Self {
        let is_decoder = layer.cross_attention.is_some();
        let (self_attention, cross_attention, separator) = match part.layout {
            Layout::Pytorch => ("self_attn", "multihead_attn", ""),
            Layout::BurnNn if is_decoder => ("self_attn", "cross_attn", "_"),
            Layout::BurnNn => ("mha", "", "_"),
        };
        let numbers = if is_decoder { 1..=3 } else { 1..=2 };
        let mut norms: Vec<String> = numbers.map(|n| format!("norm{separator}{n}")).collect();
        // A norm of burn-nn's that stands behind a sublayer stands before the next one where the norms are first. Weights do not say
        // where they are: the module does.
        let placement = layer.self_attention_residual.placement();
        if part.layout == Layout::BurnNn && placement == NormPlacement::Pre {
            norms.rotate_right(1);
        }
        Self {
            self_attention,
            cross_attention,
            norms,
        }
    }
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
    let placement = like.placement();
    if !matches!(placement, NormPlacement::Pre | NormPlacement::Post) {
        let reason = format!(
            "the module has a norm behind each sublayer (NormPlacement::{placement:?}), {}'s has not",
            source(part)
        );
        return Err(unsupported(part, name, reason));
    }
    let mut loaded = like.clone();
    loaded.norm = norm(part, name, &like.norm)?;
    Ok(loaded)
}

fn norm(part: &Part, name: &str, like: &Norm) -> Result<Norm, ImportError> {
    let of_module = match like.config() {
        NormConfig::LayerNorm {
            unit_offset: false, ..
        } => return part.norm(name, like),
        NormConfig::LayerNorm { .. } => "layer norms with a unit offset",
        _ => "RMS norms",
    };
    let reason = format!(
        "the module has {of_module}, {}'s transformers have layer norms",
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
