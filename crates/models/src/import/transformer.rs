//! Layers and stacks, from PyTorch's `nn.TransformerEncoder`, `nn.TransformerDecoder`, their layers, and `nn.Transformer`, and from burn-nn's
//! `TransformerEncoder` and `TransformerDecoder`.

use burn::module::Module;
use burn_attn::{
    FeedForward, Norm, NormConfig, NormPlacement, SublayerConnection, Transformer,
    TransformerLayer, TransformerStack,
};

use super::{Import, Library, part::Part};
use crate::weights::{Table, WeightsError};

impl Import for TransformerLayer {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let names = Names::of(part, self);
        let name = names.self_attention;
        let attention = self.self_attention.table(&part.below(name))?;
        let residual_name = &names.norms[0];
        let mut table = Table::new().part("self_attention", name, attention).part(
            "self_attention_residual",
            "",
            residual(part, residual_name, &self.self_attention_residual)?,
        );
        if let Some(attention) = &self.cross_attention {
            let name = names.cross_attention;
            let attention = attention.table(&part.below(name))?;
            table = table.part("cross_attention", name, attention);
        }
        if let Some(like) = &self.cross_attention_residual {
            let residual = residual(part, &names.norms[1], like)?;
            table = table.part("cross_attention_residual", "", residual);
        }
        let Some(feed_forward) = &self.feed_forward else {
            let reason = format!(
                "the module's layers have experts, but {}'s have one feed-forward network",
                part.library
            );
            return Err(part.unsupported("linear1", reason));
        };
        let feed_forward = self::feed_forward(part, feed_forward)?;
        let table = table.part("feed_forward", "", feed_forward);
        let last = names.norms.last().expect("two or three names");
        match &self.feed_forward_residual {
            Some(like) if !self.is_parallel() => {
                let residual = residual(part, last, like)?;
                Ok(table.part("feed_forward_residual", "", residual))
            }
            _ => {
                let reason = format!(
                    "the module's attention and feed-forward are parallel, but {}'s are one after the other",
                    part.library
                );
                Err(part.unsupported(last, reason))
            }
        }
    }
}

impl Import for TransformerStack {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let own: usize = self.positions.iter().map(Module::num_params).sum();
        if own > 0 {
            let reason = format!(
                "the stack's positions have {own} parameters, which {}'s stacks do not have",
                part.library
            );
            return Err(part.unsupported("positions", reason));
        }
        let mut table = Table::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let name = format!("layers.{index}");
            table = table.part(&name, &name, layer.table(&part.below(&name))?);
        }
        match &self.norm {
            None => Ok(table),
            Some(like) => Ok(table.part("", "", norm(part, "norm", "norm", like)?)),
        }
    }
}

impl Import for Transformer {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let encoder = self.encoder.table(&part.below("encoder"))?;
        let decoder = self.decoder.table(&part.below("decoder"))?;
        Ok(Table::new()
            .part("encoder", "encoder", encoder)
            .part("decoder", "decoder", decoder))
    }
}

/// The names of a layer's parts.
struct Names {
    self_attention: &'static str,
    cross_attention: &'static str,
    /// The norms around the sublayers, first to last.
    norms: Vec<String>,
}

impl Names {
    fn of(part: &Part, layer: &TransformerLayer) -> Self {
        let is_decoder = layer.cross_attention.is_some();
        let (self_attention, cross_attention, separator) = match part.library {
            Library::Pytorch => ("self_attn", "multihead_attn", ""),
            Library::BurnNn if is_decoder => ("self_attn", "cross_attn", "_"),
            Library::BurnNn => ("mha", "", "_"),
        };
        let numbers = if is_decoder { 1..=3 } else { 1..=2 };
        let mut norms: Vec<String> = numbers.map(|n| format!("norm{separator}{n}")).collect();
        // burn-nn keeps a norm's name wherever the norm is: what follows a sublayer in post-norm precedes the next one in pre-norm.
        // The weights do not say which of the two it is; the module does.
        let placement = layer.self_attention_residual.placement();
        if part.library == Library::BurnNn && placement == NormPlacement::Pre {
            norms.rotate_right(1);
        }
        Self {
            self_attention,
            cross_attention,
            norms,
        }
    }
}

fn feed_forward(part: &Part, like: &FeedForward) -> Result<Table, WeightsError> {
    let [inner, outer] = match part.library {
        Library::Pytorch => ["linear1", "linear2"],
        Library::BurnNn => ["pwff.linear_inner", "pwff.linear_outer"],
    };
    let inner = part.linear("linear_inner", inner, &like.linear_inner)?;
    let outer = part.linear("linear_outer", outer, &like.linear_outer)?;
    Ok(inner.part("", "", outer))
}

fn residual(part: &Part, name: &str, like: &SublayerConnection) -> Result<Table, WeightsError> {
    let placement = like.placement();
    if !matches!(placement, NormPlacement::Pre | NormPlacement::Post) {
        let reason = format!(
            "the module has a norm after each sublayer (NormPlacement::{placement:?}), but {}'s does not",
            part.library
        );
        return Err(part.unsupported(name, reason));
    }
    norm(part, "norm", name, &like.norm)
}

fn norm(part: &Part, target: &str, source: &str, like: &Norm) -> Result<Table, WeightsError> {
    let of_module = match like.config() {
        NormConfig::LayerNorm {
            unit_offset: false, ..
        } => return Ok(part.norm(target, source)),
        NormConfig::LayerNorm { .. } => "layer norms with a unit offset",
        _ => "RMS norms",
    };
    let reason = format!(
        "the module has {of_module}, but {}'s transformers have layer norms",
        part.library
    );
    Err(part.unsupported(source, reason))
}
