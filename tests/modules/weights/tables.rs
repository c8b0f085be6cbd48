//! The table of Llama, for [`LanguageModel`](burn_attn_models::language_model::LanguageModel).

use burn_attn_models::weights::{Table, same, transposed};

/// Where the layers of ours are.
const LAYERS: &str = "transformer.layers.{layer}";

/// `LlamaForCausalLM`.
pub fn llama(n_heads: usize, n_kv_heads: usize) -> Table {
    let projections = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
    let layer = Table::new()
        .norm("self_attention_residual.norm", "input_layernorm")
        .linear(
            "self_attention.query_key_value",
            same(projections).shares([n_heads, n_kv_heads, n_kv_heads]),
        )
        .linear("self_attention.output", "self_attn.o_proj")
        .norm("feed_forward_residual.norm", "post_attention_layernorm")
        .linear(
            "feed_forward.linear_inner",
            ["mlp.gate_proj", "mlp.up_proj"],
        )
        .linear("feed_forward.linear_outer", "mlp.down_proj");
    Table::new()
        .row("embedding.weight", "model.embed_tokens.weight")
        .part(LAYERS, "model.layers.{layer}", layer)
        .norm("transformer.norm", "model.norm")
        .row("head.weight", transposed("lm_head.weight"))
        .ignore("*.rotary_emb.inv_freq")
}
