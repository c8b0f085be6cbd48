//! The gated delta rule against `Qwen3NextGatedDeltaNet`.

use burn::tensor::{Device, FloatDType, Tensor};
use burn_attn::{
    AttentionMask, GatedDeltaRule, GatedDeltaRuleConfig, KvCacheConfig, MixerState,
    SelfAttentionInput, TokenMixer,
};
use burn_attn_models::weights::{Table, same};
use burn_attn_tests::{devices, numbers::tensor, parameters, sentence};

use super::{
    Golden, check_joins_of_fresh_sequences, check_precisions, check_sequences, token_by_token,
};

/// Tokens of the two sequences of the golden values, of which the first is not padded.
const LENGTHS: [usize; 2] = [13, 8];

fn golden() -> Golden {
    let table = Table::new()
        .linear(
            "query_key_value_gate",
            same("in_proj_qkvz").interleaved([5, 5, 6, 6]),
        )
        .linear("beta_decay", same("in_proj_ba").interleaved([2, 2]))
        .row("convolution", "conv1d.weight")
        .row("log_decay_rate", "A_log")
        .row("decay_bias", "dt_bias")
        .norm("norm", "norm")
        .linear("output", "out_proj");
    Golden::new("gated_delta_rule", table)
}

fn config() -> GatedDeltaRuleConfig {
    GatedDeltaRuleConfig::new(11, 2, 4, 5, 3).with_norm_epsilon(1e-5)
}

fn loaded(chunk_len: usize, device: &Device) -> GatedDeltaRule {
    let module = config().with_chunk_len(chunk_len).init(device);
    golden().loaded(module, "")
}

/// Chunks of one token are the recurrence itself; 3, 5 and 64 do not divide the lengths of 13, 31 and 67.
const CHUNKS: [usize; 4] = [1, 3, 5, 64];

#[test]
fn outputs_are_the_references_with_chunks_of_any_length() {
    let golden = golden();
    for (_, device) in devices::cpu() {
        for chunk_len in CHUNKS {
            let module = loaded(chunk_len, &device);
            for input in ["x", "long", "alike"] {
                let x: Tensor<3> = golden.values.tensor(input, &device);
                golden.close(&format!("{input}.output"), module.forward(x));
            }
        }
    }
}

#[test]
fn gradients_are_the_references_with_chunks_of_any_length() {
    for (_, device) in devices::cpu() {
        for chunk_len in CHUNKS {
            let config = config().with_chunk_len(chunk_len);
            golden().check_gradients(|device| config.init(device), &device);
        }
    }
}

#[test]
fn steps_with_a_state_are_the_references() {
    let golden = golden();
    for (_, device) in devices::cpu() {
        let module = loaded(3, &device);
        let x: Tensor<3> = golden.values.tensor("x", &device);
        let mut state = module.cache(2, &KvCacheConfig::new(1));
        golden.close("cached.output", token_by_token(&module, &x, 5, &mut state));
        assert_eq!(state.lengths(), [13, 13]);
        // Per sequence, four heads of 5 · 3 numbers, and 3 tokens of the 32 channels of the convolution.
        assert_eq!(state.bytes(), 2 * (4 * 5 * 3 + 3 * 32) * 4);
    }
}

/// The reference has its padding on the left, and this crate after each sequence.
#[test]
fn padded_sequences_are_the_references() {
    let golden = golden();
    let device = devices::any();
    let module = loaded(5, &device);
    let x: Tensor<3> = golden.values.tensor("x", &device);
    let output = module.forward(SelfAttentionInput::new(x).lengths(&LENGTHS));
    let rows = LENGTHS.iter().enumerate().map(|(b, &length)| {
        let row = output.clone().narrow(0, b, 1).narrow(1, 0, length);
        let zeros = Tensor::zeros([1, LENGTHS[0] - length, 11], &device);
        match length < LENGTHS[0] {
            true => Tensor::cat(vec![zeros, row], 1),
            false => row,
        }
    });
    golden.close("left.output", Tensor::cat(rows.collect(), 0));
}

#[test]
fn low_precision_is_close() {
    for (_, device) in devices::cpu() {
        let x: Tensor<3> = golden().values.tensor("x", &device);
        check_precisions(loaded(3, &device), x);
    }
}

#[test]
fn sequences_go_on_as_each_does_alone() {
    for (_, device) in devices::cpu() {
        let x = tensor([3, 7, 11], 1, &device);
        check_sequences(&loaded(3, &device), x.clone());
        check_joins_of_fresh_sequences(&loaded(3, &device), x);
    }
}

#[test]
fn bad_input_is_refused() {
    let device = devices::any();
    let module = loaded(3, &device);
    let input = |batch| SelfAttentionInput::new(tensor([batch, 3, 11], 1, &device));
    assert_eq!(
        sentence(|| module.forward(input(2).mask(AttentionMask::causal()))),
        "GatedDeltaRule: a mask was given, but it has no scores of queries and keys"
    );
    let mut state = module.cache(2, &KvCacheConfig::new(1));
    assert_eq!(
        sentence(|| module.forward_cached(input(3), &mut state)),
        "GatedDeltaRule: 3 sequences do not fit a state of 2"
    );
    module.forward_cached(input(2), &mut state);
    assert_eq!(
        sentence(|| state.reorder(&[0, 2])),
        "GatedDeltaState: cannot reorder to sequence 2: there are 2 sequences"
    );
    let other = GatedDeltaRuleConfig::new(11, 2, 4, 5, 7).init(&device);
    let mut others = other.cache(2, &KvCacheConfig::new(1));
    other.forward_cached(input(2), &mut others);
    let before = others.clone();
    assert_eq!(
        sentence(|| module.forward_cached(input(2), &mut others)),
        "GatedDeltaRule: a state of [kernel_len − 1, channels, heads, widths of keys and values] [3, 48, 4, 5, 7] does not fit a layer of \
         [3, 32, 4, 5, 3]: it was made for another layer"
    );
    // It is as it was.
    let [actual, expected] = [others.clone(), before]
        .map(|mut state| other.forward_cached(input(2), &mut state).into_data());
    actual.assert_eq(&expected, true);
    assert_eq!(
        sentence(|| state.clone().join(others)),
        "GatedDeltaState: a state of [kernel_len − 1, channels, heads, widths of keys and values] [3, 48, 4, 5, 7] cannot join one of \
         [3, 32, 4, 5, 3]: they were made for different layers"
    );
    let tracked = device.clone().autodiff();
    for (module, x, place) in [
        (
            parameters::wide(module.clone()),
            tensor::<3>([2, 3, 11], 1, &device).cast(FloatDType::F64),
            format!("in F64 on {device:?}"),
        ),
        (
            loaded(3, &tracked),
            tensor([2, 3, 11], 1, &tracked),
            format!("in F32 on {tracked:?}"),
        ),
    ] {
        let mut others = module.cache(2, &KvCacheConfig::new(1));
        module.forward_cached(x.clone(), &mut others);
        let own = format!("in F32 on {device:?}");
        assert_eq!(
            sentence(|| module.forward_cached(x, &mut state)),
            format!("GatedDeltaRule: an input {place} does not fit a state {own}")
        );
        assert_eq!(
            sentence(|| state.clone().join(others)),
            format!("GatedDeltaState: a state {place} cannot join one {own}")
        );
    }
    for (config, expected) in [
        (
            GatedDeltaRuleConfig::new(11, 3, 4, 5, 3),
            "n_value_heads 4 is not divisible by n_key_heads 3",
        ),
        (
            config().with_kernel_len(1),
            "kernel_len must be at least 2, got 1",
        ),
        (
            config().with_chunk_len(0),
            "chunk_len must be at least 1, got 0",
        ),
        (
            config().with_norm_epsilon(0.0),
            "norm_epsilon must be positive and finite, got 0",
        ),
    ] {
        let error = config.validate().expect_err("it is refused").to_string();
        assert_eq!(error, format!("GatedDeltaRuleConfig: {expected}"));
    }
}
