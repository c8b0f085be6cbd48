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
    let first = start_on(&devices::any(), without_dropout, start.path());
    stopped_at(1, first);
    let checkpoint = checkpoint::newest(start.path()).unwrap();

    let curve = |device: &Device| {
        let out = tempfile::tempdir().unwrap();
        let trainer = Trainer::resume(&checkpoint, &split(), device, out.path());
        finished(trainer.unwrap()).training.state.curve
    };
    let (expected, actual) = (curve(&devices::any()), curve(&wgpu));
    // The curves of both have the step that was taken before, or neither has.
    assert!(expected.len() >= STEPS, "{} steps", expected.len());
    assert_eq!(expected.len(), actual.len());
    let learned = expected[0].train - expected.last().unwrap().train;
    assert!(learned > 0.5, "it learns: {learned}");
    for (expected, actual) in losses(&expected).iter().zip(losses(&actual)) {
        let error = (expected - actual).abs();
        assert!(error <= 1e-3, "{actual} instead of {expected}");
    }
}
