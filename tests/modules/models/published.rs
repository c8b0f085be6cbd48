//! Configurations as they are published: with fields that `transformers` writes no longer, and without some that it writes.

use burn::tensor::{Int, Tensor};
use burn_attn_models::language_model::LanguageModel;
use burn_attn_tests::devices;
use serde_json::{Value, json};

use super::{
    gpt2,
    llama::{self, FAMILY},
};

fn logits(model: &LanguageModel) -> Vec<f32> {
    let tokens = Tensor::<2, Int>::from_data([[3, 1, 2, 5]], &devices::any());
    model.forward(tokens).into_data().iter().collect()
}

#[test]
fn fields_that_change_nothing() {
    let everywhere = [
        ("unsloth_fixed", json!(true)),
        ("transformers.js_config", json!({"dtype": "q4"})),
        ("_attn_implementation", json!("eager")),
        ("is_decoder", json!(false)),
        ("pruned_heads", json!({})),
        ("typical_p", json!(1.0)),
    ];
    let families: [(_, &[(&str, Value)]); 7] = [
        (
            "llama",
            &[
                ("is_llama_config", json!(true)),
                ("rope_interleaved", json!(false)),
            ],
        ),
        ("mistral", &[]),
        ("qwen2", &[("use_mrope", json!(false))]),
        ("gemma2", &[("sliding_window_size", json!(4096))]),
        (
            "qwen3_moe",
            &[
                ("shared_expert_intermediate_size", json!(0)),
                ("use_qk_norm", json!(true)),
                ("qkv_bias", json!(false)),
            ],
        ),
        ("mixtral", &[("router_jitter_noise", json!(0.01))]),
        ("gpt2", &[("n_special", json!(0))]),
    ];
    for (family, fields) in families {
        let model = match family {
            "gpt2" => gpt2::model(),
            _ => llama::model(family),
        };
        let changed = model.changed(|config| {
            for (field, value) in everywhere.iter().chain(fields) {
                config.insert((*field).into(), value.clone());
            }
        });
        let expected = logits(&model.load(&devices::any()));
        assert_eq!(logits(&changed.expect(family)), expected, "{family}");
    }
}

#[test]
fn fields_that_change_something() {
    for (field, value) in [
        ("is_decoder", json!(true)),
        ("pruned_heads", json!({"0": [1]})),
    ] {
        let expected = format!("config.json: the Llama family does not know {field}");
        llama::model("llama").assert_refused(field, value, &expected);
    }
    for (family, field) in [("llama", "rope_interleaved"), ("qwen2", "use_mrope")] {
        llama::model(family).assert_unsupported(FAMILY, [(field, json!(true), "false")]);
    }
}

/// As the cards of Qwen's models say to read long texts: the length in the file stays that of before.
#[test]
fn yarn_reaches_as_far_as_its_stretch() {
    let stretched = |rope: Value| llama::model("llama").set("rope_parameters", rope);
    let yarn = json!({"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 17});
    let model = stretched(yarn).expect("a model");
    assert_eq!(model.max_len(), 4 * 17);
    let tokens = Tensor::<2, Int>::full([1, 60], 3, &devices::any());
    assert_eq!(model.forward(tokens).dims(), [1, 60, 13]);
    // The positions of the model, where the file does not say those of before.
    let short = json!({"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0});
    let short = stretched(short).expect("a model");
    assert_eq!(logits(&short), logits(&model));
    let error = stretched(json!({"rope_type": "yarn", "rope_theta": 500.0, "factor": 1e9}));
    assert_eq!(
        error.expect_err("it is refused"),
        "config.json: factor is 1000000000.0, but the Llama family supports at most 16777216 positions"
    );
}

/// transformers would take numbers of its own.
#[test]
fn windows_that_are_not_said() {
    for field in ["max_window_layers", "sliding_window"] {
        let error = llama::model("qwen3").changed(|config| {
            config.remove("layer_types");
            config.insert("use_sliding_window".into(), json!(true));
            config.insert("max_window_layers".into(), json!(1));
            config.insert("sliding_window".into(), json!(4));
            config.remove(field);
        });
        assert_eq!(
            error.expect_err("it is refused"),
            format!("config.json has no field {field}, which the Llama family needs")
        );
    }
    let error = llama::model("qwen3_moe").changed(|config| {
        config.insert("use_sliding_window".into(), json!(true));
        config.remove("sliding_window");
    });
    assert_eq!(
        error.expect_err("it is refused"),
        "config.json has no field sliding_window, which the Llama family needs"
    );
}
