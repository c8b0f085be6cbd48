//! What rotary positions refuse, and in which words.

use burn::tensor::Tensor;
use burn_attn::positions::{Positions, RotaryConfig, RotaryScaling, YarnScaling};
use burn_attn_tests::{devices, sentence};

#[test]
fn calls_that_do_not_fit_the_table() {
    let device = devices::any();
    let rotary = RotaryConfig::new().with_max_len(31).init(14, &device);
    let rotate = |shape: [usize; 4], positions: Positions| {
        sentence(|| rotary.forward(Tensor::zeros(shape, &device), &positions))
    };
    let past = "Rotary: 3 tokens from position 29 on need 32 positions, but there are 31";
    assert_eq!(rotate([2, 3, 3, 14], Positions::Offset(29)), past);
    let one = Positions::Offsets(vec![28, 29]);
    assert_eq!(rotate([2, 3, 3, 14], one), past);
    assert_eq!(
        rotate([2, 3, 1, 14], Positions::Offset(usize::MAX)),
        "Rotary: 1 tokens from position 18446744073709551615 on need 18446744073709551615 positions, but there are 31"
    );
    let three = Positions::Offsets(vec![0, 7, 11]);
    assert_eq!(
        rotate([2, 3, 5, 14], three),
        "Rotary: 3 offsets for 2 sequences"
    );
    let narrow = rotate([2, 3, 5, 13], Positions::default());
    assert!(narrow.contains("axis 3 expected 14, got 13"), "{narrow}");
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
    let refused = |config: RotaryConfig, d_head: usize, reason: &str| {
        let error = config.validate(d_head).expect_err("it is bad");
        let expected = format!("RotaryConfig: {reason}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(sentence(|| config.init(d_head, &devices::any())), expected);
        assert_eq!(sentence(|| config.frequencies(d_head)), expected);
    };
    let config = RotaryConfig::new;
    refused(
        config().with_max_len(0),
        14,
        "max_len must be at least 1, got 0",
    );
    refused(config(), 0, "d_head must be at least 1, got 0");
    refused(
        config(),
        13,
        "d_head 13 is odd, but numbers are rotated in pairs",
    );
    for (rotary_dim, reason) in [
        (0, "rotary_dim must be at least 1, got 0"),
        (16, "rotary_dim 16 is more than d_head 14"),
        (7, "rotary_dim 7 is odd, but numbers are rotated in pairs"),
    ] {
        refused(config().with_rotary_dim(rotary_dim), 14, reason);
    }
    for (base, shown) in [(1.0, "1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let reason = format!("base must be finite and more than 1, got {shown}");
        refused(config().with_base(base), 14, &reason);
    }
}

#[test]
fn scalings_that_contradict_themselves() {
    let refused = |scaling, d_head, reason: &str| {
        let config = RotaryConfig::new().with_scaling(scaling);
        let error = config.validate(d_head).expect_err("it is bad");
        assert_eq!(error.to_string(), format!("RotaryConfig: {reason}"));
    };
    for (scaling, shown) in [
        (RotaryScaling::Linear { factor: 0.5 }, "0.5"),
        (RotaryScaling::Ntk { factor: f64::NAN }, "NaN"),
        (RotaryScaling::yarn(f64::INFINITY, 509), "inf"),
    ] {
        let reason = format!("the factor of scaling must be finite and at least 1, got {shown}");
        refused(scaling, 14, &reason);
    }
    let ntk = RotaryScaling::Ntk { factor: 4.0 };
    refused(
        ntk,
        2,
        "scaling Ntk needs a rotary_dim of at least 4, got 2",
    );
    let llama3 = |low_freq_factor, high_freq_factor, original_max_len| RotaryScaling::Llama3 {
        factor: 8.0,
        low_freq_factor,
        high_freq_factor,
        original_max_len,
    };
    for scaling in [RotaryScaling::yarn(4.0, 0), llama3(1.0, 4.0, 0)] {
        let reason = "the original_max_len of scaling must be at least 1, got 0";
        refused(scaling, 14, reason);
    }
    for (beta_fast, beta_slow, shown) in [
        (1.0, 1.0, "1 and 1"),
        (32.0, 0.0, "0 and 32"),
        (f64::NAN, 1.0, "1 and NaN"),
        (f64::INFINITY, 1.0, "1 and inf"),
    ] {
        let yarn = YarnScaling::new(4.0, 509).with_beta_fast(beta_fast);
        let yarn = RotaryScaling::Yarn(yarn.with_beta_slow(beta_slow));
        let reason = format!("scaling Yarn needs 0 < beta_slow < beta_fast, got {shown}");
        refused(yarn, 14, &reason);
    }
    for low in [4.0, 0.0] {
        let factors = "scaling Llama3 needs 0 < low_freq_factor < high_freq_factor, got";
        refused(llama3(low, 4.0, 509), 14, &format!("{factors} {low} and 4"));
    }
    let longrope = |factors: &[f64], attention_factor| RotaryScaling::LongRope {
        factors: factors.to_vec(),
        attention_factor,
    };
    refused(
        longrope(&[1.0, 2.0, 3.0], 1.0),
        14,
        "scaling LongRope has 3 factors for the 7 pairs of rotary_dim 14",
    );
    refused(
        longrope(&[1.0, 0.0], 1.0),
        4,
        "the factors of scaling LongRope must be finite and positive, got 0",
    );
    let attention_factor = "the attention_factor of scaling must be finite and positive, got";
    let yarn = YarnScaling::new(8.0, 509).with_attention_factor(0.0);
    refused(
        RotaryScaling::Yarn(yarn),
        14,
        &format!("{attention_factor} 0"),
    );
    let nan = longrope(&[1.0, 2.0], f64::NAN);
    refused(nan, 4, &format!("{attention_factor} NaN"));
}
