//! Mixtral, Qwen 3 with experts and gpt-oss against `transformers`.

use burn::tensor::{Int, Tensor};
use burn_attn::LayerInput;
use burn_attn_tests::devices;
use serde_json::{Value, json};

use super::{
    language_models::Model,
    llama::{FAMILY, model},
};

fn each(check: impl Fn(Model)) {
    for name in ["mixtral", "qwen3_moe", "qwen3_moe_every_other", "gpt_oss"] {
        check(model(name));
    }
}

#[test]
fn logits_and_every_layer_are_the_references() {
    each(|model| model.check_states());
}

#[test]
fn greedy_tokens_are_the_references() {
    each(|model| model.check_generation());
}

#[test]
fn it_is_written_back_bit_for_bit() {
    each(|model| model.check_export());
}

/// What a trainer of the loss that keeps experts busy reads.
#[test]
fn routers_of_layers_with_experts_have_logits() {
    let layers = |name| {
        let model = model(name).load(&devices::any());
        let tokens = Tensor::<2, Int>::from_data([[2, 7, 11], [3, 5, 13]], &devices::any());
        let input = LayerInput::new(model.embed(tokens, 0));
        let logits = model
            .transformer
            .forward_with_router_logits(input)
            .router_logits;
        logits.iter().map(Tensor::dims).collect::<Vec<_>>()
    };
    assert_eq!(layers("mixtral"), [[6, 5]; 2]);
    assert_eq!(layers("qwen3_moe_every_other"), [[6, 5]]);
}

#[test]
fn fields_had_other_names() {
    // Before version 5.
    let older = |config: &mut serde_json::Map<String, Value>| {
        let rotary = config.remove("rope_parameters").expect("a field");
        let base = rotary["rope_theta"].clone();
        config.insert("rope_theta".into(), base);
    };
    model("mixtral").assert_same_model(older);
    model("qwen3_moe").assert_same_model(|config| {
        older(config);
        let n_experts = config.remove("num_local_experts").expect("a field");
        config.insert("num_experts".into(), n_experts);
        config.insert("max_window_layers".into(), json!(2));
        config.insert("rope_scaling".into(), Value::Null);
    });
    // As published.
    model("gpt_oss").assert_same_model(|config| {
        let mut rotary = config.remove("rope_parameters").expect("a field");
        let fields = rotary.as_object_mut().expect("an object");
        let base = fields.remove("rope_theta").expect("a base");
        config.insert("rope_theta".into(), base);
        config.insert("rope_scaling".into(), rotary);
        config.insert("experts_per_token".into(), json!(2));
        config.insert("initial_context_length".into(), json!(16));
        for field in ["layer_types", "swiglu_alpha"] {
            config.remove(field).expect("a field");
        }
    });
}

#[test]
fn layers_without_experts_may_be_listed() {
    let listed = |name, step: usize, dense: Value| {
        model(name).changed(|config| {
            config.insert("decoder_sparse_step".into(), json!(step));
            config.insert("mlp_only_layers".into(), dense);
        })
    };
    let every_other = model("qwen3_moe_every_other");
    let expected = every_other.logits_of(&every_other.load(&devices::any()));
    let same =
        listed("qwen3_moe_every_other", 1, json!([0])).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(every_other.logits_of(&same), expected);
    let error = listed("qwen3_moe", 2, json!([1])).expect_err("it has experts");
    assert!(
        error.contains("model.layers.0.mlp.gate_proj.weight"),
        "{error}"
    );
}

/// What the small models have but could do without unnoticed.
#[test]
fn every_field_matters() {
    let gpt_oss = model("gpt_oss");
    for (field, value) in [
        ("truncate", json!(true)),
        ("beta_fast", json!(1.75)),
        ("beta_slow", json!(0.375)),
        ("attention_factor", json!(1.25)),
    ] {
        let changed = gpt_oss.changed(|config| config["rope_parameters"][field] = value);
        gpt_oss.assert_differs(field, changed);
    }
}

#[test]
fn one_sentence_names_the_field() {
    let quantized = json!({"quant_method": "mxfp4"});
    for (name, field, value, supported) in [
        (
            "gpt_oss",
            "quantization_config",
            quantized,
            "floating-point weights",
        ),
        ("gpt_oss", "swiglu_limit", json!(5.0), "7"),
        ("gpt_oss", "swiglu_alpha", json!(1.5), "1.702"),
        ("qwen3_moe", "use_qk_norm", json!(false), "true"),
        (
            "mixtral",
            "num_local_experts",
            json!(1_000_000_000),
            "at most 100000 experts in 2 layers",
        ),
        ("qwen3_moe", "decoder_sparse_step", json!(0), "1 or more"),
        (
            "qwen3_moe",
            "mlp_only_layers",
            json!(["1"]),
            "a list of whole numbers",
        ),
    ] {
        model(name).assert_unsupported(FAMILY, [(field, value, supported)]);
    }
    for (field, value, expected) in [
        (
            "num_experts",
            7,
            "num_local_experts is 5, but the Llama family supports 7",
        ),
        (
            "num_experts_per_tok",
            6,
            "LanguageModelConfig: top_k 6 is more than n_experts 5",
        ),
    ] {
        let expected = format!("config.json: {expected}");
        model("mixtral").assert_refused(field, json!(value), &expected);
    }
    for (name, field) in [
        ("mixtral", "num_local_experts"),
        ("qwen3_moe", "moe_intermediate_size"),
        ("gpt_oss", "sliding_window"),
        ("gpt_oss", "attention_bias"),
    ] {
        model(name).assert_needed(FAMILY, field);
    }
    let error = model("gpt_oss").changed(|config| drop(config.remove("rope_parameters")));
    assert_eq!(
        error.expect_err("it is refused"),
        "config.json has no field rope_scaling, which the Llama family needs"
    );
}

/// One expert fewer than the configuration says.
#[test]
fn stacks_of_another_size_are_refused() {
    let error = model("gpt_oss").set("num_local_experts", 4);
    let error = error.expect_err("there are five");
    assert!(
        error
            .contains("model.layers.0.mlp.experts.down_proj is [5, 11, 12] instead of [4, 11, 12]"),
        "{error}"
    );
}
