//! Sinks, softcaps and scales at the ends of the range, by every implementation.

use burn::tensor::{DType, Tensor};
use burn_attn::{AttentionOptions, ops::attention_steps};
use burn_attn_tests::{
    compare::{assert_near, numbers},
    devices,
};

use crate::{
    body::Body,
    case::Case,
    oracle::{TOLERANCE_OF_F32, implementations, pairs},
};

/// Every number at its own scale in the logsumexp, which may be as large as a sink.
fn check(case: &Case, bodies: fn(Body) -> bool) {
    for (body, device) in implementations(DType::F32) {
        if !bodies(body) {
            continue;
        }
        for (name, expected, actual) in pairs(case.oracle(), case.run_by(body, &device, DType::F32))
        {
            let what = format!("{name} of '{}' by {body:?} on {device:?}", case.name);
            let size = match name {
                "logsumexp" => 1,
                _ => expected.len(),
            };
            for (actual, expected) in actual.chunks(size).zip(expected.chunks(size)) {
                assert_near(&what, actual, expected, TOLERANCE_OF_F32);
            }
        }
    }
}

#[test]
fn sinks_of_any_size_beside_a_row_that_sees_nothing() {
    let sinks = [f32::MIN, f32::MAX, -2.5e38, -1e12, 1e12, -1e30];
    for sinks in sinks.chunks(3) {
        for len_q in [1, 7] {
            let mut case = Case::new(&format!("sinks {sinks:?}"), [2, 3, 3, len_q, 11, 3, 13]);
            case.sinks = Some(sinks.iter().map(|&sink| sink.into()).collect());
            // The first row of the first head, and all of the second batch item.
            let scores = 2 * 3 * len_q * 11;
            let hidden = (0..scores).map(|at| at < 11 || at >= scores / 2);
            case.masked = Some(([2, 3, len_q, 11], hidden.collect()));
            check(&case, |_| true);
        }
    }
}

#[test]
fn softcaps_of_any_size() {
    for softcap in [
        f64::MAX,
        1e39,
        3e38,
        1e17,
        1e12,
        1e7,
        3e4,
        1e-20,
        2e-39,
        1e-45,
        1e-310,
    ] {
        let mut case = Case::usual(&format!("softcap {softcap:e}"));
        case.softcap = Some(softcap);
        // A score of 0 in every row.
        case.key[..case.problem.dim_qk].fill(0.0);
        // Burn's gradient of the composed body multiplies by the softcap itself.
        check(&case, |body| body != Body::Composed);
    }
}

#[test]
fn softcaps_that_all_scores_exceed() {
    let mut case = Case::usual("ratios of 4 to 5");
    let mut positive = |x: &mut f64| *x = 1.5 + *x / 8.0;
    case.query.iter_mut().for_each(&mut positive);
    case.key.iter_mut().for_each(&mut positive);
    case.scale = Some(1.0 / case.problem.dim_qk as f64);
    case.softcap = Some(0.5);
    // Burn's gradient of the composed body is `1 − tanh²`, which cancels.
    check(&case, |body| body != Body::Composed);
}

#[test]
fn scales_that_f32_does_not_hold() {
    for (scale, of_query, of_key) in [(128, -110, -18), (-140, 115, 25)] {
        let mut case = Case::usual(&format!("scale 2^{scale}"));
        case.scale = Some(2_f64.powi(scale));
        case.query
            .iter_mut()
            .for_each(|x| *x *= 2_f64.powi(of_query));
        case.key.iter_mut().for_each(|x| *x *= 2_f64.powi(of_key));
        // A query of zeros has scores of 0.
        case.query[..case.problem.dim_qk].fill(0.0);
        check(&case, |body| body != Body::Composed);
    }
}

/// The steps of attention with a scale or a softcap that f32 does not hold.
#[test]
fn steps_at_extremes() {
    for (name, device) in devices::cpu() {
        let x = Tensor::<4>::full([1, 1, 2, 4], 2f64.powi(-12), (&device, DType::F32));
        let scaled = |options: AttentionOptions| {
            let steps = attention_steps(x.clone(), x.clone(), options);
            numbers(&steps.scaled)[0]
        };
        let options = AttentionOptions::default().scale(2f64.powi(140));
        assert_eq!(scaled(options), 2f32.powi(118), "{name}");
        let capped = |softcap| scaled(AttentionOptions::default().scale(1.0).softcap(softcap));
        assert_eq!(capped(f64::MAX), 2f32.powi(-22), "{name}");
        assert_eq!(capped(1e-50), 0.0, "{name}");
    }
}
