//! Scores at the ends of the range: never NaN from finite input.

use crate::{
    allowed::largest_error,
    case::{Case, tensor},
    run::{PORTABLE, USUAL, run},
    tolerance::assert_as_good_as_plain,
};

/// Near the largest f32, also times log2(e).
const LARGE: f32 = 2e38;

/// One query row `q` against keys of one number each, or many such rows.
fn case(name: &str, len_q: usize, q: f64, keys: &[f64]) -> Case {
    let mut case = Case::new(name, [1, 1, 1, len_q, keys.len(), 1, 3]);
    case.query.fill(q);
    case.key = keys.to_vec();
    case.scale = Some(1.0);
    case
}

#[track_caller]
fn assert_no_nan(case: &Case) {
    for how in [USUAL, PORTABLE] {
        for (name, data) in run::<f32>(case, how) {
            let is_nan = data.iter().any(|x| x.is_nan());
            assert!(!is_nan, "{}, {how:?}: {name} is {data:?}", case.name);
        }
    }
}

#[test]
fn scores_of_ten_thousand_are_right() {
    for len_q in [1, 7] {
        let keys = [100.0, -100.0, 99.5, 0.0, 100.0];
        let mut case = case("±1e4", len_q, 100.0, &keys);
        let oracle = case.oracle();
        assert_as_good_as_plain::<f64>(&case, &oracle, &[USUAL, PORTABLE]);
        // The backward pass starts from a logsumexp that has rounded to f32, and so have its weights: by half a unit in
        // the last place of 1e4.
        let relative = 1e4 * f64::from(f32::EPSILON) / 2.0;
        for how in [USUAL, PORTABLE] {
            for (name, actual) in run::<f32>(&case, how) {
                let expected = tensor(&oracle, name);
                let (error, at) = largest_error(&actual, expected);
                let allowed = match name {
                    "query gradient" | "key gradient" => 100.0 * len_q as f64 * relative,
                    "value gradient" => len_q as f64 * relative,
                    "logsumexp" => 1e4 * f64::from(f32::EPSILON),
                    _ => 4.0 * f64::from(f32::EPSILON),
                };
                assert!(
                    error <= allowed,
                    "{name}[{at}] is {} instead of {}",
                    actual[at],
                    expected[at]
                );
            }
        }
        // If the scores are exact, one of them is the largest in f32 too.
        case.key[4] = 99.0;
        let output = run::<f32>(&case, USUAL);
        let output = tensor(&output, "output").chunks(3);
        for row in output {
            assert!(largest_error(row, &case.value[..3]).0 < 1e-6);
        }
    }
}

#[test]
fn the_largest_scores_are_never_nan() {
    let large = f64::from(LARGE);
    let small = f64::from(f32::from_bits(1));
    for len_q in [1, 7] {
        for (name, q, keys) in [
            ("largest queries", large, vec![1.0, 0.0, -1.0, 1.0]),
            ("largest keys", 1.0, vec![large, 0.0, -large, large]),
            (
                "scores that overflow",
                large,
                vec![large, 0.0, -large, large],
            ),
            (
                "scores that overflow downwards",
                large,
                vec![-large, -large],
            ),
            ("subnormal numbers", small, vec![small, 0.0, -small, 1.0]),
            ("one subnormal number", 1.0, vec![small, -small]),
        ] {
            let plain = case(name, len_q, q, &keys);
            assert_no_nan(&plain);
            let mut capped = plain.clone();
            capped.softcap = Some(3.0);
            assert_no_nan(&capped);
        }
    }
}

#[test]
fn values_below_the_largest_number_over_the_keys_are_never_nan() {
    let keys = [1.0, -1.0, 0.5, 40.0];
    for len_q in [1, 7] {
        // The last score is 156 above the next, so that the weights of the first keys round to 0.
        let mut case = case("large values", len_q, 4.0, &keys);
        let largest = f64::from(f32::MAX / 4.0);
        let signs = (0..case.value.len()).map(|at| if at % 2 == 0 { largest } else { -largest });
        case.value = signs.collect();
        for how in [USUAL, PORTABLE] {
            let results = run::<f32>(&case, how);
            for name in ["output", "logsumexp"] {
                assert!(
                    tensor(&results, name).iter().all(|x| x.is_finite()),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_row_of_the_lowest_bias_is_no_hidden_row() {
    // Masks of f32::MIN are common; a row of such biases alone weighs all keys alike.
    for len_q in [1, 7] {
        let mut case = case("lowest bias", len_q, 1.0, &[1.0, 2.0, 3.0]);
        case.bias = Some(([1, 1, 1, 3], vec![f64::from(f32::MIN); 3]));
        let mean = |d: usize| (case.value[d] + case.value[3 + d] + case.value[6 + d]) / 3.0;
        for how in [USUAL, PORTABLE] {
            for row in tensor(&run::<f32>(&case, how), "output").chunks(3) {
                assert!(
                    largest_error(row, &[mean(0), mean(1), mean(2)]).0 < 1e-6,
                    "{row:?}"
                );
            }
        }
    }
}

#[test]
fn extreme_sinks_and_biases_are_never_nan() {
    let large = f64::from(LARGE);
    for len_q in [1, 7] {
        for extreme in [large, 2.5e38_f32.into(), f32::MAX.into()]
            .into_iter()
            .flat_map(|x| [x, -x])
        {
            let mut sink = case("extreme sink", len_q, 2.0, &[1.0, 0.0, -1.0]);
            sink.sinks = Some(vec![extreme]);
            assert_no_nan(&sink);
            let mut bias = case("extreme bias", len_q, 2.0, &[1.0, 0.0, -1.0]);
            bias.bias = Some(([1, 1, 1, 3], vec![extreme, 0.0, -extreme]));
            assert_no_nan(&bias);
            bias.bias = Some(([1, 1, 1, 1], vec![extreme]));
            assert_no_nan(&bias);
            let mut against = case("bias against an overflow", len_q, large, &[large, 0.0]);
            against.bias = Some(([1, 1, 1, 2], vec![-large, 0.0]));
            assert_no_nan(&against);
        }
    }
}
