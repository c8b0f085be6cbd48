//! Which tokens may be chosen, how probable each is, and how often each is.

use burn_attn_models::generate::{GenerateOptions, Sampling};
use burn_attn_tests::numbers::uniform;

use super::{Scripted, VOCABULARY, logits_of};

/// The model's own distribution.
fn plain() -> Sampling {
    Sampling::temperature(1.0)
}

fn kept(sampling: &Sampling, logits: &[f32]) -> Vec<u32> {
    let distribution = sampling.distribution(logits);
    let total: f64 = distribution
        .iter()
        .map(|(_, probability)| probability)
        .sum();
    assert!((total - 1.0).abs() < 1e-12, "{total}");
    distribution.into_iter().map(|(token, _)| token).collect()
}

#[test]
fn greedy_is_the_largest_logit_and_the_smaller_token_among_equals() {
    let greedy = Sampling::greedy();
    assert_eq!(greedy.distribution(&[-3.0, -1.0, -2.0, -1.0]), [(1, 1.0)]);
    assert_eq!(greedy.distribution(&[-0.0, 0.0]), [(0, 1.0)]);
}

#[test]
fn top_k_keeps_exactly_k() {
    let logits = [4.0, 1.0, 2.0, 2.0, 1.0];
    let expected: [&[u32]; 5] = [&[0], &[0, 2], &[0, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3, 4]];
    for (top_k, expected) in (1..).zip(expected) {
        assert_eq!(kept(&plain().top_k(top_k), &logits), expected);
    }
    assert_eq!(kept(&plain().top_k(99), &logits), [0, 1, 2, 3, 4]);
    // Zeros of either sign tie.
    assert_eq!(kept(&plain().top_k(1), &[-0.0, 0.0]), [0]);
}

#[test]
fn top_p_keeps_the_smallest_set_that_reaches_it() {
    // Equal logits have exactly a quarter each.
    let logits = [2.0; 4];
    for (top_p, count) in [
        (1e-9, 1),
        (0.25, 1),
        (0.26, 2),
        (0.5, 2),
        (0.51, 3),
        (0.75, 3),
        (0.76, 4),
        (1.0, 4),
    ] {
        let expected: Vec<u32> = (0..count).collect();
        assert_eq!(kept(&plain().top_p(top_p), &logits), expected, "{top_p}");
    }
    // Everything has a say, however improbable.
    assert_eq!(kept(&plain().top_p(1.0), &[-600.0, 0.0, -300.0]), [0, 1, 2]);
}

#[test]
fn min_p_is_relative_to_the_most_probable() {
    // Relative to it: e⁻¹ ≈ 0.368 and e⁻² ≈ 0.135.
    let logits = [3.0, 5.0, 4.0];
    for (min_p, expected) in [
        (0.0, [0, 1, 2].as_slice()),
        (0.13, &[0, 1, 2]),
        (0.14, &[1, 2]),
        (0.36, &[1, 2]),
        (0.37, &[1]),
    ] {
        assert_eq!(kept(&plain().min_p(min_p), &logits), expected, "{min_p}");
    }
    assert_eq!(kept(&plain().min_p(1.0), &[1.0, 3.0, 3.0, 2.0]), [1, 2]);
}

#[test]
fn the_order_of_the_filters() {
    // Temperature before min-p: at 2, e⁻¹ becomes e⁻⁰·⁵ ≈ 0.607.
    let hot = Sampling::temperature(2.0).min_p(0.6);
    assert_eq!(kept(&hot, &[5.0, 4.0, 3.0]), [0, 1]);
    // Top-k before top-p: half of the two that are left, not of all four.
    assert_eq!(kept(&plain().top_p(0.5).top_k(2), &[2.0; 4]), [0]);
    // Top-p before min-p: half of what min-p alone would leave and more is the first token and two others.
    let logits = [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(kept(&plain().min_p(1.0).top_p(0.5), &logits), [0]);
    assert_eq!(kept(&plain().min_p(0.1).top_p(0.5), &logits), [0, 1, 2]);
}

#[test]
fn what_is_impossible_stays_so() {
    let logits = [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, 0.0];
    assert_eq!(kept(&plain(), &logits), [1, 3]);
    assert_eq!(kept(&plain().top_k(3).top_p(0.999_999), &logits), [1, 3]);
}

#[test]
fn extreme_temperatures() {
    let logits = [1.0, 3.0e38, -3.0e38, 3.0e38];
    assert_eq!(
        Sampling::temperature(1e-300).distribution(&logits),
        [(1, 0.5), (3, 0.5)]
    );
    let hot = Sampling::temperature(1e300).distribution(&[1.0, 2.0, -9.0, 0.0]);
    assert_eq!(hot, [(0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)]);
}

/// Filter after filter on the whole vocabulary, as the documentation says it.
fn by_the_book(
    logits: &[f32],
    temperature: f64,
    top_k: usize,
    top_p: f64,
    min_p: f64,
) -> Vec<(u32, f64)> {
    let mut ranked: Vec<(u32, f64)> = (0..).zip(logits.iter().map(|&l| f64::from(l))).collect();
    ranked.sort_by(|a, b| b.1.partial_cmp(&a.1).expect("a number"));
    let normalised = |tokens: Vec<(u32, f64)>| {
        let total: f64 = tokens.iter().map(|(_, weight)| weight).sum();
        let tokens = tokens.into_iter().map(|(t, weight)| (t, weight / total));
        tokens.collect::<Vec<_>>()
    };
    let weights = ranked
        .into_iter()
        .map(|(t, l)| (t, (l / temperature).exp()));
    let ranked = normalised(weights.take(top_k).collect());
    let mut sum = 0.0;
    let count = ranked.iter().take_while(|(_, probability)| {
        let before = sum;
        sum += probability;
        before < top_p
    });
    let count = count.count();
    let ranked = normalised(ranked.into_iter().take(count).collect());
    let least = min_p * ranked[0].1;
    let ranked = ranked.into_iter().filter(|(_, p)| *p >= least);
    let mut kept = normalised(ranked.collect());
    kept.sort_by_key(|&(token, _)| token);
    kept
}

#[test]
fn all_filters_together_by_the_book() {
    // Steps of a sixteenth tie often; 211 tokens need several rounds of sorting.
    let logits: Vec<f32> = uniform(5, 211)
        .into_iter()
        .map(|number| (number * 64.0).round() / 16.0)
        .collect();
    let mut sizes = Vec::new();
    for temperature in [0.5, 1.0, 7.0] {
        for top_k in [1, 67, 131, 211] {
            for top_p in [0.1, 0.6, 0.9, 0.999] {
                for min_p in [0.0, 0.02, 0.3] {
                    let sampling = Sampling::temperature(temperature)
                        .top_k(top_k)
                        .top_p(top_p)
                        .min_p(min_p);
                    let expected = by_the_book(&logits, temperature, top_k, top_p, min_p);
                    let actual = sampling.distribution(&logits);
                    assert_eq!(actual.len(), expected.len(), "{sampling:?}");
                    for (actual, expected) in actual.iter().zip(&expected) {
                        assert_eq!(actual.0, expected.0, "{sampling:?}");
                        assert!((actual.1 - expected.1).abs() < 1e-12, "{sampling:?}");
                    }
                    sizes.push(actual.len());
                }
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 20, "filters that do something: {sizes:?}");
}

/// How often each token is drawn, 23 rows of 211 tokens, all from the same logits.
fn frequencies(logits: &[f32], sampling: Sampling, seed: u64) -> [usize; VOCABULARY] {
    let model = Scripted::new(|_: &[u32]| logits.to_vec());
    let options = GenerateOptions::new(211).sampling(sampling).seed(seed);
    let mut counts = [0; VOCABULARY];
    for generation in model.generate(&vec![vec![0]; 23], &options) {
        for token in generation.tokens {
            counts[token as usize] += 1;
        }
    }
    counts
}

#[test]
fn tokens_come_as_often_as_they_are_probable() {
    let logits = logits_of([0.05, 0.3, 0.1, 0.25, 0.02, 0.08, 0.2]);
    let filtered = Sampling::temperature(0.7).top_k(6).top_p(0.97);
    // Exceeded by chance once in a thousand, by the degrees of freedom: 6 and 4.
    for (sampling, count, bound) in [(plain(), 7, 22.46), (filtered, 5, 18.47)] {
        let expected = sampling.distribution(&logits);
        assert_eq!(expected.len(), count);
        for seed in 0..5 {
            let counts = frequencies(&logits, sampling.clone(), seed);
            let total: usize = counts.iter().sum();
            assert_eq!(total, 23 * 211);
            let (mut statistic, mut allowed) = (0.0, 0);
            for &(token, probability) in &expected {
                let (count, expected) = (counts[token as usize], probability * total as f64);
                statistic += (count as f64 - expected).powi(2) / expected;
                allowed += count;
            }
            assert_eq!(allowed, total, "only what is kept is drawn");
            assert!(statistic < bound, "seed {seed}: {statistic}");
        }
    }
}

#[test]
fn a_filter_that_drops_nothing_changes_no_draw() {
    let model = Scripted::new(|_: &[u32]| logits_of([0.05, 0.3, 0.1, 0.25, 0.02, 0.08, 0.2]));
    let run = |sampling| {
        let options = GenerateOptions::new(53).sampling(sampling).seed(3);
        model.generate(&[vec![0], vec![1]], &options)
    };
    let all = plain().top_k(VOCABULARY).top_p(1.0).min_p(0.0);
    assert_eq!(run(all), run(plain()));
    // Nor does one that sorts everything and keeps it.
    assert_eq!(run(plain().top_p(1.0 - 1e-15)), run(plain()));
}
