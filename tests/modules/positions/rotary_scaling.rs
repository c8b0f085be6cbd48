//! The angles of the stretches, against values of another implementation.
//!
//! The pinned numbers were computed in f64 with PyTorch 2.15, line by line as `_compute_default_rope_parameters`,
//! `_compute_linear_scaling_rope_parameters` and `_compute_yarn_parameters` of Hugging Face's `transformers` do it (for YaRN:
//! `find_correction_range` rounded outwards, the linear ramp, `0.1 · ln(factor) + 1`), and for NTK as the default at the base
//! `base · factor^(dim / (dim − 2))`.

use burn::tensor::Tensor;
use burn_attn::positions::{Positions, RotaryConfig, RotaryScaling, YarnScaling};
use burn_attn_tests::{compare::numbers, devices, golden::GoldenFile};

/// The frequencies of 14 numbers at the base 10000.
const TRAINED: [f64; 7] = [
    1.0,
    0.268269579527973,
    0.0719685673001152,
    0.0193069772888325,
    0.00517947467923121,
    0.00138949549437314,
    0.000372759372031494,
];

/// A factor of 4: the base becomes 50396.84.
const NTK: [f64; 7] = [
    1.0,
    0.212925706376885,
    0.0453373564360955,
    0.00965348864441625,
    0.00205547588861357,
    0.0004376636555237,
    9.31898430078735e-05,
];

/// The frequencies of 22 numbers: a factor of 8 from 509 tokens, the ramp from pair 1 to pair 6.
const YARN: [f64; 11] = [
    1.0,
    0.432876128108306,
    0.154589937385982,
    0.0527235040013297,
    0.0166781607375219,
    0.0045597332488588,
    0.00082241653082196,
    0.000356004483554475,
    0.000154105842430258,
    6.67087403900788e-05,
    2.88766212510395e-05,
];

/// The frequencies of 22 numbers at the base 500000: a factor of 16 from 8191 tokens, 64 and 2 turns, the ramp from pair 2 to pair 6.
const YARN_OF_ANOTHER_BASE: [f64; 11] = [
    1.0,
    0.303327522408296,
    0.0920075858503551,
    0.0213673940606107,
    0.00449724154744306,
    0.000762311929085103,
    4.86800397371943e-05,
    1.47659958442205e-05,
    4.47893293531859e-06,
    1.3585836303031e-06,
    4.12095806564309e-07,
];

/// A factor of 4.
fn linear() -> [f64; 7] {
    TRAINED.map(|angle| angle / 4.0)
}

fn yarn(factor: f64, original_max_len: usize, beta_fast: f64, beta_slow: f64) -> RotaryScaling {
    let yarn = YarnScaling::new(factor, original_max_len);
    RotaryScaling::Yarn(yarn.with_beta_fast(beta_fast).with_beta_slow(beta_slow))
}

#[track_caller]
fn assert_frequencies(config: &RotaryConfig, d_head: usize, expected: &[f64]) {
    let actual = config.frequencies(d_head);
    assert_eq!(actual.len(), expected.len());
    for (pair, (actual, expected)) in actual.into_iter().zip(expected).enumerate() {
        assert!(
            (actual / expected - 1.0).abs() < 1e-12,
            "pair {pair} turns by {actual} instead of {expected}"
        );
    }
}

#[test]
fn frequencies_are_the_references() {
    let config = RotaryConfig::new();
    let scaled = |scaling| config.clone().with_scaling(scaling);
    assert_frequencies(&config, 14, &TRAINED);
    let factor_of_4 = RotaryScaling::Linear { factor: 4.0 };
    assert_frequencies(&scaled(factor_of_4), 14, &linear());
    assert_frequencies(&scaled(RotaryScaling::Ntk { factor: 4.0 }), 14, &NTK);
    assert_frequencies(&scaled(RotaryScaling::yarn(8.0, 509)), 22, &YARN);
    // A ramp of one pair is a step: those before it turn as they were trained.
    let mut step = YARN;
    for (pair, angle) in step[..6].iter_mut().enumerate() {
        *angle = 10_000f64.powf(-2.0 * pair as f64 / 22.0);
    }
    assert_frequencies(&scaled(yarn(8.0, 509, 1.0001, 1.0)), 22, &step);
    let config = scaled(yarn(16.0, 8191, 64.0, 2.0)).with_base(500_000.0);
    assert_frequencies(&config, 22, &YARN_OF_ANOTHER_BASE);
    // The pairs that are rotated decide, not the width of the head.
    let partial = scaled(RotaryScaling::yarn(8.0, 509)).with_rotary_dim(22);
    assert_frequencies(&partial, 30, &YARN);
}

/// What the script of `tests/golden/transformers` says of 22 numbers.
#[test]
fn published_stretches_are_those_of_transformers() {
    let yarn = YarnScaling::new(8.0, 509);
    let llama3 = |factor, low_freq_factor, high_freq_factor| RotaryScaling::Llama3 {
        factor,
        low_freq_factor,
        high_freq_factor,
        original_max_len: 8192,
    };
    let longrope = RotaryScaling::LongRope {
        factors: (0..11).map(|pair| 1.0 + 1.5 * f64::from(pair)).collect(),
        attention_factor: (1.0 + 32f64.ln() / 4096f64.ln()).sqrt(),
    };
    let cases = [
        ("llama3", 500_000.0, llama3(8.0, 1.0, 4.0)),
        ("llama3_of_others", 10_000.0, llama3(32.0, 2.0, 64.0)),
        (
            "yarn_attention_factor",
            10_000.0,
            RotaryScaling::Yarn(yarn.with_attention_factor(1.5)),
        ),
        (
            "yarn_mscale",
            10_000.0,
            RotaryScaling::Yarn(yarn.with_mscale(0.707, 1.0)),
        ),
        (
            "yarn_not_truncated",
            150_000.0,
            RotaryScaling::Yarn(YarnScaling::new(32.0, 509).with_truncate(false)),
        ),
        ("longrope", 10_000.0, longrope),
    ];
    let file = GoldenFile::open("transformers/rotary");
    let mut names: Vec<&str> = file.names().collect();
    for (name, base, scaling) in cases {
        let read =
            |what: &str| -> Vec<f64> { file.data(&format!("{name}.{what}")).iter().collect() };
        let factor = scaling.attention_factor();
        let expected = read("attention_factor")[0];
        assert!(
            (factor / expected - 1.0).abs() < 1e-14,
            "{name}: {factor} instead of {expected}"
        );
        let config = RotaryConfig::new().with_base(base).with_scaling(scaling);
        assert_frequencies(&config, 22, &read("frequencies"));
        names.retain(|it| !it.starts_with(&format!("{name}.")));
    }
    assert!(names.is_empty(), "{names:?} were compared with nothing");
}

#[test]
fn a_ramp_within_one_pair_is_a_step_and_never_turns_around() {
    // Sequences of three tokens turn no pair even once: the ramp starts and ends at pair 0, all later ones are interpolated.
    let config = RotaryConfig::new().with_scaling(RotaryScaling::yarn(8.0, 3));
    let mut expected = TRAINED.map(|angle| angle / 8.0);
    expected[0] = 1.0;
    assert_frequencies(&config, 14, &expected);
}

#[test]
fn a_factor_of_one_changes_nothing() {
    for scaling in [
        RotaryScaling::Linear { factor: 1.0 },
        RotaryScaling::Ntk { factor: 1.0 },
        RotaryScaling::yarn(1.0, 509),
    ] {
        assert_eq!(scaling.attention_factor(), 1.0);
        assert_frequencies(&RotaryConfig::new().with_scaling(scaling), 14, &TRAINED);
    }
}

#[test]
fn attention_factors_are_the_references() {
    for scaling in [
        RotaryScaling::None,
        RotaryScaling::Linear { factor: 4.0 },
        RotaryScaling::Ntk { factor: 4.0 },
    ] {
        assert_eq!(scaling.attention_factor(), 1.0);
    }
    for (scaling, expected) in [
        (RotaryScaling::yarn(8.0, 509), 1.2079441541679836),
        (yarn(16.0, 8191, 64.0, 2.0), 1.2772588722239782),
    ] {
        assert!((scaling.attention_factor() - expected).abs() < 1e-15);
    }
}

/// The tables hold what the configuration says: pair `i` of `(1, 0)` becomes `factor · (cos, sin)(position · angle[i])`.
#[test]
fn the_tables_have_the_scaled_angles() {
    let linear = linear();
    let cases: [(RotaryScaling, f64, &[f64]); 4] = [
        (RotaryScaling::None, 1.0, &TRAINED),
        (RotaryScaling::Linear { factor: 4.0 }, 1.0, &linear),
        (RotaryScaling::Ntk { factor: 4.0 }, 1.0, &NTK),
        (RotaryScaling::yarn(8.0, 509), 1.2079441541679836, &YARN),
    ];
    for (_, device) in devices::cpu() {
        for (scaling, factor, angles) in cases.clone() {
            let half = angles.len();
            let rotary = RotaryConfig::new()
                .with_scaling(scaling.clone())
                .init(2 * half, &device);
            let ones = Tensor::<4>::ones([1, 1, 1, half], &device);
            let x = Tensor::cat(vec![ones.clone(), ones.zeros_like()], 3);
            for position in [1, 97, 4095] {
                let rotated = numbers(&rotary.forward(x.clone(), &Positions::Offset(position)));
                for (i, angle) in angles.iter().enumerate() {
                    let (sin, cos) = (position as f64 * angle).sin_cos();
                    let actual = [rotated[i], rotated[half + i]].map(f64::from);
                    let expected = [factor * cos, factor * sin];
                    for (actual, expected) in actual.into_iter().zip(expected) {
                        assert!(
                            (actual - expected).abs() < 2e-7,
                            "{scaling:?}, pair {i} at {position}: {actual} instead of {expected}"
                        );
                    }
                }
            }
        }
    }
}
