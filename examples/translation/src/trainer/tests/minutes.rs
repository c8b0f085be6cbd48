//! Runs of `--minutes`: they become steps once, whatever the speed of the machine.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::minutes::DECIDED_AFTER;

#[test]
fn minutes_may_end_in_the_step_in_which_a_checkpoint_is_due() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    // Every step is longer than the five minutes between two checkpoints; the second ends the run.
    let mut trainer = start_minutes(10.0, 301.0, out.path());
    assert_eq!(
        trainer.run(&|_| false, &Progress::silent()).unwrap(),
        Outcome::Finished
    );
    let newest = checkpoint::newest(out.path()).unwrap().unwrap();
    let stored = Checkpoint::read(&newest).unwrap().state;
    assert!(stored.finished);
    assert_eq!((stored.step, stored.curve.len()), (2, 1));
}

#[test]
fn minutes_that_ended_with_ctrl_c_are_over() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let stopped = start_minutes(10.0, 301.0, out.path())
        .run(&stop_at(2), &Progress::silent())
        .unwrap();
    assert_eq!(
        stopped,
        Outcome::Interrupted("epoch-0000-step-000002".into())
    );
    let mut trainer = resume_ticking(301.0, out.path());
    trainer.run(&|_| false, &Progress::silent()).unwrap();
    assert_eq!((trainer.state.step, trainer.state.curve.len()), (2, 1));
    assert_eq!(
        checkpoint::list(out.path()).unwrap(),
        [out.path().join("epoch-0000-step-000002-again-1")]
    );
}

#[test]
fn a_run_of_minutes_has_one_curve_however_often_it_is_stopped_and_however_fast_the_machine_becomes()
{
    let _turn = turn();
    let progress = Progress::silent();
    let straight = tempfile::tempdir().unwrap();
    let mut whole = start_minutes(8.0, 6.0, straight.path());
    assert_eq!(whole.run(&|_| false, &progress).unwrap(), Outcome::Finished);
    let seconds = whole.state.seconds;
    assert!((seconds - 480.0).abs() < 48.0, "{seconds} s of 480 s");

    // Stopped before the steps are decided, and after; the last part is on a machine that is half as fast.
    let pieces = tempfile::tempdir().unwrap();
    start_minutes(8.0, 6.0, pieces.path())
        .run(&stop_at(23), &progress)
        .unwrap();
    resume_ticking(6.0, pieces.path())
        .run(&stop_at(58), &progress)
        .unwrap();
    let mut last = resume_ticking(12.0, pieces.path());
    assert_eq!(last.run(&|_| false, &progress).unwrap(), Outcome::Finished);
    assert_eq!(last.state.curve, whole.state.curve);
}

#[test]
fn a_run_of_minutes_is_repeated_by_its_steps() {
    let _turn = turn();
    let printed = Rc::new(RefCell::new(Vec::<String>::new()));
    let lines = Rc::clone(&printed);
    let progress = Progress::lines_to(move |line| lines.borrow_mut().push(line.into()));
    let out = tempfile::tempdir().unwrap();
    let mut timed = start_minutes(8.0, 6.0, out.path());
    timed.run(&|_| false, &progress).unwrap();
    let newest = checkpoint::newest(out.path()).unwrap().unwrap();
    let stored = Checkpoint::read(&newest).unwrap().config;
    let steps = stored.steps.unwrap();
    assert_eq!(timed.state.step, steps);
    let told = format!(
        "8 min is {steps} steps at this speed; to repeat this run exactly, use --steps {steps} "
    );
    let found = printed
        .borrow()
        .iter()
        .filter(|line| line.starts_with(&told))
        .count();
    assert_eq!(found, 1, "{:?}", printed.borrow());

    let out = tempfile::tempdir().unwrap();
    let mut counted = start_minutes(8.0, 17.0, out.path());
    (counted.config.minutes, counted.config.steps) = (None, Some(steps));
    counted.run(&|_| false, &Progress::silent()).unwrap();
    assert_eq!(counted.state.curve, timed.state.curve);
}

#[test]
fn the_number_of_steps_is_stored_as_soon_as_it_is_decided() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start_minutes(8.0, 1.0, out.path());
    trainer
        .run(
            &|state| {
                // A kill after the next step.
                state.step == DECIDED_AFTER + 1 && checkpoint_has_steps(out.path())
            },
            &Progress::silent(),
        )
        .unwrap();
    assert_eq!(trainer.state.step, DECIDED_AFTER + 1);
}

/// Whether the newest checkpoint knows how long its run is.
fn checkpoint_has_steps(out: &Path) -> bool {
    let newest = checkpoint::newest(out).unwrap().unwrap();
    Checkpoint::read(&newest).unwrap().config.steps.is_some()
}

#[test]
fn other_minutes_become_steps_at_the_speed_of_the_machine_that_goes_on() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    start_minutes(8.0, 6.0, out.path())
        .run(&stop_at(63), &Progress::silent())
        .unwrap();
    // 378 s are over; 1 s a step from here on, of which 622 are left of 1000 s.
    let mut other = resume_ticking(1.0, out.path());
    (other.config.minutes, other.config.steps) = (Some(1000.0 / 60.0), None);
    other.state.time_afresh();
    other.run(&stop_at(114), &Progress::silent()).unwrap();
    let steps = other.config.steps.unwrap();
    assert!(steps.abs_diff(63 + 622) < 62, "{steps} steps");
}

#[test]
fn a_run_of_an_older_version_goes_on() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    start_minutes(8.0, 6.0, out.path())
        .run(&stop_at(55), &Progress::silent())
        .unwrap();
    let mut old = resume_ticking(6.0, out.path());
    let without = |value: serde_json::Value, key: &str| {
        let mut value = value;
        value.as_object_mut().unwrap().remove(key).unwrap();
        value
    };
    let config = without(serde_json::to_value(&old.config).unwrap(), "steps");
    let state = without(serde_json::to_value(&old.state).unwrap(), "timings");
    old.config = serde_json::from_value(config).unwrap();
    old.state = serde_json::from_value(state).unwrap();
    assert_eq!((old.config.steps, old.state.timings.len()), (None, 0));
    old.run(&|_| false, &Progress::silent()).unwrap();
    // 55 steps, five whole epochs, took 330 s.
    assert_eq!(old.state.step, 80);
}
