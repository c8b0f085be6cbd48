//! Which parameter is which tensor.

use super::{Family, experts};
use crate::{
    language_model::LanguageModelConfig,
    weights::{Source, Table, same, transposed},
};

const PROJECTIONS: [&str; 3] = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];

/// The table of `LlamaForCausalLM` and its relatives.
pub(super) fn table(family: Family, config: &LanguageModelConfig) -> Table {
    let projections = same(PROJECTIONS);
    table_with(family, config, projections)
}

fn table_with(family: Family, config: &LanguageModelConfig, projections: Source) -> Table {
    let n_heads = config.n_heads;
    let n_kv_heads = config.block.heads.n_kv_heads.unwrap_or(n_heads);
    let layer = Table::new()
        .linear(
            "self_attention.query_key_value",
            projections.shares([n_heads, n_kv_heads, n_kv_heads]),
        )
        .linear("self_attention.output", "self_attn.o_proj")
        .row("self_attention.heads.sinks", "self_attn.sinks")
        .linear(
            "feed_forward.linear_inner",
            ["mlp.gate_proj", "mlp.up_proj"],
        )
        .linear("feed_forward.linear_outer", "mlp.down_proj")
        .part("mixture_of_experts", "", experts::table(family));
    let layer = match family {
        Family::Gemma2 | Family::Gemma3 => layer
            .norm("self_attention_residual.norm", "input_layernorm")
            .norm(
                "self_attention_residual.output_norm",
                "post_attention_layernorm",
            )
            .norm("feed_forward_residual.norm", "pre_feedforward_layernorm")
            .norm(
                "feed_forward_residual.output_norm",
                "post_feedforward_layernorm",
            ),
        Family::Olmo2 => layer
            .norm("self_attention_residual.norm", "post_attention_layernorm")
            .norm("feed_forward_residual.norm", "post_feedforward_layernorm"),
        _ => layer
            .norm("self_attention_residual.norm", "input_layernorm")
            .norm("feed_forward_residual.norm", "post_attention_layernorm"),
    };
    let [query, key] = ["q_norm", "k_norm"].map(|norm| {
        let norm = same(format!("self_attn.{norm}.weight").as_str());
        match family {
            Family::Gemma3 => norm.plus_one(),
            _ => norm,
        }
    });
    let layer = match family {
        Family::Qwen3 | Family::Qwen3Moe | Family::Gemma3 | Family::Olmo2 => layer
            .row("self_attention.heads.qk_norm.query.gamma", query)
            .row("self_attention.heads.qk_norm.key.gamma", key),
        _ => layer,
    };
    let table = Table::new()
        .row("embedding.weight", "model.embed_tokens.weight")
        .part("transformer.layers.{layer}", "model.layers.{layer}", layer)
        .norm("transformer.norm", "model.norm")
        .ignore("*.rotary_emb.inv_freq");
    match config.tied {
        true => table.tied("lm_head.weight", "model.embed_tokens.weight"),
        false => table.row("head.weight", transposed("lm_head.weight")),
    }
}

/// The table of the same models in a GGUF file of llama.cpp.
pub(super) fn gguf(family: Family, config: &LanguageModelConfig) -> Table {
    let projections = match family {
        // Its converter reorders their queries and keys.
        Family::Llama => {
            let d_head = config.block.heads.d_head;
            let d_head = d_head.unwrap_or(config.d_model / config.n_heads.max(1));
            same(PROJECTIONS).rotary_pairs([d_head, d_head, 0])
        }
        _ => same(PROJECTIONS),
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
    table_with(family, config, projections)
        .ignore("rope_freqs.weight")
        .rename_all(&of_model, ["", ""])
        .rename_all(&of_layer, ["blk.*.", "model.layers.*."])
}
