//! Stacks whose layers have two kinds of mixers.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    BlockConfig, CacheStorage, EitherMixer, EitherState, GatedDeltaRule, GatedDeltaRuleConfig,
    KvCacheConfig, LayerInput, MixerState, SelfAttention, SelfAttentionConfig, SelfAttentionInput,
    TokenMixer, TransformerStack, TransformerStackConfig,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_tests::{
    compare::assert_same,
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

use super::{check_joins_of_fresh_sequences, check_sequences};

type Mixer = EitherMixer<SelfAttention, GatedDeltaRule>;

fn attention(device: &Device) -> Mixer {
    let attention = SelfAttentionConfig::new(12, 3)
        .with_causal(true)
        .with_dropout(0.0);
    filled(EitherMixer::first(attention.init(device)), 1)
}

fn delta_rule(device: &Device) -> Mixer {
    let delta_rule = GatedDeltaRuleConfig::new(12, 1, 3, 5, 4);
    filled(EitherMixer::second(delta_rule.init(device)), 1)
}

/// Attention in the second of three layers.
fn stack(device: &Device) -> TransformerStack<Mixer> {
    let rotary = RotaryConfig::new().with_max_len(29);
    let block = BlockConfig::new()
        .with_dropout(0.0)
        .with_position(PositionEncoding::Rotary(rotary));
    let config = TransformerStackConfig::causal(12, 17, 3, 3).with_block(block);
    let mixer = |layer| match layer {
        1 => attention(device),
        _ => delta_rule(device),
    };
    config.init_with(mixer, device)
}

#[test]
fn it_is_the_mixer_that_is_present() {
    let device = devices::any();
    let x: Tensor<3> = tensor([3, 7, 12], 1, &device);
    let (attention, delta_rule) = (attention(&device), delta_rule(&device));
    let of_attention = attention.first.as_ref().expect("the first kind");
    assert_same(
        &attention.forward(x.clone()),
        &of_attention.forward(x.clone()),
    );
    let of_delta_rule = delta_rule.second.as_ref().expect("the second kind");
    assert_same(
        &delta_rule.forward(x.clone()),
        &of_delta_rule.forward(x.clone()),
    );
    for mixer in [&attention, &delta_rule] {
        check_sequences(mixer, x.clone());
        check_joins_of_fresh_sequences(mixer, x.clone());
    }
    let names = parameters::values(&stack(&device));
    assert!(names.contains_key("layers.1.self_attention.first.output.weight"));
    assert!(names.contains_key("layers.2.self_attention.second.output.weight"));
}

#[test]
fn weights_and_steps_are_those_of_each_kind() {
    let device = devices::any();
    let stack = stack(&device);
    let input = || LayerInput::new(tensor([2, 5, 12], 1, &device));
    let weights = stack.forward_with_weights(input()).self_weights;
    assert_eq!(
        weights.iter().map(Tensor::dims).collect::<Vec<_>>(),
        [[2, 3, 5, 5]]
    );
    let trace = stack.forward_traced(input());
    let shape = |name| trace.get(name).map(|step| step.shape().to_vec());
    assert_eq!(shape("0.self.key"), Some(vec![2, 3, 5, 5]));
    assert_eq!(shape("0.self.weights"), None);
    assert_eq!(shape("1.self.weights"), Some(vec![2, 3, 5, 5]));
    assert_eq!(shape("2.self.output"), Some(vec![2, 5, 12]));
}

#[test]
fn only_what_every_layer_can_take_back_is_taken_back() {
    let device = devices::any();
    let stack = stack(&device);
    let x: Tensor<3> = tensor([2, 6, 12], 1, &device);
    let mut cache = stack.cache(2, &KvCacheConfig::new(20));
    stack.forward_cached(x.clone().narrow(1, 0, 5), &mut cache);
    assert!(!cache.can_truncate(&[5, 4]));
    let refused =
        "MixerState: [5, 5] tokens cannot be truncated to [5, 4]: only all or none can be removed";
    assert_eq!(sentence(|| cache.truncate(&[5, 4])), refused);
    // No layer has been changed.
    let next = stack.forward_cached(x.clone().narrow(1, 5, 1), &mut cache);
    let expected = stack.forward(x).narrow(1, 5, 1);
    let (actual, expected) = (next.into_data(), expected.into_data());
    actual.assert_approx_eq::<f32>(&expected, Default::default());
}

/// Layers whose states have no limit have not read what another has no room for.
#[test]
fn a_full_layer_refuses_before_any_reads() {
    let device = devices::any();
    let stack = stack(&device);
    let x: Tensor<3> = tensor([2, 6, 12], 1, &device);
    let row = |b, from, len| x.clone().narrow(0, b, 1).narrow(1, from, len);
    let next = || Tensor::cat(vec![row(0, 5, 1), row(1, 3, 1)], 0);
    let full = "KvCache: sequence 0 has 5 tokens and cannot take 1 more: its max_len is 5";
    let at_once = "KvCache: sequence 0 cannot take 5 tokens at once: beside 1 sink tokens, its max_len has room for 4";
    let config = KvCacheConfig::new(5);
    for (config, refused, expected) in [
        (config.clone(), next(), full),
        (
            config.with_sink_tokens(1),
            x.clone().narrow(1, 0, 5),
            at_once,
        ),
    ] {
        let mut cache = stack.cache(2, &config);
        let start = LayerInput::new(x.clone().narrow(1, 0, 5)).lengths(&[5, 3]);
        stack.forward_cached(start, &mut cache);
        assert_eq!(
            sentence(|| stack.forward_cached(refused, &mut cache)),
            expected
        );
        // The other sequence goes on.
        let next = LayerInput::new(next()).lengths(&[0, 1]);
        let actual = stack.forward_cached(next, &mut cache).narrow(0, 1, 1);
        assert_eq!(cache.lengths(), [5, 4]);
        let expected = stack.forward(row(1, 0, 4)).narrow(1, 3, 1);
        let (actual, expected) = (actual.into_data(), expected.into_data());
        actual.assert_approx_eq::<f32>(&expected, Default::default());
    }
}

/// The layers that have keys and values store them in 8 bits, and drop the oldest; the states of the others are as before.
#[test]
fn options_of_a_cache_reach_the_layers_that_have_one() {
    let device = devices::any();
    let stack = stack(&device);
    let x: Tensor<3> = tensor([2, 9, 12], 1, &device);
    let read = |config: &KvCacheConfig| {
        let mut cache = stack.cache(2, config);
        for token in x.clone().split(1, 1) {
            stack.forward_cached(token, &mut cache);
        }
        cache
    };
    let bytes = |config: &KvCacheConfig| {
        let layers = read(config).layers().to_vec();
        layers
            .iter()
            .map(|layer| layer.tokens.bytes())
            .collect::<Vec<_>>()
    };
    let config = KvCacheConfig::new(20).with_initial_capacity(9);
    let of_floats = bytes(&config);
    assert_eq!(of_floats[1], 2 * 2 * 9 * 3 * 4 * 4);
    let of_8_bits = bytes(&config.with_storage(CacheStorage::Int8));
    assert_eq!(
        of_8_bits,
        [of_floats[0], 2 * 2 * 9 * 3 * (4 + 4), of_floats[2]]
    );
    let cache = read(&KvCacheConfig::new(5).with_sink_tokens(1));
    assert_eq!(cache.lengths(), [9, 9]);
    let EitherState::First(of_attention) = &cache.layers()[1].tokens else {
        panic!("the second layer has attention");
    };
    assert_eq!(of_attention.capacity(), 5);
}

/// The delta rule has no positions; those of the tokens are for the layers that have.
#[test]
fn positions_are_for_the_layers_with_attention() {
    let device = devices::any();
    let stack = stack(&device);
    let input = || LayerInput::new(tensor([1, 5, 12], 1, &device));
    let places = stack.forward_traced(input());
    let given = stack.forward_traced(input().positions(vec![vec![0, 2, 3, 7, 11]]));
    let step = |name| [&places, &given].map(|trace| trace.get(name).expect("a step").clone());
    let [own, others] = step("0.output");
    own.assert_eq(&others, true);
    let [own, others] = step("1.self.key");
    assert_ne!(own, others);
}

#[test]
fn a_state_of_the_other_kind_is_refused() {
    let device = devices::any();
    let (attention, delta_rule) = (attention(&device), delta_rule(&device));
    let config = KvCacheConfig::new(20);
    let (mut of_attention, of_delta_rule) =
        (attention.cache(1, &config), delta_rule.cache(1, &config));
    let input = SelfAttentionInput::new(tensor([1, 2, 12], 1, &device));
    let expected = "EitherMixer: the state is that of a layer of the other kind";
    let called = sentence(|| delta_rule.forward_cached(input.clone(), &mut of_attention));
    assert_eq!(called, expected);
    assert_eq!(
        of_attention.refuses_join(&of_delta_rule).as_deref(),
        Some(expected)
    );
    assert_eq!(sentence(|| of_attention.join(of_delta_rule)), expected);
    let neither = Mixer {
        first: None,
        second: None,
    };
    assert_eq!(
        sentence(|| neither.forward(input)),
        "EitherMixer: neither mixer is present"
    );
}
