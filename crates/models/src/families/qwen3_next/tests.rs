//! What is read of the published files.

use burn_attn::{LayerPattern, positions::PositionEncoding};
use serde_json::to_value;

use super::*;
use crate::families::decoder::file_of;

/// The fields of Qwen3-Next-80B-A3B.
const PUBLISHED: &str = r#"{
    "architectures": ["Qwen3NextForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
    "decoder_sparse_step": 1, "eos_token_id": 151645, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5120, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, "max_position_embeddings": 262144,
    "mlp_only_layers": [], "model_type": "qwen3_next", "moe_intermediate_size": 512, "norm_topk_prob": true, "num_attention_heads": 16,
    "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2, "output_router_logits": false,
    "partial_rotary_factor": 0.25, "rms_norm_eps": 1e-6, "rope_scaling": null, "rope_theta": 10000000, "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 512, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.57.0.dev0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936
}"#;

#[test]
fn published_fields_are_read() {
    let mut file = file_of(&[PUBLISHED]);
    let model = config(&mut file).expect("a model");
    file.finish().expect("nothing else");
    model.validate().expect("mixers");
    let config = &model.config;
    config.validate().expect("a model");
    let sizes = [config.d_model, config.n_heads, config.n_layers, config.d_ff];
    assert_eq!(sizes, [2048, 16, 48, 5120]);
    let others = (config.vocab_size, config.max_len, config.tied);
    assert_eq!(others, (151_936, 262_144, false));
    let layers = (0..48).map(|layer| layer % 4 == 3);
    assert!(model.has_attention.iter().copied().eq(layers));
    let norm = NormConfig::rms_norm().with_epsilon(1e-6).with_unit_offset();
    let heads = HeadsConfig::new()
        .with_n_kv_heads(Some(2))
        .with_d_head(Some(256))
        .with_gate(true)
        .with_qk_norm(Some(QkNormConfig::PerHead(norm)));
    let attention = SelfAttentionConfig::new(2048, 16)
        .with_heads(heads)
        .with_causal(true)
        .with_bias(ProjectionBias::none())
        .with_dropout(0.0);
    assert_eq!(to_value(&model.attention).ok(), to_value(&attention).ok());
    // The rest is as by default.
    let delta_rule = GatedDeltaRuleConfig::new(2048, 16, 32, 128, 128);
    assert_eq!(to_value(&model.delta_rule).ok(), to_value(&delta_rule).ok());
    let LayerPattern::Cycle(blocks) = &config.pattern else {
        panic!("{:?}", config.pattern);
    };
    assert_eq!(blocks.len(), 48);
    let experts = ExpertsConfig::new(512, 10)
        .with_d_ff(512)
        .with_d_shared(512)
        .with_shared_gate(true);
    let rotary = RotaryConfig::new()
        .with_max_len(262_144)
        .with_base(1e7)
        .with_rotary_dim(64);
    let position = PositionEncoding::Rotary(rotary);
    for block in blocks {
        assert_eq!(to_value(&block.experts).ok(), to_value(Some(&experts)).ok());
        assert_eq!(
            to_value(&block.heads.position).ok(),
            to_value(&position).ok()
        );
    }
}
