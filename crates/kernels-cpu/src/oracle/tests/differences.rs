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

/// One of the buffers of a case, if it has it.
type Select<'a> = for<'c> fn(&'c mut Case<'a>) -> Option<&'c mut Vec<f64>>;

/// `(loss(x + h) - loss(x - h)) / 2h` for each element of the buffer that `select` finds.
pub fn differences<'a>(case: &Case<'a>, select: Select<'a>) -> Option<Vec<f64>> {
    // The error of a central difference is about h² + ε/h: smallest near 1e-5.
    const STEP: f64 = 1e-5;
    let mut moved = case.clone();
    let mut differences = Vec::new();
    for (index, original) in select(&mut moved)?.clone().into_iter().enumerate() {
        let mut at = |number| {
            select(&mut moved).unwrap()[index] = number;
            loss(&moved)
        };
        let difference = at(original + STEP) - at(original - STEP);
        at(original);
        differences.push(difference / (2.0 * STEP));
    }
    Some(differences)
}

#[track_caller]
pub fn check<'a>(case: &Case<'a>) {
    let gradients = case.backward();
    let inputs: [(&str, Option<Vec<f64>>, Select<'a>); 7] = [
        ("q", Some(gradients.q), |case| Some(&mut case.q)),
        ("k", Some(gradients.k), |case| Some(&mut case.k)),
        ("v", Some(gradients.v), |case| Some(&mut case.v)),
        ("bias", gradients.bias, |case| {
            Some(&mut case.bias.as_mut()?.0)
        }),
        ("alibi", gradients.alibi, |case| case.alibi.as_mut()),
        ("relative", gradients.relative, |case| {
            Some(&mut case.relative.as_mut()?.0)
        }),
        ("sinks", gradients.sinks, |case| case.sinks.as_mut()),
    ];
    for (name, gradient, select) in inputs {
        let expected = differences(case, select);
        assert_eq!(gradient.is_some(), expected.is_some(), "{name}");
        if let (Some(gradient), Some(expected)) = (gradient, expected) {
            assert_close(name, &gradient, &expected, 2e-8);
        }
    }
}

/// A mask alone, then with everything else on.
#[track_caller]
pub fn check_mask<'a>(problem: Problem, set: impl Fn(&mut Mask<'a>)) {
    for mut case in [Case::new(problem), Case::with_all_options(problem)] {
        set(&mut case.mask);
        check(&case);
    }
}
