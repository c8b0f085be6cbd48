//! The tables of three families, for [`LanguageModel`](burn_attn_models::language_model::LanguageModel).

use burn_attn_models::weights::{Table, same, transposed};

/// Where the layers of ours are.
const LAYERS: &str = "transformer.layers.{layer}";

/// `GPT2LMHeadModel`. Its `Conv1D` is laid out as our linear layers.
pub fn gpt2() -> Table {
    let layer = Table::new()
        .norm("self_attention_residual.norm", "ln_1")
        .row(
            "self_attention.query_key_value.weight",
            "attn.c_attn.weight",
        )
        .row("self_attention.query_key_value.bias", "attn.c_attn.bias")
        .row("self_attention.output.weight", "attn.c_proj.weight")
        .row("self_attention.output.bias", "attn.c_proj.bias")
        .norm("feed_forward_residual.norm", "ln_2")
        .row("feed_forward.linear_inner.weight", "mlp.c_fc.weight")
        .row("feed_forward.linear_inner.bias", "mlp.c_fc.bias")
        .row("feed_forward.linear_outer.weight", "mlp.c_proj.weight")
        .row("feed_forward.linear_outer.bias", "mlp.c_proj.bias")
        .ignore("attn.bias")
        .ignore("attn.masked_bias");
    Table::new()
        .row("embedding.weight", "transformer.wte.weight")
        .row("learned.table", "transformer.wpe.weight")
        .part(LAYERS, "transformer.h.{layer}", layer)
        .norm("transformer.norm", "transformer.ln_f")
        .tied("lm_head.weight", "transformer.wte.weight")
        // Without the head, as the first checkpoints were saved.
        .rename("wte.*", "transformer.wte.*")
        .rename("wpe.*", "transformer.wpe.*")
        .rename("h.*", "transformer.h.*")
        .rename("ln_f.*", "transformer.ln_f.*")
}

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

/// `GPTNeoXForCausalLM`, whose heads have their query, key and value together.
pub fn gpt_neox(d_head: usize) -> Table {
    let layer = Table::new()
        .norm("self_attention_residual.norm", "input_layernorm")
        .linear(
            "self_attention.query_key_value",
            same("attention.query_key_value").interleaved([d_head; 3]),
        )
        .linear("self_attention.output", "attention.dense")
        .norm("feed_forward_residual.norm", "post_attention_layernorm")
        .linear("feed_forward.linear_inner", "mlp.dense_h_to_4h")
        .linear("feed_forward.linear_outer", "mlp.dense_4h_to_h");
    Table::new()
        .row("embedding.weight", "gpt_neox.embed_in.weight")
        .part(LAYERS, "gpt_neox.layers.{layer}", layer)
        .norm("transformer.norm", "gpt_neox.final_layer_norm")
        .row("head.weight", transposed("embed_out.weight"))
}
