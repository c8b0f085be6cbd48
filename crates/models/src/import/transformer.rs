//! Layers and stacks, from PyTorch's `nn.TransformerEncoder`, `nn.TransformerDecoder`, their layers, and `nn.Transformer`, and from burn-nn's
//! `TransformerEncoder` and `TransformerDecoder`.

use burn::module::Module;
use burn_attn::{
    Norm, NormConfig, NormPlacement, SublayerConnection, Transformer, TransformerLayer,
    TransformerStack,
};

use super::{
    Library,
    part::{NamedTensors, Part},
};
use crate::weights::{Table, WeightsError};

impl NamedTensors for TransformerLayer {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let library = part.library;
        let is_decoder = self.cross_attention.is_some();
        let (attention, cross_attention, separator, [inner, outer]) = match library {
            Library::Pytorch => ("self_attn", "multihead_attn", "", ["linear1", "linear2"]),
            Library::BurnNn => (
                if is_decoder { "self_attn" } else { "mha" },
                "cross_attn",
                "_",
                ["pwff.linear_inner", "pwff.linear_outer"],
            ),
        };
        let numbers = 1..=if is_decoder { 3 } else { 2 };
        let mut norms: Vec<String> = numbers.map(|n| format!("norm{separator}{n}")).collect();
        // burn-nn keeps a norm's name wherever the norm is: what follows a sublayer in post-norm precedes the next one in pre-norm.
        // The weights do not say which of the two it is; the module does.
        let placement = self.self_attention_residual.placement();
        if library == Library::BurnNn && placement == NormPlacement::Pre {
            norms.rotate_right(1);
        }
        let last = norms.last().expect("two or three names");

        let names = ["self_attention", attention];
        let mut table = part.with(Table::new(), names, &self.self_attention)?;
        let like = &self.self_attention_residual;
        table = residual(part, table, ["self_attention_residual", &norms[0]], like)?;
        if let Some(attention) = &self.cross_attention {
            table = part.with(table, ["cross_attention", cross_attention], attention)?;
        }
        if let Some(like) = &self.cross_attention_residual {
            table = residual(part, table, ["cross_attention_residual", &norms[1]], like)?;
        }
        let Some(like) = &self.feed_forward else {
            let reason = format!(
                "the module's layers have experts, but {library}'s have one feed-forward network"
            );
            return Err(part.unsupported("linear1", reason));
        };
        for (target, source, like) in [
            ("feed_forward.linear_inner", inner, &like.linear_inner),
            ("feed_forward.linear_outer", outer, &like.linear_outer),
        ] {
            table = table.part("", "", part.linear(target, source, like)?);
        }
        match &self.feed_forward_residual {
            Some(like) if !self.is_parallel() => {
                residual(part, table, ["feed_forward_residual", last], like)
            }
            _ => {
                let reason = format!(
                    "the module's attention and feed-forward are parallel, but {library}'s are one after the other"
                );
                Err(part.unsupported(last, reason))
            }
        }
    }
}

impl NamedTensors for TransformerStack {
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
            table = part.with(table, [&name, &name], layer)?;
        }
        match &self.norm {
            None => Ok(table),
            Some(like) => Ok(table.part("", "", norm(part, "norm", like)?)),
        }
    }
}

impl NamedTensors for Transformer {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let encoder = part.with(Table::new(), ["encoder"; 2], &self.encoder)?;
        part.with(encoder, ["decoder"; 2], &self.decoder)
    }
}

/// `table` with the residual sum `target`, whose norm the source calls `name`.
fn residual(
    part: &Part,
    table: Table,
    [target, name]: [&str; 2],
    like: &SublayerConnection,
) -> Result<Table, WeightsError> {
    let placement = like.placement();
    if !matches!(placement, NormPlacement::Pre | NormPlacement::Post) {
        let reason = format!(
            "the module has a norm after each sublayer (NormPlacement::{placement:?}), but {}'s does not",
            part.library
        );
        return Err(part.unsupported(name, reason));
    }
    match &like.norm {
        Some(like) => Ok(table.part(target, "", norm(part, name, like)?)),
        None => {
            let reason = format!("the module has no norm here, but {}'s does", part.library);
            Err(part.unsupported(name, reason))
        }
    }
}

/// The parameter `norm`, which is `source`.
fn norm(part: &Part, source: &str, like: &Norm) -> Result<Table, WeightsError> {
    let of_module = match like.config() {
        NormConfig::LayerNorm {
            unit_offset: false, ..
        } => return Ok(part.norm("norm", source)),
        NormConfig::LayerNorm { .. } => "layer norms with a unit offset",
        _ => "RMS norms",
    };
    let reason = format!(
        "the module has {of_module}, but {}'s transformers have layer norms",
        part.library
    );
    Err(part.unsupported(source, reason))
}
