//! Captured tensors have to fit, and a form is asked only about pairs of the call.

use burn_attn_kernels_cpu::{
    Broadcast, InputError, Problem,
    tiled::{
        Captured, Element, Execution, Gradients, Inputs, Looped, Number, Pair, Rows, RowsMut,
        ScoreForm, ScoreFunction, Upstream, VisibleForm, VisibleFunction, backward, forward,
    },
};

use half::{bf16, f16};

use crate::{case::coarse, run::executions};

const PROBLEM: Problem = Problem {
    batch: 1,
    heads_q: 2,
    heads_kv: 1,
    len_q: 3,
    len_kv: 5,
    dim_qk: 2,
    dim_v: 2,
};

struct Factor;

impl ScoreForm<1> for Factor {
    fn score<R: Number>(&self, score: R, _: Pair, [factor]: [R; 1]) -> R {
        score * factor
    }

    fn derivatives<R: Number>(&self, score: R, _: Pair, [factor]: [R; 1]) -> (R, [R; 1]) {
        (factor, [score])
    }
}

struct Equal;

impl VisibleForm<1> for Equal {
    fn visible(&self, pair: Pair, [id]: [i64; 1]) -> bool {
        i64::from(pair.key) == id
    }
}

/// One captured tensor of this shape.
fn pairs(numbers: &[f32], shape: [usize; 4]) -> [Captured<'_, f32>; 1] {
    [Captured::Pairs(Broadcast::new(numbers, shape).unwrap())]
}

fn inputs() -> Inputs<'static, f32> {
    Inputs::new(PROBLEM, &[0.5; 12], &[0.25; 10], &[1.0; 10])
}

/// The error of a forward pass with these inputs.
fn refused(inputs: Inputs<'_, f32>) -> String {
    let (mut output, mut logsumexp) = ([0.0; 12], [0.0; 6]);
    let output = RowsMut::contiguous(&mut output, 2, 3, 2);
    let result = forward(&inputs, output, &mut logsumexp, Execution::sequential());
    result.expect_err("it does not fit").to_string()
}

#[test]
fn captured_numbers_that_do_not_fit() {
    let factor = Looped::<_, 1>(Factor);
    let of_heads = pairs(&[1.0; 3], [1, 3, 1, 1]);
    let of_pairs = pairs(&[1.0; 15], [1, 1, 3, 5]);
    let score = |captured| Inputs {
        score_function: Some(ScoreFunction {
            form: &factor,
            captured,
        }),
        ..inputs()
    };
    let sizes = format!("{PROBLEM:?}");
    assert_eq!(
        refused(score(&[])),
        format!("what the score function has captured needs 1 elements for {sizes}, but has 0")
    );
    assert_eq!(
        refused(score(&[Captured::Distances(&[0.0; 13])])),
        format!("captured distances needs 14 elements for {sizes}, but has 13")
    );
    assert_eq!(
        refused(score(&of_heads)),
        "captured tensor 0 of the score function does not fit: shape [1, 3, 1, 1] does not broadcast to [batch, heads_q, len_q, len_kv] = [1, 2, 3, 5]"
    );
    assert_eq!(
        refused(score(&of_pairs)),
        "captured tensor 0 of the score function has shape [1, 1, 3, 5], but must not vary along both queries and keys"
    );
    let equal = Looped::<_, 1>(Equal);
    let of_queries = [Broadcast::new(&[1; 4], [1, 1, 4, 1]).unwrap()];
    let visible = |captured| Inputs {
        visible_function: Some(VisibleFunction {
            form: &equal,
            captured,
            whole: None,
        }),
        ..inputs()
    };
    assert_eq!(
        refused(visible(&[])),
        format!("what the visible function has captured needs 1 elements for {sizes}, but has 0")
    );
    assert_eq!(
        refused(visible(&of_queries)),
        "captured tensor 0 of the visible function does not fit: shape [1, 1, 4, 1] does not broadcast to [batch, heads_q, len_q, len_kv] = [1, 2, 3, 5]"
    );
}

/// Panics if it is asked about a pair that is not in the call, or gets the captured number of another pair.
struct Strict;

impl Strict {
    fn check<R: Number>(pair: Pair, captured: R) {
        let indices = [pair.head, pair.query, pair.key];
        let sizes = [PROBLEM.heads_q, PROBLEM.len_q, PROBLEM.len_kv];
        assert!(
            indices
                .iter()
                .zip(sizes)
                .all(|(&index, size)| (0..size as i32).contains(&index))
        );
        assert!(captured == R::from_i32(1 + pair.key));
    }
}

impl ScoreForm<1> for Strict {
    fn score<R: Number>(&self, score: R, pair: Pair, [of_key]: [R; 1]) -> R {
        Self::check(pair, of_key);
        score
    }

    fn derivatives<R: Number>(&self, _: R, pair: Pair, [of_key]: [R; 1]) -> (R, [R; 1]) {
        Self::check(pair, of_key);
        (R::constant(1.0), [R::constant(0.0)])
    }
}

impl VisibleForm<1> for Strict {
    fn visible(&self, pair: Pair, [of_key]: [i64; 1]) -> bool {
        assert_eq!(of_key, i64::from(1 + pair.key));
        true
    }
}

#[test]
fn forms_are_asked_about_pairs_of_the_call_only() {
    let strict = Looped::<_, 1>(Strict);
    let captured = pairs(&[1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 1, 5]);
    let integers = [Broadcast::new(&[1, 2, 3, 4, 5], [1, 1, 1, 5]).unwrap()];
    let inputs = Inputs {
        score_function: Some(ScoreFunction {
            form: &strict,
            captured: &captured,
        }),
        visible_function: Some(VisibleFunction {
            form: &strict,
            captured: &integers,
            whole: None,
        }),
        ..inputs()
    };
    // Without vectors, the last of three queries is a panel of its own.
    for execution in executions(&[1]) {
        let (mut output, mut logsumexp) = ([0.0; 12], [0.0; 6]);
        let rows = RowsMut::contiguous(&mut output, 2, 3, 2);
        forward(&inputs, rows, &mut logsumexp, execution).unwrap();
        let upstream = Upstream {
            output: Rows::contiguous(&output, 2, 3, 2),
            logsumexp: &logsumexp,
            output_gradient: Rows::contiguous(&[1.0; 12], 2, 3, 2),
            logsumexp_gradient: None,
        };
        let (mut q, mut of_keys) = ([0.0; 12], [0.0; 5]);
        let gradients = Gradients {
            q: Some(RowsMut::contiguous(&mut q, 2, 3, 2)),
            captured: Some(&mut of_keys),
            ..Gradients::default()
        };
        backward(&inputs, &upstream, gradients, execution).unwrap();
        // One query is one line along its keys.
        let problem = Problem {
            len_q: 1,
            ..PROBLEM
        };
        let one = Inputs {
            problem,
            q: Rows::contiguous(&[0.5; 4], 2, 1, 2),
            ..inputs
        };
        let rows = RowsMut::contiguous(&mut output[..4], 2, 1, 2);
        forward(&one, rows, &mut logsumexp[..2], execution).unwrap();
    }
}

#[test]
fn a_gradient_of_captured_numbers_that_does_not_fit() {
    let factor = Looped::<_, 1>(Factor);
    let of_heads = pairs(&[1.0; 2], [1, 2, 1, 1]);
    let inputs = Inputs {
        score_function: Some(ScoreFunction {
            form: &factor,
            captured: &of_heads,
        }),
        ..inputs()
    };
    let rows = Rows::contiguous(&[0.0; 12], 2, 3, 2);
    let upstream = Upstream {
        output: rows,
        logsumexp: &[0.0; 6],
        output_gradient: rows,
        logsumexp_gradient: None,
    };
    let mut few = [0.0];
    let gradients = Gradients {
        captured: Some(&mut few),
        ..Gradients::default()
    };
    let error = backward(&inputs, &upstream, gradients, Execution::sequential());
    let expected = InputError::Length {
        name: "gradient of what is captured",
        expected: 2,
        actual: 1,
        problem: PROBLEM,
    };
    assert_eq!(error, Err(expected));
}

/// The gradient of a captured factor for each of two heads, from numbers that all types hold.
fn gradient<T: Element<Real = f32>>(len_q: usize, of: fn(f64) -> T) -> [f32; 2] {
    let problem = Problem {
        len_q,
        len_kv: 90,
        dim_v: 24,
        ..PROBLEM
    };
    let numbers = |seed, count| -> Vec<T> { coarse(seed, count).into_iter().map(of).collect() };
    let (q, k, v) = (numbers(1, 4 * len_q), numbers(2, 180), numbers(3, 90 * 24));
    let captured = pairs(&[4.0, -3.0], [1, 2, 1, 1]);
    let inputs = Inputs {
        score_function: Some(ScoreFunction {
            form: &Looped::<_, 1>(Factor),
            captured: &captured,
        }),
        ..Inputs::new(problem, &q, &k, &v)
    };
    let size = 2 * len_q * 24;
    let output_gradient = numbers(4, size);
    let (mut output, mut logsumexp) = (vec![of(0.0); size], vec![0.0; 2 * len_q]);
    let rows = RowsMut::contiguous(&mut output, 2, len_q, 24);
    forward(&inputs, rows, &mut logsumexp, Execution::sequential()).unwrap();
    let upstream = Upstream {
        output: Rows::contiguous(&output, 2, len_q, 24),
        logsumexp: &logsumexp,
        output_gradient: Rows::contiguous(&output_gradient, 2, len_q, 24),
        logsumexp_gradient: None,
    };
    let mut of_heads = [0.0; 2];
    let gradients = Gradients {
        captured: Some(&mut of_heads),
        ..Gradients::default()
    };
    backward(&inputs, &upstream, gradients, Execution::sequential()).unwrap();
    of_heads
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn gradients_of_captured_numbers_in_half_precision() {
    for len_q in [1, 70] {
        let exact = gradient(len_q, |x| x as f32);
        for found in [
            gradient(len_q, f16::from_f64),
            gradient(len_q, bf16::from_f64),
        ] {
            for (found, exact) in found.iter().zip(exact) {
                let error = (found / exact - 1.0).abs();
                assert!(error < 1e-4, "{found} instead of {exact}");
            }
        }
    }
}
