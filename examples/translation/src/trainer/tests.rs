#[cfg(feature = "wgpu")]
mod on_wgpu;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use crate::data::Pair;
use crate::run_config::DataConfig;
use crate::schedule::Schedule;
use burn_attn_models::seq2seq::Seq2SeqConfig;

/// A corpus that is small, but not so small that an epoch is one batch.
fn split() -> Split {
    let words = ["uno", "dos", "tres", "cuatro", "cinco"];
    let pairs = (0..40).map(|i| {
        let picked: Vec<&str> = (0..1 + i % 4)
            .map(|j| words[(i * 3 + j * j) % words.len()])
            .collect();
        Pair {
            source: format!("{i} {}", picked.join(" ")),
            target: picked.iter().rev().copied().collect::<Vec<_>>().join(" "),
        }
    });
    let mut train: Vec<Pair> = pairs.collect();
    let validation = train.split_off(32);
    Split {
        train,
        validation,
        ..Split::default()
    }
}

fn config(epochs: usize, schedule: Schedule) -> RunConfig {
    RunConfig {
        data: DataConfig {
            file: None,
            held_out: 8,
            fingerprint: String::new(),
        },
        model: Seq2SeqConfig::new(300)
            .with_d_model(12)
            .with_n_heads(3)
            .with_n_encoder_layers(1)
            .with_n_decoder_layers(1)
            .with_d_ff(20)
            .with_dropout(0.2)
            .with_max_len(40),
        vocabulary: 300,
        seed: 5,
        batch: 7,
        epochs: Some(epochs),
        minutes: None,
        steps: None,
        schedule,
        learning_rate: 1e-2,
        warmup: 5,
        smoothing: 0.1,
        clip: 1.0,
    }
}

fn start(epochs: usize, out: &Path) -> Trainer {
    start_with(config(epochs, Schedule::Cosine), out)
}

fn start_with(config: RunConfig, out: &Path) -> Trainer {
    start_on(&Device::default(), config, out)
}

fn start_on(device: &Device, mut config: RunConfig, out: &Path) -> Trainer {
    let split = split();
    let texts: Vec<&str> = split
        .train
        .iter()
        .flat_map(|pair| [pair.source.as_str(), pair.target.as_str()])
        .collect();
    let vocabulary = Vocabulary::train(texts.into_iter(), 300).unwrap();
    config.model.vocab_size = vocabulary.len();
    Trainer::start(config, &split, vocabulary, device, out).unwrap()
}

fn resume(out: &Path) -> Trainer {
    let checkpoint = Checkpoint::read(&checkpoint::newest(out).unwrap().unwrap()).unwrap();
    Trainer::resume(&checkpoint, &split(), &Device::default(), out).unwrap()
}

/// Burn's generators and the stream of attention dropout belong to the process: runs that must be repeatable take turns.
pub fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A clock that every reading moves on by `tick` seconds: between its two readings, a step takes one tick.
fn ticking(tick: f64) -> Clock {
    let now = Cell::new(Duration::ZERO);
    Box::new(move || {
        now.set(now.get() + Duration::from_secs_f64(tick));
        now.get()
    })
}

/// A run of so many minutes, of which a step takes `tick` seconds; 11 steps are an epoch.
fn start_minutes(minutes: f64, tick: f64, out: &Path) -> Trainer {
    let mut trainer = start_with(
        RunConfig {
            epochs: None,
            minutes: Some(minutes),
            batch: 3,
            ..config(1, Schedule::Cosine)
        },
        out,
    );
    trainer.clock = ticking(tick);
    trainer
}

fn resume_ticking(tick: f64, out: &Path) -> Trainer {
    let mut trainer = resume(out);
    trainer.clock = ticking(tick);
    trainer
}

fn stop_at(step: usize) -> impl Fn(&State) -> bool {
    move |state| state.step == step
}

#[test]
fn a_resumed_run_has_the_curve_of_an_uninterrupted_one() {
    let _turn = turn();
    let progress = Progress::silent();
    let straight = tempfile::tempdir().unwrap();
    let mut whole = start(4, straight.path());
    assert_eq!(whole.run(&|_| false, &progress).unwrap(), Outcome::Finished);
    assert_eq!(whole.state.curve.len(), 4);
    assert!(
        whole.state.curve[3].train < whole.state.curve[0].train,
        "it learns: {:?}",
        whole.state.curve
    );

    // Stopped after 2 epochs, then again in the middle of the fourth.
    let pieces = tempfile::tempdir().unwrap();
    let steps = whole.state.step / 4;
    let first = start(4, pieces.path())
        .run(&stop_at(2 * steps), &progress)
        .unwrap();
    assert!(matches!(first, Outcome::Interrupted(_)));
    let second = resume(pieces.path())
        .run(&stop_at(3 * steps + 2), &progress)
        .unwrap();
    assert_eq!(
        second,
        Outcome::Interrupted("epoch-0003-step-000002".into())
    );
    let mut last = resume(pieces.path());
    assert_eq!(last.run(&|_| false, &progress).unwrap(), Outcome::Finished);

    assert_eq!(last.state.curve, whole.state.curve);
}

#[test]
fn an_interruption_during_a_validation_stops_after_it() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let progress = Progress::silent();
    let measured = |epoch| move |state: &State| state.curve.len() == epoch;
    for (epoch, finished) in [(1, false), (2, true)] {
        let mut trainer = match epoch {
            1 => start(2, out.path()),
            _ => resume(out.path()),
        };
        let outcome = trainer.run(&measured(epoch), &progress).unwrap();
        assert_eq!(
            outcome,
            Outcome::Interrupted(format!("epoch-000{epoch}")),
            "in epoch {epoch}"
        );
        // What was measured is kept, and not a step was made after it.
        let newest = checkpoint::newest(out.path()).unwrap().unwrap();
        let stored = Checkpoint::read(&newest).unwrap().state;
        assert_eq!(
            (stored.step, stored.finished),
            (stored.curve[epoch - 1].step, finished)
        );
    }
}

#[test]
fn the_last_and_the_best_checkpoint_are_kept() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(3, out.path());
    trainer.run(&|_| false, &Progress::silent()).unwrap();
    let curve = &trainer.state.curve;
    let best = curve
        .iter()
        .min_by(|a, b| a.validation.total_cmp(&b.validation))
        .unwrap();
    assert_eq!(
        checkpoint::best(out.path()).unwrap(),
        out.path().join(format!("epoch-{:04}", best.epoch))
    );
    assert_eq!(
        checkpoint::newest(out.path()).unwrap().unwrap(),
        out.path().join("epoch-0003")
    );
    let entries = std::fs::read_dir(out.path()).unwrap().count();
    assert_eq!(entries, if best.epoch == 3 { 1 } else { 2 });
}

#[test]
fn a_truncated_checkpoint_is_refused_in_one_sentence() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    start(1, out.path())
        .run(&|_| false, &Progress::silent())
        .unwrap();
    let path = checkpoint::newest(out.path()).unwrap().unwrap();
    for file in [
        "model.bpk",
        "optimizer.bpk",
        "tokenizer.json",
        "config.json",
        "state.json",
    ] {
        let place = path.join(file);
        let whole = std::fs::read(&place).unwrap();
        std::fs::write(&place, &whole[..whole.len() / 2]).unwrap();
        let error = Checkpoint::read(&path).err().unwrap().to_string();
        assert!(
            error.contains(&format!("{file} is not a checkpoint of this program: ")),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
        std::fs::write(&place, &whole).unwrap();
    }
    assert!(Checkpoint::read(&path).is_ok());
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_behind() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer
        .run(&|state| state.step == 3, &Progress::silent())
        .unwrap();
    // A file where the next checkpoint is to be written aside: it cannot become a folder.
    let obstacle = out.path().join(".unfinished-epoch-0001");
    std::fs::write(&obstacle, "in the way").unwrap();
    let error = trainer
        .run(&|_| false, &Progress::silent())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot "), "{error}");
    assert_eq!(
        checkpoint::list(out.path()).unwrap(),
        [out.path().join("epoch-0000-step-000003")]
    );
    Checkpoint::read(&out.path().join("epoch-0000-step-000003")).unwrap();
}

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
fn one_state_can_be_saved_twice() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer.run(&stop_at(3), &Progress::silent()).unwrap();
    let first = out.path().join("epoch-0000-step-000003");
    for again in 1..=11 {
        let name = trainer.save().unwrap();
        let newest = checkpoint::newest(out.path()).unwrap().unwrap();
        assert_eq!(newest, out.path().join(&name), "time {again}");
        Checkpoint::read(&newest).unwrap();
        // A kill would leave the one before as well, whole.
        Checkpoint::read(&first).unwrap();
    }
    checkpoint::tidy(out.path()).unwrap();
    let left = checkpoint::list(out.path()).unwrap();
    assert_eq!(left, [out.path().join("epoch-0000-step-000003-again-11")]);
    // The one that was removed does not make its name free for a newer one.
    assert_eq!(trainer.save().unwrap(), "epoch-0000-step-000003-again-12");
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
    let told = format!("8 min are {steps} steps at this speed: --steps {steps} instead of ");
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
                state.step == minutes::DECIDED_AFTER + 1 && checkpoint_has_steps(out.path())
            },
            &Progress::silent(),
        )
        .unwrap();
    assert_eq!(trainer.state.step, minutes::DECIDED_AFTER + 1);
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
fn epochs_without_end_overflow_nothing() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(usize::MAX, out.path());
    // The time that is left is told after the first epoch.
    trainer
        .run(&|state| state.epoch == 1, &Progress::silent())
        .unwrap();
    assert!(trainer.learning_rate() > 0.0);
    assert!(trainer.seconds_left().unwrap() > 1e9);
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

#[test]
fn a_new_end_that_is_already_over_trains_and_measures_nothing() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start_with(config(3, Schedule::Noam), out.path());
    trainer.run(&|_| false, &Progress::silent()).unwrap();
    let (step, curve) = (trainer.state.step, trainer.state.curve.clone());
    let mut shorter = resume(out.path());
    (shorter.config.epochs, shorter.state.finished) = (Some(2), false);
    assert_eq!(
        shorter.run(&|_| false, &Progress::silent()).unwrap(),
        Outcome::Finished
    );
    assert_eq!((shorter.state.step, &shorter.state.curve), (step, &curve));
}

#[test]
fn a_validation_loss_that_is_no_number_ends_the_run() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    // One step: its loss is measured before the update that destroys the model.
    let mut trainer = start_with(
        RunConfig {
            batch: 32,
            learning_rate: 1e38,
            warmup: 1,
            ..config(1, Schedule::Noam)
        },
        out.path(),
    );
    let error = trainer.run(&|_| false, &Progress::silent()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the validation loss is NaN in step 1: training has diverged, try a lower --learning-rate than \
         100000000000000000000000000000000000000"
    );
    assert!(checkpoint::list(out.path()).unwrap().is_empty());
}

#[test]
fn without_a_terminal_a_long_epoch_prints_a_line_every_half_minute() {
    let _turn = turn();
    let printed = Rc::new(RefCell::new(Vec::<String>::new()));
    let lines = Rc::clone(&printed);
    let progress = Progress::lines_to(move |line| lines.borrow_mut().push(line.into()));
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start_with(
        RunConfig {
            batch: 1,
            ..config(1, Schedule::Cosine)
        },
        out.path(),
    );
    // Besides the step, the time is read to show it and to save it: 4 readings.
    trainer.clock = ticking(1.0);
    trainer.run(&|_| false, &progress).unwrap();
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
