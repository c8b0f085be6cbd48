//! Qwen3-Next against `transformers`.

use burn_attn::KvCacheConfig;
use burn_attn_models::{
    generate::{BeamOptions, GenerateOptions, beam_search, generate},
    language_model::LanguageModel,
    qwen3_next::{self, Mixer},
};
use burn_attn_tests::devices;
use serde_json::{Map, Value, json};

use super::{folder, language_models::Model};

fn model() -> Model<LanguageModel<Mixer>> {
    let name = "qwen3_next";
    Model {
        name,
        from_pretrained: |folder, device| qwen3_next::from_pretrained(folder, device),
        table: qwen3_next::table(folder(name)).unwrap_or_else(|error| panic!("{error}")),
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
fn training_lowers_the_loss() {
    model().check_training();
}

#[test]
fn it_is_written_back_bit_for_bit() {
    model().check_export();
}

/// Three layers have a memory that does not grow, the fourth a cache.
#[test]
fn the_state_grows_in_one_layer_of_four() {
    let model = model().load(&devices::any());
    let config = KvCacheConfig::new(model.max_len()).with_initial_capacity(5);
    let read = |len| {
        let mut cache = model.transformer.cache(2, &config);
        let input = burn_attn_tests::numbers::tensor([2, len, 12], 1, &devices::any());
        model.transformer.forward_cached(input, &mut cache);
        cache.bytes()
    };
    let memories = 3 * 2 * (4 * 5 * 3 + 3 * 32) * 4;
    assert_eq!(read(5), memories + 2 * 5 * (8 + 8) * 4);
    assert_eq!(read(10), memories + 2 * 10 * (8 + 8) * 4);
}

/// Rows are moved and repeated, and prompts with a common beginning read it once.
#[test]
fn generation_moves_and_forks_rows() {
    let model = model().set("max_position_embeddings", 40).expect("a model");
    let common: Vec<u32> = (0..17).map(|token| token * 7 % 23).collect();
    let prompts = [vec![2], vec![5, 11]].map(|end| [common.clone(), end].concat());
    let options = GenerateOptions::new(9);
    let beams = BeamOptions::new(3, 5);
    let together = generate(&model, model.start(2), &prompts, &options).expect("prompts");
    let found = beam_search(&model, model.start(2), &prompts, &beams).expect("prompts");
    for (row, prompt) in prompts.iter().enumerate() {
        let prompt = std::slice::from_ref(prompt);
        let alone = generate(&model, model.start(1), prompt, &options).expect("a prompt");
        assert_eq!(together[row].tokens, alone[0].tokens);
        let alone = beam_search(&model, model.start(1), prompt, &beams).expect("a prompt");
        assert_eq!(
            found[row][0].generation.tokens,
            alone[0][0].generation.tokens
        );
    }
}

/// The form of the published files.
fn older(config: &mut Map<String, Value>) {
    let rotary = config.remove("rope_parameters").expect("a field");
    for field in ["rope_theta", "partial_rotary_factor"] {
        config.insert(field.into(), rotary[field].clone());
    }
    config.insert("rope_scaling".into(), Value::Null);
    config.insert("use_sliding_window".into(), json!(false));
    config.remove("layer_types").expect("a field");
    config.insert("full_attention_interval".into(), json!(4));
}

#[test]
fn fields_had_other_names() {
    model().assert_same_model(older);
}

/// Version 4 of `transformers` does not look into the scaling for the part of a head that is rotated, version 5 does.
#[test]
fn the_rotated_part_is_the_same_inside_and_outside() {
    let model = model();
    let scaled = |outside: Value, inside: Value| {
        model.changed(|config| {
            older(config);
            config.insert("partial_rotary_factor".into(), outside);
            let scaling =
                json!({"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": inside});
            config.insert("rope_scaling".into(), scaling);
        })
    };
    let logits = |outside, inside| {
        let model = scaled(outside, inside).unwrap_or_else(|error| panic!("{error}"));
        self::model().logits_of(&model)
    };
    assert_eq!(
        logits(json!(0.5), json!(0.5)),
        logits(json!(0.5), json!(null))
    );
    assert_eq!(
        logits(json!(null), json!(0.25)),
        logits(json!(0.25), json!(null))
    );
    for (outside, expected) in [(json!(0.5), "0.5"), (json!(null), "0.25")] {
        assert_eq!(
            scaled(outside, json!(1.0)).expect_err("it is refused"),
            format!(
                "config.json: partial_rotary_factor is 1.0, but Qwen3-Next supports {expected}"
            )
        );
    }
}

/// The parameters that predict several tokens at once are left out.
#[test]
fn other_tensors_are_left_out() {
    model().assert_same_weights(|tensors| {
        let (name, tensor) = tensors.first_key_value().expect("a tensor");
        assert!(!name.starts_with("mtp."));
        let tensor = tensor.clone();
        tensors.insert("mtp.fc.weight".into(), tensor);
    });
}

#[test]
fn one_sentence_names_the_field() {
    let model = model();
    model.assert_unsupported(
        "Qwen3-Next",
        [
            ("hidden_act", json!("gelu"), "silu"),
            ("partial_rotary_factor", json!(0.25), "0.5"),
            (
                "layer_types",
                json!(["full_attention"]),
                "as many types as num_hidden_layers, 4",
            ),
            ("full_attention_interval", json!(0), "1 or more"),
        ],
    );
    for (field, value, expected) in [
        (
            "linear_num_value_heads",
            json!(3),
            "GatedDeltaRuleConfig: n_value_heads 3 is not divisible by n_key_heads 2",
        ),
        (
            "num_experts_per_tok",
            json!(6),
            "LanguageModelConfig: top_k 6 is more than n_experts 5",
        ),
    ] {
        model.assert_refused(field, value, &format!("config.json: {expected}"));
    }
    // No memory is taken for what is not there.
    for (field, value) in [
        ("linear_key_head_dim", 7),
        ("linear_num_value_heads", 1 << 28),
    ] {
        let error = model.set(field, value).expect_err("it is refused");
        let expected = "model.layers.0.linear_attn.in_proj_qkvz.weight";
        assert!(error.contains(expected), "{error}");
    }
}
