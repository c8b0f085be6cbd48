//! What is read of the published files.

use burn_attn::{
    LayerPattern,
    positions::{RotaryScaling, YarnScaling},
};
use serde_json::{Value, to_value};

use super::*;
use crate::families::decoder::file_of;

/// The fields of DeepSeek-V2 and V2-Lite, but those that differ.
const COMMON: &str = r#"{
    "architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "aux_loss_alpha": 0.001, "auto_map": {},
    "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu", "initializer_range": 0.02,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_layer_freq": 1, "n_shared_experts": 2,
    "norm_topk_prob": false, "num_experts_per_tok": 6, "pretraining_tp": 1, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-6, "rope_theta": 10000, "scoring_func": "softmax", "seq_aux": true, "tie_word_embeddings": false,
    "rope_scaling": {
        "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096,
        "type": "yarn"
    },
    "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true, "v_head_dim": 128, "vocab_size": 102400
}"#;

const LITE: &str = r#"{
    "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 64,
    "num_attention_heads": 16, "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "routed_scaling_factor": 1.0,
    "topk_group": 1, "topk_method": "greedy"
}"#;

const WHOLE: &str = r#"{
    "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_group": 8, "n_routed_experts": 160,
    "num_attention_heads": 128, "num_hidden_layers": 60, "num_key_value_heads": 128, "q_lora_rank": 1536, "routed_scaling_factor": 16.0,
    "topk_group": 3, "topk_method": "group_limited_greedy"
}"#;

/// `[d_model, n_heads, n_layers, d_ff]`, and the experts of all layers but the first.
fn check(own: &str, sizes: [usize; 4], query_latent: Option<usize>, experts: ExpertsConfig) {
    let mut file = file_of(&[COMMON, own]);
    let (config, attention) = config(&mut file).expect("a model");
    file.finish().expect("nothing else");
    config.validate().expect("a model");
    let found = [config.d_model, config.n_heads, config.n_layers, config.d_ff];
    assert_eq!(found, sizes);
    assert_eq!(
        (config.vocab_size, config.max_len, config.tied),
        (102_400, 163_840, false)
    );
    let [d_model, n_heads, n_layers, _] = sizes;
    // The scale of DeepSeek's code has the square of 0.1 · 0.707 · ln(40) + 1, which is 1.2608.
    let expected = LatentAttentionConfig::new(d_model, n_heads, 512, 128, 64, 128)
        .with_d_query_latent(query_latent)
        .with_scale(attention.scale)
        .with_position(PositionEncoding::None);
    assert_eq!(to_value(&attention).ok(), to_value(&expected).ok());
    let scale = attention.scale.expect("a scale");
    assert!((scale - 1.260_8f64.powi(2) / 192f64.sqrt()).abs() < 1e-5);
    let yarn = YarnScaling::new(40.0, 4096).with_mscale(0.707, 0.707);
    let rotary = RotaryConfig::new()
        .with_max_len(163_840)
        .with_layout(RotaryLayout::Interleaved)
        .with_scaling(RotaryScaling::Yarn(yarn));
    let LayerPattern::Cycle(blocks) = &config.pattern else {
        panic!("{:?}", config.pattern);
    };
    let of_layers: Vec<Value> = (0..n_layers)
        .map(|layer| to_value((layer > 0).then_some(&experts)).expect("JSON"))
        .collect();
    let found = blocks.iter().map(|block| to_value(&block.experts));
    assert_eq!(found.collect::<Result<Vec<_>, _>>().ok(), Some(of_layers));
    let position = PositionEncoding::Rotary(rotary);
    for block in blocks {
        assert_eq!(
            to_value(&block.heads.position).ok(),
            to_value(&position).ok()
        );
        assert_eq!(block.heads.d_head, Some(64));
    }
}

#[test]
fn published_fields_are_read() {
    let experts = |n_experts, d_ff| {
        ExpertsConfig::new(n_experts, 6)
            .with_d_ff(d_ff)
            .with_norm_topk_prob(false)
            .with_router_in_f32(true)
            .with_d_shared(2 * d_ff)
    };
    check(LITE, [2048, 16, 27, 10944], None, experts(64, 1408));
    let whole = experts(160, 1536)
        .with_routed_scale(16.0)
        .with_n_groups(8)
        .with_top_k_groups(3);
    check(WHOLE, [5120, 128, 60, 12288], Some(1536), whole);
}
