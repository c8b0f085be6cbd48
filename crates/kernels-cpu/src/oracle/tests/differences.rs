//! The gradients of one case against central differences of its forward.

use super::case::{Case, assert_close};
use crate::{Mask, Problem};

/// What [`Case::backward`] differentiates; hidden rows add nothing.
fn loss(case: &Case<'_>) -> f64 {
    let forward = case.forward();
    let mut loss: f64 = forward
        .output
        .iter()
        .zip(&case.output_gradient)
        .map(|(o, gradient)| o * gradient)
        .sum();
    if let Some(gradient) = &case.logsumexp_gradient {
        for (&logsumexp, gradient) in forward.logsumexp.iter().zip(gradient) {
            if logsumexp != f64::NEG_INFINITY {
                loss += logsumexp * gradient;
            }
        }
    }
    loss
}

/// `(loss(x + h) - loss(x - h)) / 2h` for each element of the buffer that `select` finds.
pub fn differences<'a>(
    case: &Case<'a>,
    select: for<'c> fn(&'c mut Case<'a>) -> &'c mut Vec<f64>,
) -> Vec<f64> {
    // The error of a central difference is about h² + ε/h: smallest near 1e-5.
    const STEP: f64 = 1e-5;
    let mut moved = case.clone();
    (0..select(&mut moved).len())
        .map(|index| {
            let original = select(&mut moved)[index];
            let mut at = |number| {
                select(&mut moved)[index] = number;
                loss(&moved)
            };
            let difference = at(original + STEP) - at(original - STEP);
            at(original);
            difference / (2.0 * STEP)
        })
        .collect()
}

#[track_caller]
pub fn check(case: &Case<'_>) {
    const TOLERANCE: f64 = 2e-8;
    let gradients = case.backward();
    assert_close(
        "q",
        &gradients.q,
        &differences(case, |case| &mut case.q),
        TOLERANCE,
    );
    assert_close(
        "k",
        &gradients.k,
        &differences(case, |case| &mut case.k),
        TOLERANCE,
    );
    assert_close(
        "v",
        &gradients.v,
        &differences(case, |case| &mut case.v),
        TOLERANCE,
    );
    assert_eq!(gradients.bias.is_some(), case.bias.is_some());
    if let Some(bias) = gradients.bias {
        let expected = differences(case, |case| &mut case.bias.as_mut().unwrap().0);
        assert_close("bias", &bias, &expected, TOLERANCE);
    }
    assert_eq!(gradients.alibi.is_some(), case.alibi.is_some());
    if let Some(alibi) = gradients.alibi {
        let expected = differences(case, |case| case.alibi.as_mut().unwrap());
        assert_close("alibi", &alibi, &expected, TOLERANCE);
    }
    assert_eq!(gradients.relative.is_some(), case.relative.is_some());
    if let Some(relative) = gradients.relative {
        let expected = differences(case, |case| &mut case.relative.as_mut().unwrap().0);
        assert_close("relative", &relative, &expected, TOLERANCE);
    }
    assert_eq!(gradients.sinks.is_some(), case.sinks.is_some());
    if let Some(sinks) = gradients.sinks {
        let expected = differences(case, |case| case.sinks.as_mut().unwrap());
        assert_close("sinks", &sinks, &expected, TOLERANCE);
    }
}

/// A mask alone, then with everything else on.
#[track_caller]
pub fn check_mask(problem: Problem, mask: Mask<'_>) {
    check(&Case {
        mask,
        ..Case::new(problem)
    });
    check(&Case {
        mask,
        ..Case::with_all_options(problem)
    });
}
