//! Training on a GPU is the training of the CPU.

#[allow(dead_code, reason = "the suites of `tests` use all of it")]
#[path = "../../../../../tests/src/devices.rs"]
mod devices;

use super::*;

/// Steps that are compared, one an epoch.
const STEPS: usize = 20;

#[test]
fn the_loss_curve_is_that_of_the_cpu() {
    let Some(wgpu) = devices::wgpu() else {
        println!("skipped: no adapter");
        return;
    };
    let _turn = turn();
    let progress = Progress::silent();
    // Backends draw different initial parameters: both runs begin with a checkpoint of the CPU. They draw different dropout of
    // activations too.
    let start = tempfile::tempdir().unwrap();
    let whole_split = trained_as(config(1 + STEPS, Schedule::Cosine), |recipe| {
        recipe.batch = split().train.len();
    });
    let without_dropout = RunConfig {
        model: whole_split.model.clone().with_dropout(0.0),
        ..whole_split
    };
    let outcome = start_on(&devices::any(), without_dropout, start.path())
        .run(stop_at(1), &progress)
        .unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)));
    let checkpoint = checkpoint::newest(start.path()).unwrap();

    let curve = |device: &Device| {
        let out = tempfile::tempdir().unwrap();
        let mut trainer = Trainer::resume(&checkpoint, &split(), device, out.path()).unwrap();
        assert_eq!(
            trainer.run(|_| false, &progress).unwrap(),
            Outcome::Finished
        );
        trainer.training.state.curve
    };
    let (expected, actual) = (curve(&devices::any()), curve(&wgpu));
    // The curves of both have the step that was taken before, or neither has.
    assert!(expected.len() >= STEPS, "{} steps", expected.len());
    assert_eq!(expected.len(), actual.len());
    let learned = expected[0].train - expected.last().unwrap().train;
    assert!(learned > 0.5, "it learns: {learned}");
    for (expected, actual) in expected.iter().zip(&actual) {
        for (expected_loss, actual_loss) in [
            (expected.train, actual.train),
            (expected.validation, actual.validation),
        ] {
            let error = (expected_loss - actual_loss).abs();
            assert!(
                error <= 1e-3,
                "step {}: {actual_loss} instead of {expected_loss}",
                expected.step
            );
        }
    }
}
