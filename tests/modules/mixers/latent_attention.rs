//! Latent attention against `DeepseekV2Attention`.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, CacheStorage, CausalAlignment, KvCacheConfig, LatentAttention,
    LatentAttentionConfig, SelfAttentionConfig, SelfAttentionInput, TokenMixer,
    positions::{AlibiConfig, PositionEncoding, RotaryConfig, RotaryLayout},
};
use burn_attn_models::weights::Table;
use burn_attn_tests::{compare::assert_close_to_largest, devices, numbers::tensor, sentence};

use super::{
    Golden, TOLERANCE, check_joins_of_fresh_sequences, check_precisions, check_sequences,
    token_by_token,
};

/// Without and with latent vectors for the queries.
const NAMES: [&str; 2] = ["latent_attention", "latent_attention_low_rank"];

fn golden(name: &'static str) -> Golden {
    let query = match name == NAMES[0] {
        true => Table::new().linear("query", "q_proj"),
        false => Table::new()
            .linear("query_down", "q_a_proj")
            .norm("query_norm", "q_a_layernorm")
            .linear("query", "q_b_proj"),
    };
    let table = query
        .linear("key_value_down", "kv_a_proj_with_mqa")
        .norm("key_value_norm", "kv_a_layernorm")
        .linear("key_value", "kv_b_proj")
        .linear("output", "o_proj");
    Golden::new(name, table)
}

fn config(name: &str) -> LatentAttentionConfig {
    let rotary = RotaryConfig::new()
        .with_max_len(64)
        .with_layout(RotaryLayout::Interleaved);
    let is_low_rank = name == NAMES[1];
    LatentAttentionConfig::new(15, 3, 7, 5, 4, 6)
        .with_d_query_latent(is_low_rank.then_some(8))
        .with_bias(is_low_rank)
        .with_position(PositionEncoding::Rotary(rotary))
}

fn loaded(name: &'static str, device: &Device) -> LatentAttention {
    golden(name).loaded(config(name).init(device), "")
}

#[test]
fn outputs_and_gradients_are_the_references() {
    for name in NAMES {
        let golden = golden(name);
        for (_, device) in devices::cpu() {
            let x: Tensor<3> = golden.values.tensor("x", &device);
            golden.close("x.output", loaded(name, &device).forward(x));
            golden.check_gradients(|device| config(name).init(device), &device);
        }
    }
}

/// With a cache the projection of keys and values is absorbed, without one it is not.
#[test]
fn absorbed_and_expanded_are_the_references() {
    for name in NAMES {
        let golden = golden(name);
        for (_, device) in devices::cpu() {
            let module = loaded(name, &device);
            let x: Tensor<3> = golden.values.tensor("x", &device);
            for prompt in [1, 5, 12] {
                let mut cache = module.cache(2, &KvCacheConfig::new(40));
                golden.close("x.output", token_by_token(&module, &x, prompt, &mut cache));
            }
        }
    }
}

#[test]
fn the_cache_has_latent_vectors_alone() {
    let device = devices::any();
    let module = loaded(NAMES[0], &device);
    let config = KvCacheConfig::new(40).with_initial_capacity(13);
    let x: Tensor<3> = tensor([2, 13, 15], 1, &device);
    let bytes = |config: &KvCacheConfig| {
        let mut cache = module.cache(2, config);
        module.forward_cached(x.clone(), &mut cache);
        cache.bytes()
    };
    // A vector of 7 numbers, and a rotary key of 4, for all heads together.
    assert_eq!(bytes(&config), 2 * 13 * (7 + 4) * 4);
    // One scale for each.
    let small = config.with_storage(CacheStorage::Int8);
    assert_eq!(bytes(&small), 2 * 13 * (7 + 4 + 4));
}

#[test]
fn eight_bits_are_close() {
    let device = devices::any();
    let module = loaded(NAMES[0], &device);
    let x: Tensor<3> = golden(NAMES[0]).values.tensor("x", &device);
    let config = KvCacheConfig::new(40).with_storage(CacheStorage::Int8);
    let actual = token_by_token(&module, &x, 5, &mut module.cache(2, &config));
    let expected = golden(NAMES[0]).values.data("x.output");
    assert_close_to_largest("8 bits", &actual.into_data(), &expected, 0.02, 0.0);
}

#[test]
fn low_precision_is_close() {
    for (_, device) in devices::cpu() {
        let x: Tensor<3> = golden(NAMES[1]).values.tensor("x", &device);
        check_precisions(loaded(NAMES[1], &device), x);
    }
}

#[test]
fn sequences_go_on_as_each_does_alone() {
    for name in NAMES {
        for (_, device) in devices::cpu() {
            let x = tensor([3, 7, 15], 1, &device);
            check_sequences(&loaded(name, &device), x.clone());
            check_joins_of_fresh_sequences(&loaded(name, &device), x);
        }
    }
}

/// The common beginning of forked sequences is held once, and tokens can be taken back.
#[test]
fn a_cache_is_forked_and_truncated() {
    let device = devices::any();
    let module = loaded(NAMES[1], &device);
    let x: Tensor<3> = tensor([3, 9, 15], 1, &device);
    let first = x.clone().narrow(0, 0, 1).narrow(1, 0, 5);
    let mut cache = module.cache(1, &KvCacheConfig::new(40));
    module.forward_cached(first.clone(), &mut cache);
    cache.fork(3);
    let rest = x.narrow(1, 5, 4);
    let whole = module.forward(Tensor::cat(vec![first.repeat_dim(0, 3), rest.clone()], 1));
    let expected = whole.narrow(1, 5, 4).into_data();
    for lengths in [[5; 3], [6, 5, 9]] {
        let actual = module.forward_cached(rest.clone(), &mut cache);
        if lengths == [5; 3] {
            assert_close_to_largest("forked", &actual.into_data(), &expected, TOLERANCE, 0.0);
        }
        cache.truncate(&lengths);
        assert_eq!(cache.lengths(), lengths);
    }
    let next = rest.narrow(1, 1, 1).narrow(0, 0, 1);
    cache.reorder(&[0]);
    let actual = module.forward_cached(next, &mut cache).into_data();
    let expected = whole_row(&expected, 1);
    assert_close_to_largest("kept", &actual, &expected, TOLERANCE, 0.0);
}

/// What is taken back of a common beginning is copied to every sequence first, and each goes on from where it ends. A sequence joins them.
#[test]
fn a_common_beginning_is_taken_back() {
    let device = devices::any();
    let module = loaded(NAMES[1], &device);
    let x: Tensor<3> = tensor([3, 9, 15], 1, &device);
    let config = KvCacheConfig::new(40);
    let first = x.clone().narrow(0, 0, 1).narrow(1, 0, 5);
    let rest = x.clone().narrow(1, 5, 4);
    let texts = Tensor::cat(vec![first.clone().repeat_dim(0, 3), rest.clone()], 1);
    let whole = module.forward(texts.clone());
    let token = |x: &Tensor<3>, b: usize, at: usize| x.clone().narrow(0, b, 1).narrow(1, at, 1);
    for lengths in [[3, 7, 8], [0, 6, 5]] {
        let mut cache = module.cache(1, &config);
        module.forward_cached(first.clone(), &mut cache);
        cache.fork(3);
        module.forward_cached(rest.clone(), &mut cache);
        cache.truncate(&lengths);
        let mut other = module.cache(1, &config);
        module.forward_cached(x.clone().narrow(0, 2, 1).narrow(1, 0, 6), &mut other);
        cache.join(other);
        let ends = || (0..).zip(lengths);
        let mut next: Vec<_> = ends().map(|(b, at)| token(&texts, b, at)).collect();
        next.push(token(&x, 2, 6));
        let actual = module.forward_cached(Tensor::cat(next, 0), &mut cache);
        let mut expected: Vec<_> = ends().map(|(b, at)| token(&whole, b, at)).collect();
        expected.push(token(&module.forward(x.clone()), 2, 6));
        let expected = Tensor::cat(expected, 0).into_data();
        assert_close_to_largest("next", &actual.into_data(), &expected, TOLERANCE, 0.0);
    }
}

/// Token `at` of the first sequence.
fn whole_row(output: &burn::tensor::TensorData, at: usize) -> burn::tensor::TensorData {
    let output = Tensor::<3>::from_data(output.clone(), &devices::any());
    output.narrow(0, 0, 1).narrow(1, at, 1).into_data()
}

#[test]
fn masks_and_positions_are_those_of_self_attention() {
    let device = devices::any();
    let module = loaded(NAMES[0], &device);
    let x: Tensor<3> = tensor([2, 7, 15], 1, &device);
    let input = |x: Tensor<3>| SelfAttentionInput::new(x).mask(AttentionMask::window(2, 2));
    let whole = module.forward(input(x.clone()));
    assert!(burn_attn_tests::compare::differs(
        &whole,
        &module.forward(x.clone())
    ));
    let mut cache = module.cache(2, &KvCacheConfig::new(40));
    let outputs = x.clone().split(1, 1).into_iter();
    let outputs = outputs.map(|token| module.forward_cached(input(token), &mut cache));
    let outputs = Tensor::cat(outputs.collect(), 1).into_data();
    let expected = whole.into_data();
    assert_close_to_largest("window", &outputs, &expected, TOLERANCE, 0.0);
    // Distances alone count.
    let later = SelfAttentionInput::new(x.clone()).positions(11);
    let expected = module.forward(x).into_data();
    let actual = module.forward(later).into_data();
    assert_close_to_largest("later", &actual, &expected, TOLERANCE, 0.0);
}

#[test]
fn bad_input_is_refused() {
    let device = devices::any();
    let module = loaded(NAMES[0], &device);
    let x: Tensor<3> = tensor([2, 3, 15], 1, &device);
    let mut cache = module.cache(3, &KvCacheConfig::new(40));
    assert_eq!(
        sentence(|| module.forward_cached(x.clone(), &mut cache)),
        "LatentAttention: 2 sequences do not fit a cache of 3"
    );
    let top_left = || {
        SelfAttentionInput::new(x.clone())
            .mask(AttentionMask::causal_aligned(CausalAlignment::TopLeft))
    };
    let whole = module.forward(top_left()).into_data();
    whole.assert_eq(&module.forward(x.clone()).into_data(), true);
    assert_eq!(
        sentence(|| module.forward_cached(top_left(), &mut cache)),
        "LatentAttention: a mask aligned top-left cannot be combined with a cache, whose queries are the newest tokens"
    );
    let embedded = SelfAttentionInput::new(x.clone()).query_key_position_embedding(x.clone());
    assert_eq!(
        sentence(|| module.forward(embedded)),
        "LatentAttention: a position embedding was given, which only queries and keys of the input itself can read"
    );
    // One key of the same width, and a value of its own.
    let attention = SelfAttentionConfig::new(15, 3)
        .with_causal(true)
        .with_n_kv_heads(1)
        .with_d_head(11)
        .with_d_value_head(7)
        .init(&device);
    let config_of_both = KvCacheConfig::new(40);
    let mut latent = module.cache(2, &config_of_both);
    let mut plain = attention.cache(2, &config_of_both);
    let misfit = |cache: &str, layer: &str| {
        format!(
            "KvCache: a cache of {cache} does not fit a layer with {layer}: it was made for another layer"
        )
    };
    assert_eq!(
        sentence(|| attention.forward_cached(x.clone(), &mut latent)),
        misfit("latent vectors", "keys and values")
    );
    assert_eq!(
        sentence(|| module.forward_cached(x.clone(), &mut plain)),
        misfit("keys and values", "latent vectors")
    );
    for (mut own, other, kinds) in [
        (
            module.cache(1, &config_of_both),
            attention.cache(1, &config_of_both),
            ["keys and values", "latent vectors"],
        ),
        (
            attention.cache(1, &config_of_both),
            module.cache(1, &config_of_both),
            ["latent vectors", "keys and values"],
        ),
    ] {
        let [theirs, ours] = kinds;
        assert_eq!(
            sentence(|| own.join(other)),
            format!(
                "KvCache: a cache of {theirs} cannot join one of {ours}: they were made for different layers"
            )
        );
    }
    let alibi = PositionEncoding::alibi().init(3, 11, &device);
    assert_eq!(
        sentence(|| module.forward(SelfAttentionInput::new(x.clone()).position(alibi))),
        "LatentAttention: the context has a position encoding that adds to scores, but only rotary ones are applied"
    );
    assert_eq!(
        sentence(|| module.cache(1, &KvCacheConfig::new(40).with_sink_tokens(4))),
        "LatentAttention: sink_tokens were given to a cache of rotated keys"
    );
    assert_eq!(
        sentence(|| module.cache(1, &KvCacheConfig::new(65))),
        "LatentAttention: a cache of max_len 65 is longer than the 64 positions of the rotary table"
    );
    let alibi = PositionEncoding::Alibi(AlibiConfig::new());
    for (config, expected) in [
        (
            config(NAMES[0]).with_scale(Some(-1.0)),
            "scale must be positive and finite, got -1",
        ),
        (
            config(NAMES[0]).with_d_query_latent(Some(0)),
            "d_query_latent must be at least 1, got 0",
        ),
        (
            config(NAMES[0]).with_position(alibi),
            "position must be Rotary or None, got Alibi(AlibiConfig { learnable: false })",
        ),
    ] {
        let error = config.validate().expect_err("it is refused").to_string();
        assert_eq!(error, format!("LatentAttentionConfig: {expected}"));
    }
}
