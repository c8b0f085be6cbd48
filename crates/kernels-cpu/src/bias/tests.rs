//! Buckets and slopes against the numbers of the papers' code, and the entries of the axis.

use super::*;
use crate::PositionMask;

/// Hugging Face's `T5Attention._relative_position_bucket` in PyTorch, for 32 buckets and a largest distance of 128: the first distances of
/// the encoder's buckets 8 to 15.
const ENCODER: [usize; 8] = [8, 12, 16, 23, 32, 46, 64, 91];
/// The first distances of the decoder's buckets 16 to 31.
const DECODER: [usize; 16] = [
    16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113,
];

#[test]
fn the_buckets_are_t5s() {
    for (bidirectional, firsts) in [(true, &ENCODER[..]), (false, &DECODER)] {
        let buckets = RelativeBuckets {
            buckets: 32,
            max_distance: 128,
            bidirectional,
        };
        for distance in 0..1000 {
            // Below the first of these buckets, each distance has one.
            let expected = match firsts.iter().filter(|&&first| first <= distance).count() {
                0 => distance,
                count => firsts[0] + count - 1,
            };
            assert_eq!(buckets.bucket(-(distance as isize)), expected, "{distance}");
            let after = match bidirectional && distance > 0 {
                true => expected + 16,
                false => 0,
            };
            assert_eq!(buckets.bucket(distance as isize), after, "{distance}");
        }
    }
}

#[test]
fn every_bucket_is_used_in_order_and_none_beyond() {
    for bidirectional in [false, true] {
        for buckets in [4, 6, 10, 32, 64] {
            for max_distance in [buckets + 3, 100, 128, 1000] {
                let buckets = RelativeBuckets {
                    buckets,
                    max_distance,
                    bidirectional,
                };
                buckets.validate().unwrap();
                let of_one = if bidirectional {
                    buckets.buckets / 2
                } else {
                    buckets.buckets
                };
                let mut last = 0;
                for distance in 0..2 * max_distance as isize {
                    let bucket = buckets.bucket(-distance);
                    assert!(bucket >= last, "{buckets:?} at {distance}");
                    last = bucket;
                }
                assert_eq!(last, of_one - 1, "{buckets:?}");
                for extreme in [isize::MIN, isize::MAX] {
                    assert!(buckets.bucket(extreme) < buckets.buckets);
                }
            }
        }
    }
}

#[test]
fn bucket_errors_name_the_offending_values() {
    let message = |buckets, max_distance, bidirectional| {
        RelativeBuckets {
            buckets,
            max_distance,
            bidirectional,
        }
        .validate()
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        message(1, 128, false),
        "relative buckets need at least 2 buckets (2 for each direction), but have 1"
    );
    assert_eq!(
        message(3, 128, true),
        "relative buckets need at least 4 buckets (2 for each direction), but have 3"
    );
    assert_eq!(
        message(32, 16, false),
        "the max_distance of relative buckets must be more than 16, but is 16"
    );
    assert_eq!(
        message(32, 8, true),
        "the max_distance of relative buckets must be more than 8, but is 8"
    );
}

/// The recursion of the paper's `get_slopes`, which the closed form replaces.
fn slopes_of_the_paper(heads: usize) -> Vec<f64> {
    let log = (heads as f64).log2();
    if log.fract() == 0.0 {
        let start = (-(-(log - 3.0)).exp2()).exp2();
        return (0..heads).map(|i| start * start.powi(i as i32)).collect();
    }
    let closest = 1 << log.floor() as usize;
    let mut slopes = slopes_of_the_paper(closest);
    let finer = slopes_of_the_paper(2 * closest);
    slopes.extend(finer.iter().step_by(2).take(heads - closest));
    slopes
}

#[test]
fn slopes_are_the_papers_for_any_number_of_heads() {
    assert_eq!(alibi_slopes(0), [0.0; 0]);
    for heads in 1..=65 {
        let (actual, expected) = (alibi_slopes(heads), slopes_of_the_paper(heads));
        assert_eq!(actual.len(), heads);
        for (a, e) in actual.iter().zip(&expected) {
            assert!((a - e).abs() <= 1e-14, "{heads} heads: {a} instead of {e}");
        }
    }
}

fn problem(len_q: usize, len_kv: usize) -> Problem {
    Problem {
        batch: 1,
        heads_q: 1,
        heads_kv: 1,
        len_q,
        len_kv,
        dim_qk: 1,
        dim_v: 1,
    }
}

#[test]
fn every_score_finds_the_entry_of_its_relative_position() {
    for (len_q, len_kv) in [(1, 1), (5, 7), (7, 5), (1, 11), (11, 1)] {
        // Every offset that is allowed, one per batch item.
        let offsets: Vec<i64> = (-(len_q as i64)..=len_kv as i64).collect();
        for (causal, query_offsets) in [
            (None, None),
            (Some(CausalAlignment::BottomRight), None),
            (Some(CausalAlignment::TopLeft), None),
            (None, Some(&offsets[..])),
            (Some(CausalAlignment::TopLeft), Some(&offsets[..])),
        ] {
            let problem = Problem {
                batch: query_offsets.map_or(1, <[i64]>::len),
                ..problem(len_q, len_kv)
            };
            let mask = Mask {
                by_position: PositionMask::new(causal, None),
                query_offsets,
                ..Mask::default()
            };
            let axis = DistanceAxis::new(&problem, &mask);
            let positions: Vec<isize> = axis.relative_positions().collect();
            let len = match query_offsets {
                None => len_q + len_kv - 1,
                Some(_) => 2 * (len_q + len_kv) - 1,
            };
            assert_eq!(positions.len(), len);
            let mut used = vec![false; axis.len()];
            for item in 0..problem.batch {
                for (query, key) in (0..len_q).flat_map(|i| (0..len_kv).map(move |j| (i, j))) {
                    let position = mask.position(&problem, item, query);
                    let index = axis.index(position, key);
                    let entry = match query_offsets {
                        None => query + len_kv - 1 - key,
                        Some(offsets) => (query + len_q + len_kv - 1 - key)
                            .strict_add_signed(offsets[item] as isize),
                    };
                    assert_eq!(index, entry, "{axis:?}");
                    used[index] = true;
                    let expected = key as isize - position;
                    assert_eq!(positions[index], expected, "{query} {key} {axis:?}");
                }
            }
            assert!(used.into_iter().all(|used| used), "{axis:?}");
        }
    }
}

#[test]
fn an_axis_without_pairs_is_empty() {
    for (len_q, len_kv) in [(0, 0), (0, 3), (3, 0)] {
        for alignment in [Some(CausalAlignment::BottomRight), None] {
            let axis = DistanceAxis {
                len_q,
                len_kv,
                alignment,
            };
            assert!(axis.is_empty());
            assert_eq!(axis.relative_positions().len(), 0);
        }
    }
}
