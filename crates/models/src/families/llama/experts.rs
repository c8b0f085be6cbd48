//! The experts of a configuration, and which tensors they are.

use burn_attn::ExpertsConfig;
use serde_json::json;

use super::Family;
use crate::{
    pretrained::{ConfigFile, PretrainedError},
    weights::{Table, same},
};

/// The most experts accepted, in all layers together: published models have some ten thousand, and each takes memory before any
/// weight is read.
const MOST_EXPERTS: usize = 200_000;

/// The experts of a family that has them, and the layers that they are in.
pub(super) fn read(
    file: &mut ConfigFile,
    family: Family,
    n_layers: usize,
) -> Result<(Option<ExpertsConfig>, Vec<bool>), PretrainedError> {
    if !matches!(family, Family::Mixtral | Family::Qwen3Moe | Family::GptOss) {
        return Ok((None, vec![false; n_layers]));
    }
    // The name that version 5 of transformers writes, and that Qwen had before.
    let (name, n_experts) = match file.size_if_any("num_experts")? {
        Some(n_experts) => {
            file.only("num_local_experts", json!(n_experts))?;
            ("num_experts", n_experts)
        }
        None => ("num_local_experts", file.size("num_local_experts")?),
    };
    let most = MOST_EXPERTS / n_layers.max(1);
    if n_experts > most {
        return Err(file.unsupported(name, format!("at most {most} experts in {n_layers} layers")));
    }
    let experts = ExpertsConfig::new(n_experts, file.size("num_experts_per_tok")?);
    // For the training loss, which is the trainer's business.
    file.ignore("router_aux_loss_coef");
    file.ignore("output_router_logits");
    let all = vec![true; n_layers];
    match family {
        Family::Qwen3Moe => {
            let sparse = sparse(file, n_layers)?;
            let experts = experts
                .with_d_ff(file.size("moe_intermediate_size")?)
                .with_norm_topk_prob(file.flag("norm_topk_prob", false)?);
            Ok((Some(experts), sparse))
        }
        Family::GptOss => {
            // Older names of the numbers of experts and of positions, which transformers does not read.
            file.ignore("experts_per_token");
            file.ignore("initial_context_length");
            Ok((Some(experts.with_router_bias(true)), all))
        }
        _ => {
            // For training.
            file.ignore("router_jitter_noise");
            Ok((Some(experts), all))
        }
    }
}

/// Which of Qwen's layers have experts: every `decoder_sparse_step`-th, except those that are listed.
fn sparse(file: &mut ConfigFile, n_layers: usize) -> Result<Vec<bool>, PretrainedError> {
    let step = file.size_or("decoder_sparse_step", 1)?;
    if step == 0 {
        return Err(file.unsupported("decoder_sparse_step", "1 or more"));
    }
    let dense = file.sizes_if_any("mlp_only_layers")?.unwrap_or_default();
    let sparse = |layer: usize| (layer + 1).is_multiple_of(step) && !dense.contains(&layer);
    Ok((0..n_layers).map(sparse).collect())
}

/// The table rows of a layer's experts.
pub(super) fn table(family: Family) -> Table {
    let [inner, outer] = ["linear_inner", "linear_outer"];
    let target = |linear: &str| format!("experts.{{expert}}.{linear}");
    // Each expert has separate tensors.
    let apart = |router: &str, experts: &str, [gate, up, down]: [&str; 3]| {
        let source = |name: &str| format!("{experts}.{{expert}}.{name}");
        Table::new()
            .linear("router", router)
            .linear(
                target(inner).as_str(),
                [source(gate).as_str(), source(up).as_str()],
            )
            .linear(target(outer).as_str(), source(down).as_str())
    };
    match family {
        Family::Mixtral => apart(
            "block_sparse_moe.gate",
            "block_sparse_moe.experts",
            ["w1", "w3", "w2"],
        ),
        Family::Qwen3Moe => apart(
            "mlp.gate",
            "mlp.experts",
            ["gate_proj", "up_proj", "down_proj"],
        ),
        // All experts in one tensor, with the inputs first, as in the parameters.
        Family::GptOss => {
            let gate_up = |name: &str| same(name).interleaved([1, 1]).stacked("expert");
            let down = |name: &str| same(name).stacked("expert");
            let target = |linear: &str, parameter: &str| format!("{}.{parameter}", target(linear));
            let table = Table::new().linear("router", "mlp.router");
            [
                (target(inner, "weight"), gate_up("mlp.experts.gate_up_proj")),
                (
                    target(inner, "bias"),
                    gate_up("mlp.experts.gate_up_proj_bias"),
                ),
                (target(outer, "weight"), down("mlp.experts.down_proj")),
                (target(outer, "bias"), down("mlp.experts.down_proj_bias")),
            ]
            .into_iter()
            .fold(table, |table, (target, source)| {
                table.row(target.as_str(), source)
            })
        }
        _ => Table::new(),
    }
}
