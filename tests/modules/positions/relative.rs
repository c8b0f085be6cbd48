//! The relative bias has T5's buckets.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, TensorData},
};
use burn_attn::positions::{RelativeBias, RelativeBiasConfig};
use burn_attn_tests::{compare::numbers, devices, parameters, sentence};

use super::{loss, scores};

const HEADS: usize = 3;

/// The first position (key − query) of each run of keys in one bucket: buckets 15 to 0, then 17 to 31.
///
/// Results of `T5Attention._relative_position_bucket` of Hugging Face's `transformers`, its lines run in PyTorch 2.15 on the
/// positions −153 to 153: 32 buckets, a largest distance of 128, bidirectional.
const ENCODER: [isize; 31] = [
    -153, -90, -63, -45, -31, -22, -15, -11, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8,
    12, 16, 23, 32, 46, 64, 91,
];

/// The same of the causal decoder, buckets 31 to 0, where keys after the query share the bucket of distance 0.
const DECODER: [isize; 32] = [
    -153, -112, -98, -86, -76, -66, -58, -51, -45, -39, -34, -30, -26, -23, -20, -18, -15, -14,
    -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0,
];

/// The same for 13 buckets and a largest distance of 61, bidirectional: buckets 5 to 0, then 7 to 11.
const ODD: [isize; 11] = [-97, -22, -8, -2, -1, 0, 1, 2, 3, 9, 23];

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
fn assert_buckets(
    config: &RelativeBiasConfig,
    runs: &[isize],
    buckets: impl Iterator<Item = usize>,
) {
    let buckets: Vec<usize> = buckets.collect();
    assert_eq!(buckets.len(), runs.len());
    for (_, device) in devices::cpu() {
        let reach = -runs[0];
        let (query, len) = (reach as usize, 2 * reach as usize + 1);
        for rows in scores(numbered(config, &device).bias(), HEADS, len, &device) {
            // The middle query sees as far ahead as back.
            let row = &rows[query];
            for (key, score) in row.iter().enumerate() {
                let position = key as isize - reach;
                let run = runs.iter().rposition(|first| *first <= position);
                let expected = buckets[run.expect("the first run starts with the first key")];
                // Distance 0 is bucket 0.
                let bucket = 8.0 * (score - row[query]);
                assert!(
                    (bucket - expected as f32).abs() < 1e-3,
                    "position {position}: bucket {bucket} instead of {expected}"
                );
            }
        }
    }
}

#[test]
fn buckets_are_t5s_in_both_directions() {
    let of_encoder = (0..=15).rev().chain(17..=31);
    assert_buckets(&RelativeBiasConfig::new(), &ENCODER, of_encoder);
    let decoder = RelativeBiasConfig::new().with_bidirectional(false);
    assert_buckets(&decoder, &DECODER, (0..=31).rev());
    let odd = RelativeBiasConfig::new()
        .with_buckets(13)
        .with_max_distance(61);
    assert_buckets(&odd, &ODD, (0..=5).rev().chain(7..=11));
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
    for (config, n_heads, reason) in [
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
    ] {
        let error = config.validate(n_heads).expect_err("it is bad");
        let expected = format!("RelativeBiasConfig: {reason}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(sentence(|| config.init(n_heads, &devices::any())), expected);
    }
    assert_eq!(config().with_max_distance(9).validate(HEADS), Ok(()));
}
