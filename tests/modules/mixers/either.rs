//! Stacks whose layers have two kinds of mixers.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    BlockConfig, EitherMixer, GatedDeltaRule, GatedDeltaRuleConfig, KvCacheConfig, LayerInput,
    MixerState, SelfAttention, SelfAttentionConfig, SelfAttentionInput, TokenMixer,
    TransformerStack, TransformerStackConfig,
};
use burn_attn_tests::{
    compare::assert_same,
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

use super::check_sequences;

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
    let block = BlockConfig::new().with_dropout(0.0);
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
    check_sequences(&attention, x.clone());
    check_sequences(&delta_rule, x);
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

#[test]
fn a_state_of_the_other_kind_is_refused() {
    let device = devices::any();
    let (attention, delta_rule) = (attention(&device), delta_rule(&device));
    let config = KvCacheConfig::new(20);
    let (mut of_attention, of_delta_rule) =
        (attention.state(1, &config), delta_rule.state(1, &config));
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
