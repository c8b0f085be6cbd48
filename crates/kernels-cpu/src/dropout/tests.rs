//! Known answers, then statistics: each bound is five standard deviations of independent draws with that probability.

use super::*;

const SAMPLES: usize = 1 << 20;
const ROW: usize = 1 << 10;

fn dropout(probability: f64, seed: u64) -> AttentionDropout {
    AttentionDropout { probability, seed }
}

/// Kept bits of `SAMPLES` weights, the rows numbered from `from`.
fn pattern(dropout: AttentionDropout, batch_item: usize, head: usize, from: usize) -> Vec<bool> {
    (0..SAMPLES / ROW)
        .flat_map(|query| {
            let row = dropout.row(batch_item, head, from + query);
            (0..ROW).map(move |key| row.keep(key))
        })
        .collect()
}

/// Pearson correlation of two patterns with the same probability, in standard deviations of independent ones.
fn deviations(left: &[bool], right: &[bool], probability: f64) -> f64 {
    let centred = |kept: bool| f64::from(u8::from(kept)) - (1.0 - probability);
    let sum: f64 = left
        .iter()
        .zip(right)
        .map(|(&l, &r)| centred(l) * centred(r))
        .sum();
    let variance = probability * (1.0 - probability);
    sum / (variance * (left.len().min(right.len()) as f64).sqrt())
}

#[test]
fn answers_are_pinned_for_other_devices() {
    // Computed by a separate program (Python integers) from the definition in the docs.
    assert_eq!(AttentionDropout::mix(0), 0);
    assert_eq!(AttentionDropout::mix(1), 0x0427_41d6);
    let row = dropout(0.25, 0x0123_4567_89ab_cdef).row(2, 3, 5);
    assert_eq!(row.state, [0xe98c_139b, 0x75da_5fe7]);
    assert_eq!(row.threshold, 1 << 29);
    assert_eq!(
        [0, 1, 7, u32::MAX].map(|key| row.bits(key)),
        [0x59ee_0fd6, 0xb021_60c8, 0x7d7e_ccca, 0x95d5_c265]
    );
    let kept: String = (0..32)
        .map(|key| if row.keep(key) { '#' } else { '.' })
        .collect();
    assert_eq!(kept, "#####.##...#..#.#.##.#.###..#.#.");
}

#[test]
fn the_documented_function_is_the_implemented_one() {
    // Written out again from the docs, in 64-bit arithmetic with an explicit modulus.
    const MODULUS: u64 = 1 << 32;
    let key_hash = |a: u64, b: u64, key: u64| {
        let mut x = key ^ a;
        x ^= x >> 17;
        x = (x * 0xed5a_d4bb % MODULUS + b) % MODULUS;
        x ^= x >> 11;
        x = x * 0xac4c_1b51 % MODULUS;
        x ^= x >> 15;
        x = x * 0x3184_8bab % MODULUS;
        x ^ (x >> 14)
    };
    let mix = |word| key_hash(0, 0, word);
    for seed in [0, 1, 0xfedc_ba98_7654_3210, u64::MAX] {
        for (batch_item, head, query) in [(0, 0, 0), (1, 2, 3), (17, 5, 4099)] {
            let (mut a, mut b) = (0x243f_6a88, 0x85a3_08d3);
            for word in [seed % MODULUS, seed / MODULUS, batch_item, head, query] {
                a = mix(a ^ word);
                b = mix((b + a) % MODULUS);
            }
            let dropout = dropout(0.3, seed);
            let row = dropout.row(batch_item as usize, head as usize, query as usize);
            for key in 0..97 {
                let bits = key_hash(a, b, key);
                assert_eq!(u64::from(row.bits(key as u32)), bits);
                assert_eq!(row.keep(key as usize), bits >> 1 >= 644_245_094);
            }
        }
    }
}

#[test]
fn a_filled_row_is_the_row() {
    let row = dropout(0.4, 11).row(1, 2, 3);
    let mut factors = [7.0; 97];
    row.fill(&mut factors, 2.5);
    for (key, factor) in factors.into_iter().enumerate() {
        assert_eq!(factor, if row.keep(key) { 2.5 } else { 0.0 });
    }
}

#[test]
fn probability_zero_keeps_everything() {
    let dropout = dropout(0.0, 7);
    assert!(pattern(dropout, 0, 0, 0).into_iter().all(|kept| kept));
    assert_eq!(dropout.kept_scale(), 1.0);
}

#[test]
fn the_keep_rate_is_within_five_deviations() {
    for (seed, probability) in [0.001, 0.1, 0.25, 0.5, 0.9, 0.999].into_iter().enumerate() {
        let kept = pattern(dropout(probability, seed as u64), 1, 2, 0)
            .into_iter()
            .filter(|&kept| kept)
            .count() as f64;
        let expected = SAMPLES as f64 * (1.0 - probability);
        let deviation = (SAMPLES as f64 * probability * (1.0 - probability)).sqrt();
        assert!(
            (kept - expected).abs() < 5.0 * deviation,
            "p {probability}: {kept} kept"
        );
    }
}

#[test]
fn the_rate_of_single_rows_and_columns_varies_as_much_as_chance_allows() {
    // A poor row hash passes the global rate with rows that are all 0.4 or 0.6: look at the variance between rows.
    let probability = 0.3;
    let kept = pattern(dropout(probability, 3), 0, 0, 0);
    let rows = SAMPLES / ROW;
    let variance = probability * (1.0 - probability);
    let chi_squared = |counts: &[f64], each: f64| {
        let mean = each * (1.0 - probability);
        counts
            .iter()
            .map(|count| (count - mean).powi(2) / (each * variance))
            .sum::<f64>()
    };
    let mut by_row = vec![0.0; rows];
    let mut by_column = vec![0.0; ROW];
    for (index, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
        by_row[index / ROW] += 1.0;
        by_column[index % ROW] += 1.0;
    }
    for (counts, each) in [(by_row, ROW), (by_column, rows)] {
        let degrees = counts.len() as f64;
        let distance = (chi_squared(&counts, each as f64) - degrees) / (2.0 * degrees).sqrt();
        assert!(
            distance.abs() < 5.0,
            "chi squared is {distance} deviations off"
        );
    }
}

#[test]
fn neighbours_along_every_axis_are_independent() {
    for probability in [0.1, 0.5] {
        let seed = 0x5eed;
        let seeded = |seed| dropout(probability, seed);
        let dropout = seeded(seed);
        let base = pattern(dropout, 0, 0, 0);
        let mut others = vec![
            ("next head", pattern(dropout, 0, 1, 0)),
            ("next batch item", pattern(dropout, 1, 0, 0)),
            ("next seed", pattern(seeded(seed + 1), 0, 0, 0)),
            (
                "seed with its top bit flipped",
                pattern(seeded(seed ^ 1 << 63), 0, 0, 0),
            ),
            (
                "seed with its halves swapped",
                pattern(seeded(seed.rotate_left(32)), 0, 0, 0),
            ),
        ];
        for lag in [1, 2, 3, 4, 7, 8, 16, 64] {
            others.push(("a key further on", base[lag..].to_vec()));
            others.push(("a row further on", pattern(dropout, 0, 0, lag)));
        }
        for (name, other) in others {
            let distance = deviations(&base, &other, probability);
            assert!(
                distance.abs() < 5.0,
                "{name}, p {probability}: {distance} deviations"
            );
        }
    }
}

#[test]
fn only_probabilities_below_one_are_valid() {
    let check = |probability| dropout(probability, 0).validate();
    for probability in [0.0, 0.5, 1.0_f64.next_down()] {
        assert_eq!(check(probability), Ok(()));
    }
    for probability in [-0.1, 1.0, f64::INFINITY, f64::NAN] {
        assert!(check(probability).is_err());
    }
    assert_eq!(
        check(1.5).unwrap_err().to_string(),
        "the dropout probability must be at least 0 and less than 1, but is 1.5"
    );
    let most = dropout(1.0_f64.next_down(), 0);
    assert_eq!(most.threshold(), u32::MAX >> 1);
}
