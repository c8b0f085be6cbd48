//! The data: what a map accepts and what it tells.

use burn_attn_viz::{AttentionMap, MapError, MapWeight};

use crate::{map_of, sample};

#[test]
fn accessors_read_the_row_major_layout() {
    let map = sample();
    assert_eq!(
        (map.heads(), map.queries().len(), map.keys().len()),
        (2, 3, 5)
    );
    assert_eq!(map.title(), "layer 1");
    let renamed = map.clone().with_title("layer 2");
    assert_eq!(
        (renamed.title(), renamed.row(0, 1)),
        ("layer 2", map.row(0, 1))
    );
    assert_eq!(map.weight(0, 1, 3), 0.25);
    assert_eq!(map.weight(1, 2, 1), 0.376544);
    assert_eq!(map.row(0, 2), [0.0, 0.01, 0.04, 0.05, 0.9]);
    assert_eq!(map.maximum(0), 0.9);
    assert_eq!(map.maximum(1), 1.0);
    assert_eq!(map.strongest_key(0, 0), 3);
    assert_eq!(map.strongest_key(1, 1), 0, "the first of equal keys");
}

#[test]
fn mean_over_heads_averages_every_cell() {
    let (map, mean) = (sample(), sample().mean_over_heads());
    assert_eq!(mean.heads(), 1);
    for i in 0..3 {
        for j in 0..5 {
            let expected = (map.weight(0, i, j) + map.weight(1, i, j)) / 2.0;
            assert!((mean.weight(0, i, j) - expected).abs() < 1e-7);
        }
    }
}

#[test]
fn entropy_is_in_bits_and_skips_rows_that_see_nothing() {
    let map = map_of(
        &["a", "b", "c"],
        &["x", "y"],
        &[0.5, 0.5, 0.0, 0.0, 1.0, 0.0],
    )
    .unwrap();
    assert_eq!(map.row_entropy(0, 0), 1.0);
    assert_eq!(map.row_entropy(0, 1), 0.0);
    assert!(map.row_entropy(0, 2).is_sign_positive(), "not -0");
    let blind = map_of(&["a"], &["x", "y"], &[0.0; 2]);
    let entropy = blind.unwrap().entropy(0);
    assert!(entropy == 0.0 && entropy.is_sign_positive(), "not -0");
    assert_eq!(
        map.entropy(0),
        0.5,
        "the mean of 1 and 0, without the empty row"
    );
    assert!((sample().row_entropy(1, 1) - 5_f32.log2()).abs() < 1e-6);
}

#[test]
fn entropy_does_not_depend_on_the_sum_of_a_row() {
    // With an attention sink, a row sums to less than 1.
    let map = map_of(&["a"], &["x", "y"], &[0.2, 0.2]).unwrap();
    assert_eq!(map.entropy(0), 1.0);
}

#[test]
fn causal_means_same_tokens_and_an_empty_upper_triangle() {
    let lower = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.2, 0.3, 0.5];
    let (abc, xyz) = (["a", "b", "c"], ["x", "y", "z"]);
    assert!(map_of(&abc, &abc, &lower).unwrap().is_causal());
    assert!(
        !map_of(&abc, &xyz, &lower).unwrap().is_causal(),
        "cross-attention"
    );
    assert!(!map_of(&abc, &abc, &[1.0 / 3.0; 9]).unwrap().is_causal());
    assert!(
        !map_of(&["a"], &["a"], &[1.0]).unwrap().is_causal(),
        "one token"
    );
    let second_head_looks_ahead = [lower, [1.0 / 3.0; 9]].concat();
    assert!(
        !map_of(&abc, &abc, &second_head_looks_ahead)
            .unwrap()
            .is_causal()
    );
}

#[test]
fn a_weight_of_exactly_0_is_hidden_unless_a_mask_says_otherwise() {
    let weights = [1.0, 0.0, 1e-9, 0.25, 0.0, 0.75];
    let plain = map_of(&["a", "b"], &["x", "y", "z"], &weights).unwrap();
    let hidden = |map: &AttentionMap| {
        let row = |i| [0, 1, 2].map(|j| map.is_hidden(0, i, j));
        [row(0), row(1)]
    };
    assert_eq!(hidden(&plain), [[false, true, false]; 2]);
    let mask = vec![false, false, false, false, true, false];
    let masked = plain.with_hidden(mask).unwrap();
    let expected = [[false; 3], [false, true, false]];
    assert_eq!(hidden(&masked), expected);
    assert_eq!(hidden(&masked.mean_over_heads()), expected);
}

#[test]
fn causal_follows_the_mask() {
    let weights = [1.0, 0.0, 0.5, 0.5];
    let underflowed = map_of(&["a", "b"], &["a", "b"], &weights).unwrap();
    assert!(underflowed.is_causal());
    let nothing_hidden = underflowed.with_hidden(vec![false; 4]).unwrap();
    assert!(!nothing_hidden.is_causal());
}

#[test]
fn what_is_hidden_fits_the_weights() {
    assert_eq!(
        sample()
            .with_hidden(vec![false; 7])
            .unwrap_err()
            .to_string(),
        "7 flags do not say what is hidden of 3 queries × 5 keys = 15 weights"
    );
    // Only the second head looks at the last key of the second query.
    let hidden = (0..15).map(|cell| cell == 9).collect();
    assert_eq!(
        sample().with_hidden(hidden).unwrap_err().to_string(),
        "the weight of head 1, query 1, key 4 is 0.2, and the key is said to be hidden: pass true where a mask hides a key"
    );
}

#[test]
fn no_queries_is_an_error() {
    assert_eq!(map_of(&[], &["x"], &[]), Err(MapError::NoQueries));
}

#[test]
fn no_keys_is_an_error() {
    assert_eq!(map_of(&["a"], &[], &[]), Err(MapError::NoKeys));
}

#[test]
fn weight_count_names_what_was_given_and_what_fits() {
    let error = map_of(&["a", "b"], &["x", "y", "z"], &[0.5; 7]).unwrap_err();
    assert_eq!(
        error,
        MapError::WeightCount {
            weights: 7,
            queries: 2,
            keys: 3
        }
    );
    assert_eq!(
        error.to_string(),
        "7 weights do not fill heads of 2 queries × 3 keys = 6 weights each"
    );
    let none = map_of(&["a"], &["x"], &[]).unwrap_err();
    assert_eq!(
        none,
        MapError::WeightCount {
            weights: 0,
            queries: 1,
            keys: 1
        }
    );
}

#[test]
fn not_finite_names_the_place() {
    let error = map_of(&["a"], &["x", "y"], &[0.5, 0.5, 0.5, f32::NAN]).unwrap_err();
    assert!(matches!(
        error,
        MapError::NotFinite(MapWeight {
            head: 1,
            query: 0,
            key: 1,
            ..
        })
    ));
    assert_eq!(
        error.to_string(),
        "the weight of head 1, query 0, key 1 is NaN, not a finite number"
    );
    assert!(matches!(
        map_of(&["a"], &["x"], &[f32::INFINITY]),
        Err(MapError::NotFinite(_))
    ));
}

#[test]
fn out_of_range_names_the_place_and_the_likely_cause() {
    let error = map_of(&["a", "b"], &["x", "y"], &[0.5, 0.5, 2.5, 0.5]).unwrap_err();
    let expected = MapError::OutOfRange(MapWeight {
        head: 0,
        query: 1,
        key: 0,
        weight: 2.5,
    });
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "the weight of head 0, query 1, key 0 is 2.5, not between 0 and 1: pass weights after the softmax"
    );
    assert!(map_of(&["a"], &["x"], &[-0.001]).is_err());
    assert!(
        map_of(&["a"], &["x"], &[1.0078125]).is_ok(),
        "1 rounded up in bfloat16"
    );
    let _: &dyn std::error::Error = &error;
}

#[test]
#[should_panic(expected = "head 2, query 0 is outside a map of 2 heads and 3 queries")]
fn row_outside_the_map_panics() {
    sample().row(2, 0);
}
