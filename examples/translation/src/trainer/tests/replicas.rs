//! Training on several replicas is training on one.

use super::*;
use burn_attn_models::train::CurvePoint;

fn on_replicas(replicas: usize, dropout: f64, out: &Path) -> Trainer {
    let config = config(4, Schedule::Cosine);
    let config = RunConfig {
        model: config.model.clone().with_dropout(dropout),
        replicas,
        ..config
    };
    start_with(config, out)
}

fn curve(replicas: usize, dropout: f64) -> Vec<CurvePoint> {
    let out = tempfile::tempdir().unwrap();
    let mut trainer = on_replicas(replicas, dropout, out.path());
    let outcome = trainer.run(|_| false, &Progress::silent()).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    trainer.training.state.curve
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

#[test]
fn a_resumed_run_goes_on_with_the_moments_of_every_optimizer() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let progress = Progress::silent();
    // In the middle of the second epoch, then of the third.
    on_replicas(2, 0.2, out.path())
        .run(stop_at(7), &progress)
        .unwrap();
    let newest = checkpoint::newest(out.path()).unwrap();
    assert_eq!(
        ["optimizer-2", "optimizer-3"].map(|name| newest.part(name).is_ok()),
        [true, false]
    );
    resume(out.path()).run(stop_at(13), &progress).unwrap();
    let mut last = resume(out.path());
    assert_eq!(last.run(|_| false, &progress).unwrap(), Outcome::Finished);
    assert_eq!(last.training.state.curve, curve(2, 0.2));
}
