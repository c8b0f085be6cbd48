//! The attention modules, from `nn.MultiheadAttention` or burn-nn's `MultiHeadAttention` and `CrossAttention`.

use std::ops::Range;

use burn::{module::Module, nn::Linear};
use burn_attn::{CrossAttention, Heads, MultiHeadAttention, SelfAttention};

use super::{Import, Library, part::Part};
use crate::weights::{Source, Table, WeightsError, ZEROS, same, transposed};

impl Import for MultiHeadAttention {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let inputs = [&self.query, &self.key, &self.value];
        without_adapters(part, &inputs)?;
        let names = [("query", 0..1), ("key", 1..2), ("value", 2..3)];
        let projections = projections(part, inputs, &names)?;
        with_output(projections, part, &self.output, &self.heads)
    }
}

impl Import for SelfAttention {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        without_adapters(part, &[&self.query_key_value])?;
        let like = self.clone().into_multi_head();
        let inputs = [&like.query, &like.key, &like.value];
        let projections = projections(part, inputs, &[("query_key_value", 0..3)])?;
        with_output(projections, part, &self.output, &self.heads)
    }
}

impl Import for CrossAttention {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        without_adapters(part, &[&self.query, &self.key_value])?;
        let like = self.clone().into_multi_head();
        let inputs = [&like.query, &like.key, &like.value];
        let projections = projections(part, inputs, &[("query", 0..1), ("key_value", 1..3)])?;
        with_output(projections, part, &self.output, &self.heads)
    }
}

/// Query, key and value like `likes`; `target` names the linear layers of the module and says which of the three each layer holds.
fn projections(
    part: &Part,
    likes: [&Linear; 3],
    target: &[(&str, Range<usize>)],
) -> Result<Table, WeightsError> {
    let rows =
        |table, parameter: &str, source: &dyn Fn(Vec<String>) -> Source, names: [&str; 3]| {
            target.iter().fold(table, |table: Table, (name, of)| {
                let names = names[of.clone()].iter().map(|name| name.to_string());
                let widths = likes[of.clone()].iter().map(|like| like.weight.dims()[1]);
                let source = source(names.collect()).shares(widths.collect::<Vec<_>>());
                table.row(format!("{name}.{parameter}"), source)
            })
        };
    if part.library == Library::BurnNn {
        let weights = ["query.weight", "key.weight", "value.weight"];
        let biases = ["query.bias", "key.bias", "value.bias"];
        let table = rows(Table::new(), "weight", &same, weights);
        return Ok(rows(table, "bias", &same, biases));
    }
    refuse_appended_key(part)?;
    refuse_some_biases(part, likes)?;
    let of_target = |parameter: &str| -> Vec<String> {
        let names = target.iter().map(|(name, _)| format!("{name}.{parameter}"));
        names.collect()
    };
    let table = Table::new().row(of_target("bias"), "in_proj_bias");
    let d_inputs = likes.map(|like| like.weight.dims()[0]);
    // One packed weight where all three come in with the width `d_model`, else three.
    if !part.has("q_proj_weight") && d_inputs == [d_inputs[0]; 3] {
        return Ok(table.row(of_target("weight"), transposed("in_proj_weight")));
    }
    let names = ["q_proj_weight", "k_proj_weight", "v_proj_weight"];
    Ok(rows(table, "weight", &transposed, names))
}

/// The table of the whole module.
fn with_output(
    projections: Table,
    part: &Part,
    output: &Linear,
    heads: &Heads,
) -> Result<Table, WeightsError> {
    let name = match part.library {
        Library::Pytorch => "out_proj",
        Library::BurnNn => "output",
    };
    let table = projections.part("", "", part.linear("output", name, output)?);
    let sinks = heads.sinks.as_ref();
    let own = heads.num_params() - sinks.map_or(0, |sinks| sinks.dims()[0]);
    if own > 0 {
        let reason = format!(
            "the module's heads have {own} parameters (QK norm or positions) that the source cannot have; load \
             into a module without them"
        );
        return Err(part.unsupported("heads", reason));
    }
    match (sinks, part.sinks_at_zero) {
        (None, None | Some(false)) => Ok(table),
        (Some(_), None | Some(true)) => Ok(table.row("heads.sinks", ZEROS)),
        (Some(_), Some(false)) => Err(part.unsupported(
            "heads",
            "the module has sinks, which the source has only if it was made with burn-nn's quiet_softmax or PyTorch's \
             add_zero_attn; say that it was with Checkpoint::sinks_at_zero(true), or load into a module without sinks",
        )),
        (None, Some(true)) => Err(part.unsupported(
            "heads",
            "the source has sinks at 0 (Checkpoint::sinks_at_zero), but the module has no sinks; build it with_sinks(true)",
        )),
    }
}

fn without_adapters(part: &Part, inputs: &[&Linear]) -> Result<(), WeightsError> {
    let name = match part.library {
        Library::Pytorch => "in_proj_weight",
        Library::BurnNn => "query.weight",
    };
    inputs
        .iter()
        .try_for_each(|input| part.without_adapter(name, input))
}

/// Refuses a module with only some of the three biases: in PyTorch they are one vector.
fn refuse_some_biases(part: &Part, likes: [&Linear; 3]) -> Result<(), WeightsError> {
    let [query, key, value] = likes.map(|like| like.bias.is_some());
    match query == key && key == value {
        true => Ok(()),
        false => Err(part.unsupported(
            "in_proj_bias",
            format!(
                "PyTorch's projections all have a bias or none has, but the module's bias is query {query}, key {key}, \
                 value {value}"
            ),
        )),
    }
}

/// Refuses a module that was built with `add_bias_kv=True`.
fn refuse_appended_key(part: &Part) -> Result<(), WeightsError> {
    match ["bias_k", "bias_v"].into_iter().find(|name| part.has(name)) {
        None => Ok(()),
        Some(name) => Err(part.unsupported(
            name,
            "add_bias_kv=True appends a learned key and value to every sequence, which no module here does",
        )),
    }
}
