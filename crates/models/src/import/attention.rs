//! The attention modules, from `nn.MultiheadAttention` or burn-nn's `MultiHeadAttention` and `CrossAttention`.

use burn::{module::Module, nn::Linear};
use burn_attn::{CrossAttention, Heads, MultiHeadAttention, SelfAttention};

use super::{
    Import, ImportError,
    checkpoint::Layout,
    part::{Dense, Part, replaced},
};

impl Import for MultiHeadAttention {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let [query, key, value, output] = projections(part, self)?;
        Ok(Self {
            query: query.into_linear(&self.query),
            key: key.into_linear(&self.key),
            value: value.into_linear(&self.value),
            output: output.into_linear(&self.output),
            heads: heads(part, &self.heads)?,
        })
    }
}

impl Import for SelfAttention {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let like = self.clone().into_multi_head();
        let [query, key, value, output] = projections(part, &like)?;
        let mut module = self.clone();
        module.query_key_value =
            Dense::side_by_side(vec![query, key, value]).into_linear(&self.query_key_value);
        module.output = output.into_linear(&self.output);
        module.heads = heads(part, &self.heads)?;
        Ok(module)
    }
}

impl Import for CrossAttention {
    fn import(&self, part: &Part) -> Result<Self, ImportError> {
        let like = self.clone().into_multi_head();
        let [query, key, value, output] = projections(part, &like)?;
        Ok(Self {
            query: query.into_linear(&self.query),
            key_value: Dense::side_by_side(vec![key, value]).into_linear(&self.key_value),
            output: output.into_linear(&self.output),
            heads: heads(part, &self.heads)?,
        })
    }
}

/// Query, key, value and output for a module like `like`.
fn projections(part: &Part, like: &MultiHeadAttention) -> Result<[Dense; 4], ImportError> {
    let inputs = [&like.query, &like.key, &like.value];
    match part.layout {
        Layout::BurnNn => Ok([
            part.dense("query", &like.query)?,
            part.dense("key", &like.key)?,
            part.dense("value", &like.value)?,
            part.dense("output", &like.output)?,
        ]),
        Layout::Pytorch => {
            let [query, key, value] = pytorch_inputs(part, inputs)?;
            let output = part.dense("out_proj", &like.output)?;
            Ok([query, key, value, output])
        }
    }
}

/// Heads like `like`: those of the sources have no parameters, but their sinks may be said to be at 0.
fn heads(part: &Part, like: &Heads) -> Result<Heads, ImportError> {
    let refused = |reason: String| {
        Err(ImportError::Unsupported {
            name: part.full("heads"),
            reason,
        })
    };
    let sinks = like.sinks.as_ref();
    let own = like.num_params() - sinks.map_or(0, |sinks| sinks.dims()[0]);
    if own > 0 {
        return refused(format!(
            "the module's heads have {own} parameters of their own (QK norm or positions), which the source cannot have; load \
             into a module without them"
        ));
    }
    let mut heads = like.clone();
    match (sinks, part.sinks_at_zero) {
        (None, false) => Ok(heads),
        (Some(like), true) => {
            heads.sinks = Some(replaced(like, like.val().zeros_like()));
            Ok(heads)
        }
        (Some(_), false) => refused(
            "the module has sinks, which the source has only if it was made with burn-nn's quiet_softmax or PyTorch's \
             add_zero_attn; say that it was with Checkpoint::sinks_at_zero(true), or load into a module without sinks"
                .into(),
        ),
        (None, true) => refused(
            "the source has sinks at 0 (Checkpoint::sinks_at_zero), but the module has no sinks; build it with_sinks(true)"
                .into(),
        ),
    }
}

/// Query, key and value of `nn.MultiheadAttention`: one packed weight where all three come in with the width `d_model`,
/// else three; the biases are always packed.
fn pytorch_inputs(part: &Part, likes: [&Linear; 3]) -> Result<[Dense; 3], ImportError> {
    refuse_appended_key(part)?;
    let d_inputs = likes.map(|like| like.weight.dims()[0]);
    let weights = if part.has("q_proj_weight") || d_inputs != [d_inputs[0]; 3] {
        [
            part.weight("q_proj_weight", likes[0])?,
            part.weight("k_proj_weight", likes[1])?,
            part.weight("v_proj_weight", likes[2])?,
        ]
    } else {
        part.stacked_weights("in_proj_weight", likes)?
    };
    let biases = match likes.map(|like| like.bias.as_ref()) {
        [Some(query), Some(key), Some(value)] => {
            part.vectors("in_proj_bias", [query, key, value])?.map(Some)
        }
        [None, None, None] => [None, None, None],
        biases => {
            let [query, key, value] = biases.map(|bias| bias.is_some());
            let reason = format!(
                "PyTorch's projections all have a bias or none has, but the module's bias is query {query}, key {key}, \
                 value {value}"
            );
            return Err(ImportError::Unsupported {
                name: part.full("in_proj_bias"),
                reason,
            });
        }
    };
    let [query, key, value] = biases;
    let mut biases = [query, key, value].into_iter();
    Ok(weights.map(|weight| Dense {
        weight,
        bias: biases.next().flatten(),
    }))
}

/// Refuses a module that was built with `add_bias_kv=True`.
fn refuse_appended_key(part: &Part) -> Result<(), ImportError> {
    let Some(name) = ["bias_k", "bias_v"].into_iter().find(|name| part.has(name)) else {
        return Ok(());
    };
    let reason = "add_bias_kv=True appends a learned key and value to every sequence, which no module here does";
    Err(ImportError::Unsupported {
        name: part.full(name),
        reason: reason.into(),
    })
}
