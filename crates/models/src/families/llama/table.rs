//! Which parameter is which tensor.

use burn_attn::NormPlacement;

use super::{experts, family::FamilySpec};
use crate::{
    families::files::{GATED, gated_feed_forward},
    language_model::LanguageModelConfig,
    weights::{Source, Table, joined, same, transposed},
};

const PROJECTIONS: [&str; 3] = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];

/// The table of `LlamaForCausalLM` and its relatives.
pub(super) fn table(spec: &FamilySpec, config: &LanguageModelConfig) -> Table {
    table_with(spec, config, same(PROJECTIONS))
}

fn table_with(spec: &FamilySpec, config: &LanguageModelConfig, projections: Source) -> Table {
    let n_heads = config.n_heads;
    let n_kv_heads = config.block.heads.n_kv_heads.unwrap_or(n_heads);
    let mut layer = Table::new()
        .linear(
            "self_attention.query_key_value",
            projections.shares([n_heads, n_kv_heads, n_kv_heads]),
        )
        .linear("self_attention.output", "self_attn.o_proj")
        .row("self_attention.heads.sinks", "self_attn.sinks")
        .part("feed_forward", "", gated_feed_forward("mlp", GATED));
    if let Some(experts) = &spec.experts {
        layer = layer.part("mixture_of_experts", "", experts::table(experts));
    }
    let [attention, feed_forward] = ["self_attention_residual", "feed_forward_residual"];
    let norms = match spec.placement {
        NormPlacement::Sandwich => vec![
            (attention, "norm", "input_layernorm"),
            (attention, "output_norm", "post_attention_layernorm"),
            (feed_forward, "norm", "pre_feedforward_layernorm"),
            (feed_forward, "output_norm", "post_feedforward_layernorm"),
        ],
        NormPlacement::PostSublayer => vec![
            (attention, "norm", "post_attention_layernorm"),
            (feed_forward, "norm", "post_feedforward_layernorm"),
        ],
        _ => vec![
            (attention, "norm", "input_layernorm"),
            (feed_forward, "norm", "post_attention_layernorm"),
        ],
    };
    for (sublayer, norm, source) in norms {
        layer = layer.norm(&joined(sublayer, norm), source);
    }
    if spec.qk_norm.is_some() {
        for (of, source) in [("query", "q_norm"), ("key", "k_norm")] {
            let gamma = format!("self_attention.heads.qk_norm.{of}.gamma");
            layer = layer.row(gamma, format!("self_attn.{source}.weight"));
        }
    }
    around_layers(layer, config.tied)
}

/// Embedding, layers, norm and head by the names that Llama and most models since have, of which `layer` is the table of one.
pub(in crate::families) fn around_layers(layer: Table, is_tied: bool) -> Table {
    let table = Table::new()
        .row("embedding.weight", "model.embed_tokens.weight")
        .part("transformer.layers.{layer}", "model.layers.{layer}", layer)
        .norm("transformer.norm", "model.norm")
        .ignore("*.rotary_emb.inv_freq");
    match is_tied {
        true => table.tied("lm_head.weight", "model.embed_tokens.weight"),
        false => table.row("head.weight", transposed("lm_head.weight")),
    }
}

/// The table of the same models in a GGUF file of llama.cpp.
pub(super) fn gguf(spec: &FamilySpec, config: &LanguageModelConfig) -> Table {
    let projections = match spec.gguf_rotary_pairs {
        true => {
            let d_head = config.block.heads.d_head;
            let d_head = d_head.unwrap_or(config.d_model / config.n_heads.max(1));
            same(PROJECTIONS).rotary_pairs([d_head, d_head, 0])
        }
        false => same(PROJECTIONS),
    };
    let of_model = [
        ("token_embd", "model.embed_tokens"),
        ("output_norm", "model.norm"),
        ("output", "lm_head"),
    ];
    let of_layer = [
        ("attn_norm", "input_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_q_norm", "self_attn.q_norm"),
        ("attn_k_norm", "self_attn.k_norm"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_norm", "post_attention_layernorm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ];
    table_with(spec, config, projections)
        .ignore("rope_freqs.weight")
        .rename_all(&of_model, ["", ""])
        .rename_all(&of_layer, ["blk.*.", "model.layers.*."])
}
