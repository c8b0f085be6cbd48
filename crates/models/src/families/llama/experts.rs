//! The experts of a configuration, and which tensors they are.

use burn_attn::ExpertsConfig;
use serde_json::json;

use super::family::{Experts, FamilySpec};
use crate::{
    families::files::gated_feed_forward,
    pretrained::{ConfigFile, Result},
    weights::{Table, same},
};

/// The most experts accepted, in all layers together: published models have some ten thousand, and each takes memory before any
/// weight is read.
const MOST_EXPERTS: usize = 200_000;

/// The experts of a family that has them, and the layers that they are in.
pub(super) fn read(
    file: &mut ConfigFile,
    spec: &FamilySpec,
    n_layers: usize,
) -> Result<(Option<ExpertsConfig>, Vec<bool>)> {
    let Some(of_family) = &spec.experts else {
        return Ok((None, vec![false; n_layers]));
    };
    // The name that version 5 of transformers writes, and that Qwen had before.
    let (name, n_experts) = match file.size_if_any("num_experts")? {
        Some(n_experts) => {
            file.only("num_local_experts", json!(n_experts))?;
            ("num_experts", n_experts)
        }
        None => ("num_local_experts", file.size("num_local_experts")?),
    };
    check_count(file, name, n_experts, n_layers)?;
    let experts = ExpertsConfig::new(n_experts, file.size("num_experts_per_tok")?)
        .with_router_bias(of_family.router_bias);
    if !of_family.sparse {
        return Ok((Some(experts), vec![true; n_layers]));
    }
    let sparse = sparse(file, n_layers)?;
    let experts = experts
        .with_d_ff(file.size("moe_intermediate_size")?)
        .with_norm_topk_prob(file.flag("norm_topk_prob", false)?);
    Ok((Some(experts), sparse))
}

/// Refuses more experts than any model has.
pub(in crate::families) fn check_count(
    file: &ConfigFile,
    field: &str,
    n_experts: usize,
    n_layers: usize,
) -> Result<()> {
    let most = MOST_EXPERTS / n_layers.max(1);
    file.check(field, n_experts <= most, || {
        format!("at most {most} experts in {n_layers} layers")
    })
}

/// Which of Qwen's layers have experts: every `decoder_sparse_step`-th, except those that are listed.
pub(in crate::families) fn sparse(file: &mut ConfigFile, n_layers: usize) -> Result<Vec<bool>> {
    let step = file.size_or("decoder_sparse_step", 1)?;
    file.check("decoder_sparse_step", step > 0, || "1 or more")?;
    let dense: Option<Vec<usize>> = file.value("mlp_only_layers", "a list of whole numbers")?;
    let dense = dense.unwrap_or_default();
    let sparse = |layer: usize| (layer + 1).is_multiple_of(step) && !dense.contains(&layer);
    Ok((0..n_layers).map(sparse).collect())
}

pub(super) fn table(experts: &Experts) -> Table {
    let table = Table::new().linear("router", experts.router);
    if let Some((module, names)) = experts.apart {
        let expert = gated_feed_forward(&format!("{module}.{{expert}}"), names);
        return table.part("experts.{expert}", "", expert);
    }
    let endings = [("weight", ""), ("bias", "_bias")];
    endings.into_iter().fold(table, |table, (name, ending)| {
        let target = |linear: &str| format!("experts.{{expert}}.{linear}.{name}");
        // With the inputs first, as in the parameters.
        let source = |linear: &str| same(format!("mlp.experts.{linear}{ending}")).stacked("expert");
        let gate_up = source("gate_up_proj").interleaved([1, 1]);
        table
            .row(target("linear_inner"), gate_up)
            .row(target("linear_outer"), source("down_proj"))
    })
}
