//! DeepSeek-V2 against `transformers`.

use burn::tensor::{DType, FloatDType, Int, Tensor, TensorData};
use burn_attn::{KvCacheConfig, LatentAttention, LayerInput};
use burn_attn_models::{
    deepseek_v2,
    generate::{GenerateOptions, generate, speculate},
    language_model::LanguageModel,
    pretrained::LoadOptions,
};
use burn_attn_tests::{devices, numbers::tensor};
use serde_json::{Map, Value, json};

use super::{folder, language_models::Model};

/// With latent vectors for queries, groups of experts and YaRN; without all of these, and with biases.
const NAMES: [&str; 2] = ["deepseek_v2", "deepseek_v2_lite"];

fn model(name: &'static str) -> Model<LanguageModel<LatentAttention>> {
    Model {
        name,
        from_pretrained: |folder, device| deepseek_v2::from_pretrained(folder, device),
        table: deepseek_v2::table(folder(name)).unwrap_or_else(|error| panic!("{error}")),
    }
}

#[test]
fn logits_and_every_layer_are_the_references() {
    for name in NAMES {
        model(name).check_states();
    }
}

#[test]
fn greedy_tokens_are_the_references() {
    for name in NAMES {
        model(name).check_generation();
    }
}

/// In bf16 too, as those of `transformers`.
#[test]
fn routers_compute_in_f32() {
    let cpu = devices::cpu().into_iter().map(|(_, device)| device);
    for device in cpu.filter(|device| device.supports_dtype(DType::BF16)) {
        let options = LoadOptions::new(&device).dtype(FloatDType::BF16);
        let half = deepseek_v2::from_pretrained(folder(NAMES[0]), options);
        let half = half.unwrap_or_else(|error| panic!("{error}"));
        let tokens = Tensor::<2, Int>::from_data([[2, 7, 11, 3, 5]], &device);
        let input = LayerInput::new(half.embed(tokens, 0));
        let output = half.transformer.forward_with_router_logits(input);
        assert_eq!(output.states.dtype(), DType::BF16);
        let dtypes: Vec<_> = output.router_logits.iter().map(Tensor::dtype).collect();
        assert_eq!(dtypes, [DType::F32; 2]);
    }
}

#[test]
fn training_lowers_the_loss() {
    for name in NAMES {
        model(name).check_training();
    }
}

/// The weights of every head and layer, which add up to 1.
#[test]
fn it_has_attention_weights() {
    let device = devices::any();
    let tokens = Tensor::<2, Int>::from_data([[2, 7, 11, 3, 5]], &device);
    let weights = model(NAMES[0]).load(&device).attention(tokens);
    assert_eq!(weights.len(), 3);
    for weights in weights {
        assert_eq!(weights.dims(), [1, 3, 5, 5]);
        let sums = weights.sum_dim(3).into_data();
        sums.assert_approx_eq::<f32>(
            &TensorData::new(vec![1f32; 15], [1, 3, 5, 1]),
            Default::default(),
        );
    }
}

#[test]
fn it_is_written_back_bit_for_bit() {
    for name in NAMES {
        model(name).check_export();
    }
}

/// The cache has 7 numbers of a latent vector and 4 of a rotary key, whatever the number of heads.
#[test]
fn the_cache_is_small() {
    let device = devices::any();
    let model = model(NAMES[0]).load(&device);
    let config = KvCacheConfig::new(model.max_len()).with_initial_capacity(5);
    let mut cache = model.transformer.cache(2, &config);
    let input = LayerInput::new(tensor([2, 5, 12], 1, &device));
    model.transformer.forward_cached(input, &mut cache);
    assert_eq!(cache.bytes(), 3 * 2 * 5 * (7 + 4) * 4);
}

/// A draft's wrong guesses are taken back, and prompts with a common beginning read it once.
#[test]
fn generation_goes_back_and_forks() {
    let device = devices::any();
    let [own, draft] = NAMES.map(|name| model(name).load(&device));
    let common: Vec<u32> = (0..17).map(|token| token * 7 % 23).collect();
    let prompts = [vec![2], vec![5, 11]].map(|end| [common.clone(), end].concat());
    let options = GenerateOptions::new(12);
    let alone = |prompt: &Vec<u32>| {
        let prompt = std::slice::from_ref(prompt);
        let alone = generate(&own, own.start(1), prompt, &options).expect("a prompt");
        alone[0].tokens.clone()
    };
    let expected = prompts.each_ref().map(alone);
    let together = generate(&own, own.start(2), &prompts, &options).expect("prompts");
    assert_eq!(
        [0, 1].map(|row: usize| together[row].tokens.clone()),
        expected
    );
    let states = (own.start(2), draft.start(2));
    let guessed = speculate((&own, states.0), (&draft, states.1), &prompts, &options, 3);
    let guessed = guessed.expect("prompts").generations;
    assert_eq!(
        [0, 1].map(|row: usize| guessed[row].tokens.clone()),
        expected
    );
}

/// The form of the published files.
fn older(config: &mut Map<String, Value>) {
    let mut rotary = config.remove("rope_parameters").expect("a field");
    let fields = rotary.as_object_mut().expect("an object");
    let base = fields.remove("rope_theta").expect("a base");
    config.insert("rope_theta".into(), base);
    let kind = fields.remove("rope_type").expect("a kind");
    fields.insert("type".into(), kind);
    config.insert("rope_scaling".into(), rotary);
    for (field, value) in [
        ("scoring_func", json!("softmax")),
        ("moe_layer_freq", json!(1)),
        ("aux_loss_alpha", json!(0.001)),
        ("seq_aux", json!(true)),
        ("ep_size", json!(1)),
    ] {
        config.insert(field.into(), value);
    }
    for field in [
        "head_dim",
        "qk_head_dim",
        "output_router_logits",
        "mlp_bias",
    ] {
        config.remove(field);
    }
}

#[test]
fn fields_had_other_names() {
    model(NAMES[0]).assert_same_model(older);
}

#[test]
fn every_field_matters() {
    let model = model(NAMES[0]);
    for (field, value) in [
        ("topk_method", json!("greedy")),
        ("topk_group", json!(2)),
        ("n_group", json!(3)),
        ("num_experts_per_tok", json!(3)),
        ("routed_scaling_factor", json!(1.0)),
        ("rms_norm_eps", json!(0.1)),
    ] {
        model.assert_differs(field, model.set(field, value));
    }
    for (field, value) in [
        ("mscale", json!(0.9)),
        ("mscale_all_dim", json!(0.7)),
        ("factor", json!(2.0)),
        ("beta_slow", json!(0.5)),
        ("rope_theta", json!(50.0)),
    ] {
        let changed = model.changed(|config| config["rope_parameters"][field] = value);
        model.assert_differs(field, changed);
    }
}

#[test]
fn one_sentence_names_the_field() {
    let model = model(NAMES[0]);
    model.assert_unsupported(
        "DeepSeek-V2",
        [
            ("norm_topk_prob", json!(true), "false"),
            ("scoring_func", json!("sigmoid"), "\"softmax\""),
            (
                "topk_method",
                json!("noaux_tc"),
                "greedy, group_limited_greedy",
            ),
            ("num_key_value_heads", json!(1), "3"),
            (
                "n_routed_experts",
                json!(1_000_000),
                "at most 66666 experts in 3 layers",
            ),
        ],
    );
    for (field, value, expected) in [
        (
            "n_group",
            json!(4),
            "LanguageModelConfig: n_experts 6 is not divisible by n_groups 4",
        ),
        (
            "topk_group",
            json!(4),
            "LanguageModelConfig: top_k_groups 4 is more than n_groups 2",
        ),
        (
            "kv_lora_rank",
            json!(0),
            "LatentAttentionConfig: d_latent must be at least 1, got 0",
        ),
    ] {
        model.assert_refused(field, value, &format!("config.json: {expected}"));
    }
    model.assert_needed("DeepSeek-V2", "q_lora_rank");
}
