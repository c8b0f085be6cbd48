//! The course of a run: it goes on where it stopped, says how far it is, and ends where it should.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

#[test]
fn a_resumed_run_has_the_curve_of_an_uninterrupted_one() {
    check_curve_of_resumed_run(&config(4, Schedule::Cosine));
}

#[test]
fn so_has_one_with_replicas_an_average_and_batches_of_tokens() {
    let config = RunConfig {
        replicas: 2,
        ..config(4, Schedule::Noam)
    };
    check_curve_of_resumed_run(&trained_as(config, |recipe| {
        (recipe.average, recipe.batch_tokens) = (Some(20), Some(70));
    }));
}

fn check_curve_of_resumed_run(config: &RunConfig) {
    let _turn = turn();
    let straight = tempfile::tempdir().unwrap();
    let whole = finished(start_with(config.clone(), straight.path()));
    let whole = whole.training.state;
    let curve = &whole.curve;
    assert_eq!(curve.len(), 4);
    assert!(curve[3].train < curve[0].train, "it learns: {curve:?}");

    // Stopped after 2 epochs, then again in the middle of the fourth.
    let pieces = tempfile::tempdir().unwrap();
    let steps = whole.step / 4;
    stopped_at(2 * steps, start_with(config.clone(), pieces.path()));
    // Each replica has an optimizer with its moments.
    let newest = checkpoint::newest(pieces.path()).unwrap();
    let is_there = |number: &usize| newest.part(&format!("optimizer-{number}")).is_ok();
    assert_eq!((1..).take_while(is_there).count(), config.replicas);
    let second = stopped_at(3 * steps + 2, resume(pieces.path()));
    assert_eq!(second.training.state.name(), "epoch-0003-step-000002");
    let last = finished(resume(pieces.path())).training;
    assert_eq!(last.state.curve, whole.curve);
    assert_eq!(last.average().is_some(), config.recipe.average.is_some());
}

#[test]
fn an_interruption_during_a_validation_stops_after_it() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let measured = |epoch| move |state: &State| state.curve.len() == epoch;
    for (epoch, finished) in [(1, false), (2, true)] {
        let mut trainer = match epoch {
            1 => start(2, out.path()),
            _ => resume(out.path()),
        };
        let outcome = trainer.run(measured(epoch), &Progress::silent());
        let name = format!("epoch-000{epoch}");
        assert_eq!(outcome.unwrap(), Outcome::Interrupted(name));
        // What was measured is kept, and not a step was made after it.
        let stored = checkpoint::newest(out.path()).unwrap().state;
        assert_eq!(
            (stored.step, stored.finished),
            (stored.curve[epoch - 1].step, finished)
        );
    }
}

#[test]
fn epochs_without_end_overflow_nothing() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(usize::MAX, out.path());
    // The time that is left is told after the first epoch.
    trainer
        .run(|state| state.epoch == 1, &Progress::silent())
        .unwrap();
    assert!(trainer.training.seconds_left().unwrap() > 1e9);
}

#[test]
fn a_validation_loss_that_is_no_number_ends_the_run() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    // One step: its loss is measured before the update that destroys the model.
    let too_fast = trained_as(config(1, Schedule::Noam), |recipe| {
        (recipe.batch, recipe.warmup) = (32, 1);
        recipe.learning_rate = 1e38;
    });
    let mut trainer = start_with(too_fast, out.path());
    let error = trainer.run(|_| false, &Progress::silent()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the validation loss is NaN by step 1: training has diverged; try a lower --learning-rate than \
         100000000000000000000000000000000000000"
    );
    assert!(!checkpoint::exists(out.path()));
}

#[test]
fn without_a_terminal_a_long_epoch_prints_a_line_every_half_minute() {
    let _turn = turn();
    let printed = Rc::new(RefCell::new(Vec::<String>::new()));
    let lines = Rc::clone(&printed);
    let progress = Progress::lines_to(move |line| lines.borrow_mut().push(line.into()));
    let out = tempfile::tempdir().unwrap();
    let one_by_one = trained_as(config(1, Schedule::Cosine), |recipe| recipe.batch = 1);
    let mut trainer = start_with(one_by_one, out.path());
    // Besides the step, the time is read to show it and to save it: 4 readings.
    trainer.training.clock = ticking(1.0);
    trainer.run(|_| false, &progress).unwrap();
    let steps: Vec<usize> = printed
        .borrow()
        .iter()
        .filter_map(|line| {
            line.strip_prefix("epoch 1/1, step ")?
                .split_once(" of 32: ")
        })
        .map(|(step, figures)| {
            let step = step.parse().unwrap();
            // The first loss is read after ten steps.
            assert_eq!(figures.starts_with("loss "), step >= 10, "{figures}");
            step
        })
        .collect();
    assert_eq!(steps, [9, 17, 25]);
}
