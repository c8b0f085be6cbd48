//! Training on several replicas is training on one.

use super::*;
use crate::state::CurvePoint;

fn curve(replicas: usize, dropout: f64) -> Vec<CurvePoint> {
    let out = tempfile::tempdir().unwrap();
    let config = config(4, Schedule::Cosine);
    let mut trainer = start_with(
        RunConfig {
            model: config.model.clone().with_dropout(dropout),
            replicas,
            ..config
        },
        out.path(),
    );
    let outcome = trainer.run(&|_| false, &Progress::silent()).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    trainer.state.curve
}

#[test]
fn replicas_follow_one_model() {
    let _turn = turn();
    let expected = curve(1, 0.0);
    assert_eq!(expected.last().unwrap().step, 20);
    // Batches of 7: some are of 4 samples, which 5 replicas cannot share.
    for replicas in [2, 3, 5] {
        let actual = curve(replicas, 0.0);
        assert_eq!(expected.len(), actual.len());
        for (expected, actual) in expected.iter().zip(&actual) {
            for (expected, actual) in [
                (expected.train, actual.train),
                (expected.validation, actual.validation),
            ] {
                let error = (expected - actual).abs();
                assert!(
                    error <= 1e-4,
                    "{actual} instead of {expected} on {replicas} replicas"
                );
            }
        }
    }
}

#[test]
fn replicas_repeat_a_run_with_dropout() {
    let _turn = turn();
    let first = curve(2, 0.2);
    assert_eq!(first, curve(2, 0.2));
    assert_ne!(first, curve(2, 0.0));
}
