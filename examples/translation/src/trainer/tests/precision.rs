//! Training in bf16.

use super::*;
use crate::precision::Precision;

fn curve(precision: Precision, stop: Option<usize>) -> Vec<CurvePoint> {
    let out = tempfile::tempdir().unwrap();
    let config = RunConfig {
        replicas: 2,
        ..config(3, Schedule::Cosine)
    };
    let config = trained_as(config, |recipe| recipe.precision = precision);
    let mut trainer = start_on(&Device::flex(), config, out.path());
    if let Some(step) = stop {
        stopped_at(step, trainer);
        trainer = resume_on(&Device::flex(), out.path());
    }
    finished(trainer).training.state.curve
}

#[test]
fn the_losses_of_bf16_are_near_those_of_f32() {
    let _turn = turn();
    let [wide, half] = [Precision::F32, Precision::Bf16].map(|precision| curve(precision, None));
    assert_eq!(wide.len(), half.len());
    for (wide, half) in losses(&wide).iter().zip(losses(&half)) {
        let apart = (half / wide - 1.0).abs();
        assert!(apart > 0.0 && apart < 0.01, "{half} instead of {wide}");
    }
}

#[test]
fn a_resumed_run_in_bf16_has_the_curve_of_an_uninterrupted_one() {
    let _turn = turn();
    let whole = curve(Precision::Bf16, None);
    assert_eq!(curve(Precision::Bf16, Some(7)), whole);
}
