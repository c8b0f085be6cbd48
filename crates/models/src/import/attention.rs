//! The attention modules, from `nn.MultiheadAttention` or burn-nn's `MultiHeadAttention` and `CrossAttention`.

use std::ops::Range;

use burn::{module::Module, nn::Linear};
use burn_attn::{CrossAttention, MultiHeadAttention, SelfAttention};

use super::{
    Library,
    part::{NamedTensors, Part},
};
use crate::weights::{Source, Table, WeightsError, ZEROS, same, transposed};

/// A linear layer of a module: its name, and which of query, key and value it holds.
type Input<'a> = (&'a str, &'a Linear, Range<usize>);

impl NamedTensors for MultiHeadAttention {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let inputs = [
            ("query", &self.query, 0..1),
            ("key", &self.key, 1..2),
            ("value", &self.value, 2..3),
        ];
        attention(part, &inputs, self)
    }
}

impl NamedTensors for SelfAttention {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        if self.has_shared_key_value() {
            let reason = "the module has no keys and values of its own: it attends to those of another layer (shared_key_value)";
            return Err(part.unsupported("query_key_value", reason));
        }
        let inputs = [("query_key_value", &self.query_key_value, 0..3)];
        attention(part, &inputs, &self.clone().into_multi_head())
    }
}

impl NamedTensors for CrossAttention {
    fn table(&self, part: &Part) -> Result<Table, WeightsError> {
        let inputs = [
            ("query", &self.query, 0..1),
            ("key_value", &self.key_value, 1..3),
        ];
        attention(part, &inputs, &self.clone().into_multi_head())
    }
}

/// The table of a module with these input layers, whose widths, output layer and heads are those of `like`.
fn attention(
    part: &Part,
    inputs: &[Input],
    like: &MultiHeadAttention,
) -> Result<Table, WeightsError> {
    let (first_input, output) = match part.library {
        Library::Pytorch => ("in_proj_weight", "out_proj"),
        Library::BurnNn => ("query.weight", "output"),
    };
    for (_, input, _) in inputs {
        part.without_adapter(first_input, input)?;
    }
    let table = projections(part, inputs, [&like.query, &like.key, &like.value])?;
    let table = table.part("", "", part.linear("output", output, &like.output)?);
    let sinks = like.heads.sinks.as_ref();
    let own = like.heads.num_params() - sinks.map_or(0, |sinks| sinks.dims()[0]);
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

/// The rows of the input layers, with a query, key and value like `likes`.
fn projections(part: &Part, inputs: &[Input], likes: [&Linear; 3]) -> Result<Table, WeightsError> {
    let rows = |parameter: &str, source: fn(Vec<String>) -> Source, names: [&str; 3]| {
        inputs.iter().fold(Table::new(), |table, (input, _, of)| {
            let names = names[of.clone()].iter().map(|name| name.to_string());
            let widths = likes[of.clone()].iter().map(|like| like.weight.dims()[1]);
            let source = source(names.collect()).shares(widths.collect::<Vec<_>>());
            table.row(format!("{input}.{parameter}"), source)
        })
    };
    if part.library == Library::BurnNn {
        let weights = rows(
            "weight",
            same,
            ["query.weight", "key.weight", "value.weight"],
        );
        let biases = rows("bias", same, ["query.bias", "key.bias", "value.bias"]);
        return Ok(weights.part("", "", biases));
    }
    let mut appended = ["bias_k", "bias_v"].into_iter();
    if let Some(name) = appended.find(|name| part.has(name)) {
        let reason = "add_bias_kv=True appends a learned key and value to every sequence, which no module here does";
        return Err(part.unsupported(name, reason));
    }
    let [query, key, value] = likes.map(|like| like.bias.is_some());
    if query != key || key != value {
        let reason = format!(
            "PyTorch's projections all have a bias or none has, but the module's bias is query {query}, key {key}, \
             value {value}"
        );
        return Err(part.unsupported("in_proj_bias", reason));
    }
    let all = |parameter: &str| -> Vec<String> {
        let names = inputs
            .iter()
            .map(|(name, ..)| format!("{name}.{parameter}"));
        names.collect()
    };
    let biases = Table::new().row(all("bias"), "in_proj_bias");
    let d_inputs = likes.map(|like| like.weight.dims()[0]);
    // One packed weight if all three inputs have one width and there is no `q_proj_weight`, else three weights.
    if !part.has("q_proj_weight") && d_inputs == [d_inputs[0]; 3] {
        return Ok(biases.row(all("weight"), transposed("in_proj_weight")));
    }
    let names = ["q_proj_weight", "k_proj_weight", "v_proj_weight"];
    Ok(biases.part("", "", rows("weight", transposed, names)))
}
