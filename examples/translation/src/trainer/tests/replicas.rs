//! Training on several replicas is training on one.

use super::*;

fn curve(replicas: usize, dropout: f64) -> Vec<CurvePoint> {
    let out = tempfile::tempdir().unwrap();
    let config = config(4, Schedule::Cosine);
    let config = RunConfig {
        model: config.model.clone().with_dropout(dropout),
        replicas,
        ..config
    };
    let trainer = start_with(config, out.path());
    finished(trainer).training.state.curve
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
        for (expected, actual) in losses(&expected).iter().zip(losses(&actual)) {
            let error = (expected - actual).abs();
            assert!(
                error <= 1e-4,
                "{actual} instead of {expected} on {replicas} replicas"
            );
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
