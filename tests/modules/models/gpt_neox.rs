//! GPT-NeoX against `transformers`: parallel with a head of its own, and one after the other with all else chosen otherwise.

use burn_attn_models::gpt_neox;
use serde_json::{Value, json};

use super::{ACTIVATIONS, assert_feed_forward_without_dropout, language_models::Model};
use crate::weights::Contents;

fn model(name: &'static str) -> Model {
    Model {
        name,
        from_pretrained: |folder, device| gpt_neox::from_pretrained(folder, device),
        table: gpt_neox::table(8),
    }
}

pub(super) fn parallel() -> Model {
    model("gpt_neox")
}

fn sequential() -> Model {
    model("gpt_neox_sequential")
}

#[test]
fn logits_and_every_layer_are_the_references() {
    parallel().check_states();
    sequential().check_states();
}

#[test]
fn greedy_tokens_are_the_references() {
    parallel().check_generation();
    sequential().check_generation();
}

#[test]
fn it_is_written_back_bit_for_bit() {
    parallel().check_export();
    sequential().check_export();
}

#[test]
fn fields_had_other_names() {
    // Pythia's.
    parallel().assert_same_model(|config| {
        for field in [
            "rope_parameters",
            "attention_bias",
            "attention_dropout",
            "hidden_dropout",
        ] {
            config.remove(field).expect("a field");
        }
        config.insert("rotary_pct".into(), json!(0.5));
        config.insert("rotary_emb_base".into(), json!(1000));
    });
    // Written by the releases in between, which had them twice.
    sequential().assert_same_model(|config| {
        config.remove("rope_parameters").expect("a field");
        config.insert("rotary_pct".into(), json!(0.75));
        config.insert("partial_rotary_factor".into(), json!(0.75));
        config.insert("rotary_emb_base".into(), json!(100));
        config.insert("rope_theta".into(), json!(100.0));
        config.insert(
            "rope_scaling".into(),
            json!({"type": "linear", "factor": 3}),
        );
    });
}

#[test]
fn a_quarter_of_each_head_is_rotated_by_default() {
    let rotated = |rotary: Value| {
        let model = parallel().set("rope_parameters", rotary);
        parallel().logits_of(&model.unwrap_or_else(|error| panic!("{error}")))
    };
    let quarter = json!({"rope_theta": 10_000.0, "partial_rotary_factor": 0.25});
    let by_default = rotated(Value::Null);
    assert_eq!(by_default, rotated(quarter));
    assert_ne!(
        by_default,
        rotated(json!({"rope_theta": 10_000.0, "partial_rotary_factor": 0.5}))
    );
}

#[test]
fn older_files_had_more_tensors() {
    // Pythia's.
    let buffers = |tensors: &mut Contents| {
        for layer in ["gpt_neox.layers.0.attention", "gpt_neox.layers.1.attention"] {
            let mask = ("BOOL".into(), vec![1, 1, 3, 3], vec![1; 9]);
            tensors.insert(format!("{layer}.bias"), mask);
            let number = |shape| ("F32".into(), shape, (-1e4f32).to_le_bytes().into());
            tensors.insert(format!("{layer}.masked_bias"), number(vec![]));
            tensors.insert(format!("{layer}.rotary_emb.inv_freq"), number(vec![1]));
        }
    };
    parallel().assert_same_weights(|tensors| {
        buffers(tensors);
        // As the state of the module calls it.
        let head = tensors.remove("embed_out.weight").expect("a head");
        tensors.insert("lm_head.weight".into(), head);
    });
    sequential().assert_same_weights(|tensors| {
        buffers(tensors);
        let embedding = tensors["gpt_neox.embed_in.weight"].clone();
        tensors.insert("embed_out.weight".into(), embedding);
    });
}

#[test]
fn one_sentence_names_the_field() {
    let refused = [
        (
            "rope_scaling",
            json!({"type": "linear", "factor": 2.0}),
            r#"rope_parameters is {"partial_rotary_factor":0.5,"rope_theta":1000.0,"rope_type":"default"}, but GPT-NeoX supports null"#,
        ),
        (
            "rope_parameters",
            json!({"rope_type": "dynamic", "factor": 2.0}),
            r#"rope_parameters.rope_type is "dynamic", but GPT-NeoX supports default, linear"#,
        ),
        (
            "rope_parameters",
            json!({"rope_type": "default", "mscale": 2.0}),
            "GPT-NeoX does not know rope_parameters.mscale",
        ),
        (
            "num_attention_heads",
            json!(5),
            "LanguageModelConfig: d_model 24 is not divisible by n_heads 5",
        ),
        (
            "num_attention_heads",
            json!(0),
            "LanguageModelConfig: n_heads must be at least 1, got 0",
        ),
        (
            "parallel_norms",
            json!(1),
            "GPT-NeoX does not know parallel_norms",
        ),
    ];
    for (field, value, expected) in refused {
        parallel().assert_refused(field, value, &format!("config.json: {expected}"));
    }
    parallel().assert_unsupported(
        "GPT-NeoX",
        [
            ("rope_parameters", json!(7), "an object"),
            ("rotary_pct", json!(0.25), "0.5"),
            ("rotary_emb_base", json!(10_000), "1000"),
            ("use_parallel_residual", json!("yes"), "true or false"),
            ("hidden_act", json!("mish"), ACTIVATIONS),
        ],
    );
    parallel().assert_refused(
        "rope_parameters",
        json!({"rope_type": "linear"}),
        "config.json has no field rope_parameters.factor, which GPT-NeoX needs",
    );
    parallel().assert_refused(
        "hidden_size",
        Value::Null,
        "config.json has no field hidden_size, which GPT-NeoX needs",
    );
    // Its own head is not left out in silence.
    let tied = parallel().set("tie_word_embeddings", true);
    let error = tied.expect_err("it is refused");
    assert!(error.contains("embed_out.weight"), "{error}");
}

#[test]
fn feed_forward_networks_drop_nothing() {
    let model = sequential().set("hidden_dropout", 0.5).expect("a model");
    assert_feed_forward_without_dropout(&model.transformer.layers[0]);
}
