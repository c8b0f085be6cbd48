//! GPT-2 against `transformers`.

use burn_attn_models::gpt2;
use burn_attn_tests::devices;
use serde_json::{Value, json};

use super::{ACTIVATIONS, assert_feed_forward_without_dropout, folder, language_models::Model};

pub(super) fn model() -> Model {
    Model {
        name: "gpt2",
        from_pretrained: |folder, device| gpt2::from_pretrained(folder, device),
        table: gpt2::table(),
    }
}

#[test]
fn logits_and_every_layer_are_the_references() {
    model().check_states();
}

#[test]
fn greedy_tokens_are_the_references() {
    model().check_generation();
}

#[test]
fn it_is_written_back_bit_for_bit() {
    model().check_export();
}

#[test]
fn every_activation_is_the_references() {
    let values = model().values();
    let names = values
        .names()
        .filter_map(|name| name.strip_prefix("logits."));
    let mut count = 0;
    for name in names {
        let changed = model().set("activation_function", name).expect("a model");
        model().assert_logits(name, &changed, &values.data(&format!("logits.{name}")));
        count += 1;
    }
    assert_eq!(count, 11);
}

#[test]
fn the_first_files_had_fewer_fields() {
    model().assert_same_model(|config| {
        for field in [
            "activation_function",
            "scale_attn_weights",
            "tie_word_embeddings",
        ] {
            config.remove(field).expect("a field");
        }
        config.insert("n_ctx".into(), json!(19));
    });
    // Four times the width, unless it is said.
    let error = model().set("n_inner", Value::Null);
    let error = error.expect_err("it is refused");
    assert!(
        error.contains("transformer.h.0.mlp.c_fc.weight is [15, 13] instead of [15, 60]"),
        "{error}"
    );
}

#[test]
fn older_files_had_more_tensors() {
    model().assert_same_weights(|tensors| {
        let embedding = tensors["transformer.wte.weight"].clone();
        tensors.insert("lm_head.weight".into(), embedding);
        for layer in ["transformer.h.0", "transformer.h.1"] {
            let mask = ("BOOL".into(), vec![1, 1, 3, 3], vec![1; 9]);
            tensors.insert(format!("{layer}.attn.bias"), mask);
            let masked = ("F32".into(), vec![], (-1e4f32).to_le_bytes().into());
            tensors.insert(format!("{layer}.attn.masked_bias"), masked);
        }
    });
}

#[test]
fn one_sentence_names_the_field() {
    model().assert_unsupported(
        "GPT-2",
        [
            ("scale_attn_weights", json!(false), "true"),
            ("scale_attn_by_inverse_layer_idx", json!(true), "false"),
            ("reorder_and_upcast_attn", json!(true), "false"),
            ("add_cross_attention", json!(true), "false"),
            ("tie_word_embeddings", json!(false), "true"),
            ("n_ctx", json!(23), "19"),
            ("activation_function", json!("mish"), ACTIVATIONS),
            ("model_type", json!("gptj"), "\"gpt2\""),
        ],
    );
    for (field, value, expected) in [
        (
            "n_head",
            json!(4),
            "LanguageModelConfig: d_model 15 is not divisible by n_heads 4",
        ),
        (
            "resid_pdrop",
            json!(1.5),
            "LanguageModelConfig: dropout must be in [0, 1), got 1.5",
        ),
    ] {
        model().assert_refused(field, value, &format!("config.json: {expected}"));
    }
    model().assert_refused(
        "rotary_dim",
        json!(4),
        "config.json: GPT-2 does not know rotary_dim",
    );
    model().assert_refused(
        "n_positions",
        Value::Null,
        "config.json has no field n_positions, which GPT-2 needs",
    );
}

#[test]
fn feed_forward_networks_drop_nothing() {
    let model = gpt2::from_pretrained(folder("gpt2"), &devices::any()).expect("a model");
    assert_feed_forward_without_dropout(&model.transformer.layers[0]);
}
