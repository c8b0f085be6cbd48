//! Hidden keys and rows: they change no result, and NaN in them does not spread.

use super::case::{Case, PRIMES, TALL};
use crate::{
    Broadcast, CausalAlignment, Mask, PositionMask, Problem, RelativeBuckets, Segments, Window,
};

/// All gradients in one list.
fn all(case: &Case<'_>) -> Vec<f64> {
    let gradients = case.backward();
    let optional = [
        gradients.bias,
        gradients.alibi,
        gradients.relative,
        gradients.sinks,
    ]
    .map(Option::unwrap_or_default);
    [gradients.q, gradients.k, gradients.v]
        .into_iter()
        .chain(optional)
        .flatten()
        .collect()
}

/// Poisons key and value `key` of batch item `item`, in every head.
fn poison(case: &mut Case<'_>, item: usize, key: usize, poison: f64) {
    let Problem {
        heads_kv,
        dim_qk,
        dim_v,
        ..
    } = case.problem;
    for head in 0..heads_kv {
        let row = case.problem.key_row(item, head, key);
        case.k[row * dim_qk..][..dim_qk].fill(poison);
        case.v[row * dim_v..][..dim_v].fill(poison);
    }
}

#[test]
fn rows_without_a_visible_key_are_zero_and_take_no_gradient() {
    // Bottom-right with 7 queries and 5 keys: the first two rows of every head see nothing.
    let causal = Mask {
        by_position: PositionMask::causal(CausalAlignment::BottomRight),
        ..Mask::default()
    };
    // No dropout: it can drop the only key of a row, whose output then is 0 although the row is not hidden.
    let mut case = Case {
        sinks: None,
        dropout: None,
        ..Case::with_all_options(TALL)
    };
    case.mask = causal;
    let forward = case.forward();
    let clean = all(&case);
    for row in 0..TALL.query_rows() {
        let hidden = row % 7 < 2;
        assert_eq!(forward.logsumexp[row] == f64::NEG_INFINITY, hidden);
        assert_eq!(
            forward.output[row * 13..][..13]
                .iter()
                .all(|&output| output == 0.0),
            hidden
        );
        if hidden {
            assert!(
                forward.weights[row * 5..][..5]
                    .iter()
                    .all(|&weight| weight == 0.0)
            );
            assert!(
                case.backward().q[row * 11..][..11]
                    .iter()
                    .all(|&gradient| gradient == 0.0)
            );
            // NaN in the query or the incoming gradients of a hidden row does not spread.
            case.q[row * 11..][..11].fill(f64::NAN);
            case.output_gradient[row * 13..][..13].fill(f64::NAN);
            case.logsumexp_gradient.as_mut().unwrap()[row] = f64::NAN;
        }
    }
    assert_eq!(all(&case), clean);
    assert_eq!(case.forward(), forward);
}

#[test]
fn a_hidden_row_with_a_sink_is_the_sink() {
    let everything = [true];
    let masked = Broadcast::new(&everything, [1, 1, 1, 1]).unwrap();
    let mask = Mask {
        masked: Some(masked),
        ..Mask::default()
    };
    let mut case = Case {
        mask,
        ..Case::with_all_options(PRIMES)
    };
    let (forward, gradients) = (case.forward(), case.backward());
    let (sinks, arriving) = (
        case.sinks.clone().unwrap(),
        case.logsumexp_gradient.clone().unwrap(),
    );
    assert!(forward.output.iter().all(|&output| output == 0.0));
    let mut expected = vec![0.0; 6];
    for row in 0..PRIMES.query_rows() {
        assert_eq!(forward.logsumexp[row], sinks[row / 5 % 6]);
        expected[row / 5 % 6] += arriving[row];
    }
    assert_eq!(gradients.sinks.unwrap(), expected);
    assert!(
        gradients
            .q
            .iter()
            .chain(&gradients.k)
            .all(|&gradient| gradient == 0.0)
    );
    // A sink of −∞ is no sink.
    case.sinks = Some(vec![f64::NEG_INFINITY; 6]);
    assert!(
        case.forward()
            .logsumexp
            .iter()
            .all(|&logsumexp| logsumexp == f64::NEG_INFINITY)
    );
    case.logsumexp_gradient.as_mut().unwrap().fill(f64::NAN);
    assert!(all(&case).iter().all(|&gradient| gradient == 0.0));
}

#[test]
fn no_keys_at_all_is_a_hidden_row_and_no_queries_or_items_are_nothing() {
    let case = Case::new(Problem {
        len_kv: 0,
        ..PRIMES
    });
    let forward = case.forward();
    assert_eq!(forward.output, vec![0.0; 2 * 6 * 5 * 13]);
    assert_eq!(forward.logsumexp, vec![f64::NEG_INFINITY; 2 * 6 * 5]);
    assert!(all(&case).iter().all(|&gradient| gradient == 0.0));
    for problem in [
        Problem { len_q: 0, ..PRIMES },
        Problem { batch: 0, ..PRIMES },
    ] {
        let case = Case::with_all_options(problem);
        assert!(case.forward().output.is_empty());
        assert!(all(&case).iter().all(|&gradient| gradient == 0.0));
    }
}

#[test]
fn nan_and_infinity_in_keys_no_query_may_see_reach_nothing() {
    let lengths = [7, 5];
    let queries = [[0; 5], [0; 5]].concat();
    let keys = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1];
    let masked: Vec<bool> = (0..14).map(|key| key >= 12).collect();
    let bias: Vec<f64> = (0..14)
        .map(|key| if key >= 12 { f64::NEG_INFINITY } else { 0.25 })
        .collect();
    let hide = |mask: Mask<'static>| Case {
        mask,
        ..Case::with_all_options(PRIMES)
    };
    // The last two keys of the second batch item, hidden in four ways.
    let mut cases: [Case<'_>; 4] = [(); 4].map(|()| hide(Mask::default()));
    cases[0].mask.key_lengths = Some(&lengths);
    cases[1].mask.segments = Some(Segments {
        queries: &queries,
        keys: &keys,
    });
    cases[2].mask.masked = Some(Broadcast::new(&masked, [2, 1, 1, 7]).unwrap());
    cases[3].bias = Some((bias, [2, 1, 1, 7]));
    for (index, case) in cases.iter_mut().enumerate() {
        let (clean, clean_gradients) = (case.forward(), all(case));
        assert!(
            clean
                .output
                .iter()
                .chain(&clean_gradients)
                .all(|number| number.is_finite())
        );
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            poison(case, 1, 5, number);
            poison(case, 1, 6, number);
            assert_eq!(case.forward(), clean, "case {index}, {number}");
            assert_eq!(all(case), clean_gradients, "case {index}, {number}");
        }
        // The gradients of the hidden keys are zero.
        let gradients = case.backward();
        for head in 0..3 {
            let row = PRIMES.key_row(1, head, 5);
            assert!(
                gradients.k[row * 11..][..22]
                    .iter()
                    .all(|&gradient| gradient == 0.0)
            );
            assert!(
                gradients.v[row * 13..][..26]
                    .iter()
                    .all(|&gradient| gradient == 0.0)
            );
        }
    }
}

#[test]
fn a_table_entry_of_minus_infinity_hides_its_bucket() {
    let buckets = RelativeBuckets {
        buckets: 4,
        max_distance: 6,
        bidirectional: false,
    };
    // The last bucket holds the distances from 4 on, and every head hides it.
    assert_eq!((buckets.bucket(-3), buckets.bucket(-4)), (2, 3));
    let case = |relative, mask| Case {
        relative: Some((relative, buckets)),
        ..Case {
            mask,
            ..Case::with_all_options(PRIMES)
        }
    };
    let window = Window {
        left: Some(3),
        right: None,
    };
    let windowed = case(
        vec![0.25; 24],
        Mask {
            by_position: PositionMask::window(window),
            ..Mask::default()
        },
    );
    let mut table = vec![0.25; 24];
    table[18..].fill(f64::NEG_INFINITY);
    let hidden = case(table, Mask::default());
    assert_eq!(hidden.forward(), windowed.forward());
    assert_eq!(all(&hidden), all(&windowed));
    assert_eq!(hidden.backward().relative.unwrap()[18..], [0.0; 6]);
}

#[test]
fn nan_that_a_query_sees_is_not_hidden_from_the_caller() {
    let window = Window {
        left: Some(0),
        right: Some(0),
    };
    let mut case = Case::masked_by(
        PRIMES,
        Mask {
            by_position: PositionMask::window(window),
            ..Mask::default()
        },
    );
    poison(&mut case, 1, 4, f64::NAN);
    let forward = case.forward();
    // Position 4 is query 2, and with this window no other query sees key 4.
    for row in 0..PRIMES.query_rows() {
        let sees = row / 5 / 6 == 1 && row % 5 == 2;
        assert_eq!(forward.logsumexp[row].is_nan(), sees);
        assert_eq!(
            forward.output[row * 13..][..13]
                .iter()
                .all(|output| output.is_nan()),
            sees
        );
    }
}

#[test]
fn a_masked_key_never_wins() {
    // Hidden scores of +huge, beside visible scores of −huge.
    let masked: Vec<bool> = (0..7).map(|key| key != 3).collect();
    let bias = (0..7)
        .map(|key| if key == 3 { -1e300 } else { 1e300 })
        .collect();
    let mut case = Case::new(PRIMES);
    case.mask.masked = Some(Broadcast::new(&masked, [1, 1, 1, 7]).unwrap());
    case.bias = Some((bias, [1, 1, 1, 7]));
    let forward = case.forward();
    for (index, &weight) in forward.weights.iter().enumerate() {
        assert_eq!(weight, if index % 7 == 3 { 1.0 } else { 0.0 });
    }
}
