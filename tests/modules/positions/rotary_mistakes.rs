//! What rotary positions refuse, and in which words.

use burn::tensor::Tensor;
use burn_attn::{
    ConfigError,
    positions::{Positions, RotaryConfig, RotaryScaling, YarnScaling},
};
use burn_attn_tests::devices;

fn rotate(shape: [usize; 4], positions: Positions) {
    let device = devices::any();
    let rotary = RotaryConfig::new().with_max_len(31).init(14, &device);
    rotary.forward(Tensor::zeros(shape, &device), &positions);
}

#[test]
#[should_panic(
    expected = "Rotary: 3 tokens from position 29 on need 32 positions, but there are 31"
)]
fn positions_past_the_table() {
    rotate([2, 3, 3, 14], Positions::Offset(29));
}

#[test]
#[should_panic(
    expected = "Rotary: 3 tokens from position 29 on need 32 positions, but there are 31"
)]
fn one_sequence_past_the_table() {
    rotate([2, 3, 3, 14], Positions::Offsets(vec![28, 29]));
}

#[test]
#[should_panic(
    expected = "Rotary: 1 tokens from position 18446744073709551615 on need 18446744073709551615 positions, but there are 31"
)]
fn an_offset_that_overflows() {
    rotate([2, 3, 1, 14], Positions::Offset(usize::MAX));
}

#[test]
#[should_panic(expected = "Rotary: 3 offsets for 2 sequences")]
fn offsets_of_another_batch() {
    rotate([2, 3, 5, 14], Positions::Offsets(vec![0, 7, 11]));
}

#[test]
#[should_panic(expected = "axis 3 expected 14, got 13")]
fn heads_of_another_width() {
    rotate([2, 3, 5, 13], Positions::default());
}

#[test]
#[should_panic(expected = "RotaryConfig: rotary_dim 16 is more than d_head 14")]
fn init_panics_with_the_sentence() {
    RotaryConfig::new()
        .with_rotary_dim(16)
        .init(14, &devices::any());
}

#[test]
#[should_panic(expected = "RotaryConfig: d_head 13 is odd, but numbers are rotated in pairs")]
fn frequencies_panic_with_the_sentence() {
    RotaryConfig::new().frequencies(13);
}

#[test]
fn sound_configurations_are_accepted() {
    let config = RotaryConfig::new();
    assert_eq!(config.validate(14), Ok(()));
    assert_eq!(config.validate(2), Ok(()));
    // An odd head, of which an even part is rotated.
    assert_eq!(config.with_rotary_dim(6).validate(13), Ok(()));
    let scaled = |scaling| RotaryConfig::new().with_scaling(scaling).validate(4);
    assert_eq!(scaled(RotaryScaling::Linear { factor: 1.0 }), Ok(()));
    assert_eq!(scaled(RotaryScaling::Ntk { factor: 1.0 }), Ok(()));
    assert_eq!(scaled(RotaryScaling::yarn(1.0, 1)), Ok(()));
}

#[test]
fn configurations_that_contradict_themselves() {
    let config = RotaryConfig::new;
    let yarn = |factor, original_max_len, beta_fast, beta_slow| {
        let yarn = YarnScaling::new(factor, original_max_len).with_beta_fast(beta_fast);
        RotaryScaling::Yarn(yarn.with_beta_slow(beta_slow))
    };
    let llama3 = |low_freq_factor, high_freq_factor, original_max_len| RotaryScaling::Llama3 {
        factor: 8.0,
        low_freq_factor,
        high_freq_factor,
        original_max_len,
    };
    let attention_factor = |factor| YarnScaling::new(8.0, 509).with_attention_factor(factor);
    let longrope = |factors: &[f64], attention_factor| RotaryScaling::LongRope {
        factors: factors.to_vec(),
        attention_factor,
    };
    let scaled = |scaling| config().with_scaling(scaling);
    let factor = "the factor of scaling must be finite and at least 1, got";
    let betas = "scaling Yarn needs 0 < beta_slow < beta_fast, got";
    let cases = [
        (
            config().with_max_len(0),
            14,
            "max_len must be at least 1, got 0".to_owned(),
        ),
        (config(), 0, "d_head must be at least 1, got 0".into()),
        (
            config().with_rotary_dim(0),
            14,
            "rotary_dim must be at least 1, got 0".into(),
        ),
        (
            config().with_rotary_dim(16),
            14,
            "rotary_dim 16 is more than d_head 14".into(),
        ),
        (
            config().with_rotary_dim(7),
            14,
            "rotary_dim 7 is odd, but numbers are rotated in pairs".into(),
        ),
        (
            config(),
            13,
            "d_head 13 is odd, but numbers are rotated in pairs".into(),
        ),
        (
            config().with_base(1.0),
            14,
            "base must be finite and more than 1, got 1".into(),
        ),
        (
            config().with_base(f64::NAN),
            14,
            "base must be finite and more than 1, got NaN".into(),
        ),
        (
            config().with_base(f64::INFINITY),
            14,
            "base must be finite and more than 1, got inf".into(),
        ),
        (
            scaled(RotaryScaling::Linear { factor: 0.5 }),
            14,
            format!("{factor} 0.5"),
        ),
        (
            scaled(RotaryScaling::Ntk { factor: f64::NAN }),
            14,
            format!("{factor} NaN"),
        ),
        (
            scaled(RotaryScaling::yarn(f64::INFINITY, 509)),
            14,
            format!("{factor} inf"),
        ),
        (
            scaled(RotaryScaling::Ntk { factor: 4.0 }),
            2,
            "scaling Ntk needs a rotary_dim of at least 4, got 2".into(),
        ),
        (
            scaled(RotaryScaling::yarn(4.0, 0)),
            14,
            "the original_max_len of scaling must be at least 1, got 0".into(),
        ),
        (
            scaled(yarn(4.0, 509, 1.0, 1.0)),
            14,
            format!("{betas} 1 and 1"),
        ),
        (
            scaled(yarn(4.0, 509, 32.0, 0.0)),
            14,
            format!("{betas} 0 and 32"),
        ),
        (
            scaled(yarn(4.0, 509, f64::NAN, 1.0)),
            14,
            format!("{betas} 1 and NaN"),
        ),
        (
            scaled(yarn(4.0, 509, f64::INFINITY, 1.0)),
            14,
            format!("{betas} 1 and inf"),
        ),
        (
            scaled(RotaryScaling::Yarn(attention_factor(0.0))),
            14,
            "the attention_factor of scaling must be finite and positive, got 0".into(),
        ),
        (
            scaled(llama3(1.0, 4.0, 0)),
            14,
            "the original_max_len of scaling must be at least 1, got 0".into(),
        ),
        (
            scaled(llama3(4.0, 4.0, 509)),
            14,
            "scaling Llama3 needs 0 < low_freq_factor < high_freq_factor, got 4 and 4".into(),
        ),
        (
            scaled(llama3(0.0, 4.0, 509)),
            14,
            "scaling Llama3 needs 0 < low_freq_factor < high_freq_factor, got 0 and 4".into(),
        ),
        (
            scaled(longrope(&[1.0, 2.0, 3.0], 1.0)),
            14,
            "scaling LongRope has 3 factors for the 7 pairs of rotary_dim 14".into(),
        ),
        (
            scaled(longrope(&[1.0, 0.0], 1.0)),
            4,
            "the factors of scaling LongRope must be finite and positive, got 0".into(),
        ),
        (
            scaled(longrope(&[1.0, 2.0], f64::NAN)),
            4,
            "the attention_factor of scaling must be finite and positive, got NaN".into(),
        ),
    ];
    for (config, d_head, sentence) in cases {
        let error: ConfigError = config
            .validate(d_head)
            .expect_err("the configuration is bad");
        assert_eq!(error.to_string(), format!("RotaryConfig: {sentence}"));
    }
}
