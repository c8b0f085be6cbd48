//! The relative bias has T5's buckets.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, TensorData},
};
use burn_attn::{
    ConfigError,
    positions::{RelativeBias, RelativeBiasConfig},
};
use burn_attn_tests::{compare::numbers, devices, parameters};

use super::{loss, scores};

const HEADS: usize = 3;

/// Runs `(first position of the key − position of the query, bucket)`.
///
/// Results of `T5Attention._relative_position_bucket` of Hugging Face's `transformers`, its lines run in PyTorch 2.15 on the
/// positions −153 to 153: 32 buckets, a largest distance of 128, bidirectional.
const ENCODER: [(isize, usize); 31] = [
    (-153, 15),
    (-90, 14),
    (-63, 13),
    (-45, 12),
    (-31, 11),
    (-22, 10),
    (-15, 9),
    (-11, 8),
    (-7, 7),
    (-6, 6),
    (-5, 5),
    (-4, 4),
    (-3, 3),
    (-2, 2),
    (-1, 1),
    (0, 0),
    (1, 17),
    (2, 18),
    (3, 19),
    (4, 20),
    (5, 21),
    (6, 22),
    (7, 23),
    (8, 24),
    (12, 25),
    (16, 26),
    (23, 27),
    (32, 28),
    (46, 29),
    (64, 30),
    (91, 31),
];

/// The same of the causal decoder, where keys after the query share the bucket of distance 0.
const DECODER: [(isize, usize); 32] = [
    (-153, 31),
    (-112, 30),
    (-98, 29),
    (-86, 28),
    (-76, 27),
    (-66, 26),
    (-58, 25),
    (-51, 24),
    (-45, 23),
    (-39, 22),
    (-34, 21),
    (-30, 20),
    (-26, 19),
    (-23, 18),
    (-20, 17),
    (-18, 16),
    (-15, 15),
    (-14, 14),
    (-13, 13),
    (-12, 12),
    (-11, 11),
    (-10, 10),
    (-9, 9),
    (-8, 8),
    (-7, 7),
    (-6, 6),
    (-5, 5),
    (-4, 4),
    (-3, 3),
    (-2, 2),
    (-1, 1),
    (0, 0),
];

/// The same for 13 buckets and a largest distance of 61, bidirectional.
const ODD: [(isize, usize); 11] = [
    (-97, 5),
    (-22, 4),
    (-8, 3),
    (-2, 2),
    (-1, 1),
    (0, 0),
    (1, 7),
    (2, 8),
    (3, 9),
    (9, 10),
    (23, 11),
];

/// A module whose bias is `bucket / 8 + head`.
fn numbered(config: &RelativeBiasConfig, device: &Device) -> RelativeBias {
    let mut module = config.init(HEADS, device);
    let table = (0..config.buckets * HEADS)
        .map(|index| (index / HEADS) as f32 / 8.0 + (index % HEADS) as f32);
    let data = TensorData::new(table.collect::<Vec<_>>(), [config.buckets, HEADS]);
    module.table = Param::from_data(data, device);
    module
}

#[track_caller]
fn assert_buckets(config: &RelativeBiasConfig, runs: &[(isize, usize)]) {
    for (_, device) in devices::cpu() {
        let reach = -runs[0].0;
        let (query, len) = (reach as usize, 2 * reach as usize + 1);
        for rows in scores(numbered(config, &device).bias(), HEADS, len, &device) {
            // The middle query sees as far ahead as back.
            let row = &rows[query];
            for (key, score) in row.iter().enumerate() {
                let position = key as isize - reach;
                let run = runs.iter().rev().find(|(first, _)| *first <= position);
                let (_, expected) = run.expect("the first run starts with the first key");
                // Distance 0 is bucket 0.
                let bucket = 8.0 * (score - row[query]);
                assert!(
                    (bucket - *expected as f32).abs() < 1e-3,
                    "position {position}: bucket {bucket} instead of {expected}"
                );
            }
        }
    }
}

#[test]
fn buckets_are_t5s_in_both_directions() {
    assert_buckets(&RelativeBiasConfig::new(), &ENCODER);
    let decoder = RelativeBiasConfig::new().with_bidirectional(false);
    assert_buckets(&decoder, &DECODER);
    let odd = RelativeBiasConfig::new()
        .with_buckets(13)
        .with_max_distance(61);
    assert_buckets(&odd, &ODD);
}

#[test]
fn every_head_has_its_own_bias() {
    let device = devices::any();
    let mut module = RelativeBiasConfig::new().init(2, &device);
    // The second head prefers the key itself.
    let mut table = vec![0.0; 32 * 2];
    table[1] = 3.0;
    module.table = Param::from_data(TensorData::new(table, [32, 2]), &device);
    let scores = scores(module.bias(), 2, 5, &device);
    assert!((scores[0][2][2] - scores[0][2][1]).abs() < 1e-5);
    assert!((scores[1][2][2] - scores[1][2][1] - 3.0).abs() < 1e-5);
}

#[test]
fn the_table_is_trained_where_it_was_used() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let module = RelativeBiasConfig::new().init(HEADS, &device);
        assert_eq!(module.num_params(), 32 * HEADS);
        // Six tokens back and ahead.
        let gradients = loss(module.bias(), HEADS, 7, &device).backward();
        let gradient = &parameters::gradients(&module, &gradients)["table"];
        for (index, number) in gradient.iter::<f32>().enumerate() {
            let used = matches!(index / HEADS, 0..=6 | 17..=22);
            assert_eq!(number != 0.0, used, "bucket {}", index / HEADS);
        }
    }
}

#[test]
fn the_table_starts_as_the_initializer_says() {
    let config = RelativeBiasConfig::new().with_initializer(Initializer::Constant { value: 0.25 });
    let module = config.init(HEADS, &devices::any());
    assert_eq!(module.table.dims(), [32, HEADS]);
    assert!(
        numbers(&module.table.val())
            .iter()
            .all(|&value| value == 0.25)
    );
}

#[test]
fn configurations_that_contradict_themselves() {
    let config = RelativeBiasConfig::new;
    let cases = [
        (config(), 0, "n_heads must be at least 1, got 0"),
        (
            config().with_buckets(3),
            HEADS,
            "relative buckets need at least 4 buckets (2 for each direction), but have 3",
        ),
        (
            config().with_max_distance(8),
            HEADS,
            "the max_distance of relative buckets must be more than 8, but is 8",
        ),
    ];
    for (config, n_heads, sentence) in cases {
        let error: ConfigError = config
            .validate(n_heads)
            .expect_err("the configuration is bad");
        assert_eq!(error.to_string(), format!("RelativeBiasConfig: {sentence}"));
    }
    assert_eq!(config().with_max_distance(9).validate(HEADS), Ok(()));
}

#[test]
#[should_panic(expected = "RelativeBiasConfig: relative buckets need at least 4 buckets")]
fn init_panics_with_the_sentence() {
    RelativeBiasConfig::new()
        .with_buckets(2)
        .init(HEADS, &devices::any());
}
