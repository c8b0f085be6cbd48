//! Which parameter is which tensor.

use super::{Family, experts};
use crate::{
    language_model::LanguageModelConfig,
    weights::{Table, same, transposed},
};

/// The table of `LlamaForCausalLM` and its relatives.
pub(super) fn table(family: Family, config: &LanguageModelConfig) -> Table {
    let n_heads = config.n_heads;
    let n_kv_heads = config.block.heads.n_kv_heads.unwrap_or(n_heads);
    let projections = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
    let layer = Table::new()
        .linear(
            "self_attention.query_key_value",
            same(projections).shares([n_heads, n_kv_heads, n_kv_heads]),
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
