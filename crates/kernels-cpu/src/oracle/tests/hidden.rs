//! Hidden keys and rows: they change no result, and NaN in them does not spread.

use super::case::{Case, PRIMES, TALL};
use crate::{Broadcast, CausalAlignment, Problem, RelativeBuckets, Window};

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

fn are_zero(numbers: &[f64]) -> bool {
    numbers.iter().all(|&number| number == 0.0)
}

#[test]
fn rows_without_a_visible_key_are_zero_and_take_no_gradient() {
    // Bottom-right with 7 queries and 5 keys: the first two rows of every head see nothing.
    // No dropout: it can drop the only key of a row, whose output then is 0 although the row is not hidden.
    let mut case = Case {
        sinks: None,
        dropout: None,
        ..Case::with_all_options(TALL)
    };
    case.mask.by_position.causal = Some(CausalAlignment::BottomRight);
    let forward = case.forward();
    let clean = all(&case);
    for row in 0..TALL.query_rows() {
        let hidden = row % 7 < 2;
        assert_eq!(forward.logsumexp[row] == f64::NEG_INFINITY, hidden);
        assert_eq!(are_zero(&forward.output[row * 13..][..13]), hidden);
        if hidden {
            assert!(are_zero(&forward.weights[row * 5..][..5]));
            assert!(are_zero(&case.backward().q[row * 11..][..11]));
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
    let mut case = Case::with_all_options(PRIMES);
    case.mask.masked = Some(Broadcast::new(&[true], [1; 4]).unwrap());
    let (forward, gradients) = (case.forward(), case.backward());
    let (sinks, arriving) = (
        case.sinks.clone().unwrap(),
        case.logsumexp_gradient.clone().unwrap(),
    );
    assert!(are_zero(&forward.output));
    let mut expected = vec![0.0; 6];
    for row in 0..PRIMES.query_rows() {
        assert_eq!(forward.logsumexp[row], sinks[row / 5 % 6]);
        expected[row / 5 % 6] += arriving[row];
    }
    assert_eq!(gradients.sinks.unwrap(), expected);
    assert!(are_zero(&gradients.q) && are_zero(&gradients.k));
    // A sink of −∞ is no sink.
    case.sinks = Some(vec![f64::NEG_INFINITY; 6]);
    assert_eq!(case.forward().logsumexp, [f64::NEG_INFINITY; 60]);
    case.logsumexp_gradient.as_mut().unwrap().fill(f64::NAN);
    assert!(are_zero(&all(&case)));
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
    assert!(are_zero(&all(&case)));
    for problem in [
        Problem { len_q: 0, ..PRIMES },
        Problem { batch: 0, ..PRIMES },
    ] {
        let case = Case::with_all_options(problem);
        assert!(case.forward().output.is_empty());
        assert!(are_zero(&all(&case)));
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
    let mut hidden = Case::with_all_options(PRIMES);
    hidden.relative = Some((vec![0.25; 24], buckets));
    let mut windowed = hidden.clone();
    windowed.mask.by_position.window = Some(Window {
        left: Some(3),
        right: None,
    });
    let (table, _) = hidden.relative.as_mut().unwrap();
    table[18..].fill(f64::NEG_INFINITY);
    assert_eq!(hidden.forward(), windowed.forward());
    assert_eq!(all(&hidden), all(&windowed));
    assert_eq!(hidden.backward().relative.unwrap()[18..], [0.0; 6]);
}

#[test]
fn nan_that_a_query_sees_is_not_hidden_from_the_caller() {
    let mut case = Case::masked_by(PRIMES, |mask| {
        mask.by_position.window = Some(Window {
            left: Some(0),
            right: Some(0),
        });
    });
    for head in 0..3 {
        let row = PRIMES.key_row(1, head, 4);
        case.k[row * 11..][..11].fill(f64::NAN);
        case.v[row * 13..][..13].fill(f64::NAN);
    }
    let forward = case.forward();
    // Position 4 is query 2, and with this window no other query sees key 4.
    for row in 0..PRIMES.query_rows() {
        let sees = row / 5 / 6 == 1 && row % 5 == 2;
        assert_eq!(forward.logsumexp[row].is_nan(), sees);
        let output = &forward.output[row * 13..][..13];
        assert_eq!(output.iter().all(|output| output.is_nan()), sees);
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
