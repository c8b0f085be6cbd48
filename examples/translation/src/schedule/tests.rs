//! The rates of single steps.

use super::*;
use crate::cli::TrainArgs;

fn run(schedule: Schedule, warmup: usize, steps: Option<usize>) -> RunConfig {
    let mut config = RunConfig::new(&TrainArgs::default()).unwrap();
    config.recipe = Recipe {
        schedule,
        learning_rate: 0.5,
        warmup,
        steps,
        epochs: steps.is_none().then_some(1_000_000),
        ..config.recipe
    };
    config
}

/// The rates of steps, counted from 1.
fn rates<const N: usize>(config: &RunConfig, steps: [usize; N]) -> [f64; N] {
    steps.map(|step| {
        let mut scheduler = scheduler(config, 100).unwrap();
        (1..step).for_each(|_| drop(scheduler.step()));
        scheduler.step().base()
    })
}

#[track_caller]
fn assert_close<const N: usize>(rates: [f64; N], expected: [f64; N]) {
    for (rate, expected) in rates.into_iter().zip(expected) {
        assert!((rate - expected).abs() < 1e-6, "{rate}, not {expected}");
    }
}

#[test]
fn both_rise_to_the_highest_rate() {
    for schedule in [Schedule::Cosine, Schedule::Noam] {
        let config = run(schedule, 100, None);
        assert_close(rates(&config, [1, 50, 100]), [0.005, 0.25, 0.5]);
    }
}

#[test]
fn noam_falls_with_the_root_and_the_cosine_to_two_percent() {
    let config = run(Schedule::Noam, 100, None);
    assert_close(rates(&config, [400, 10_000]), [0.25, 0.05]);
    let config = run(Schedule::Cosine, 10, Some(250));
    assert_close(rates(&config, [10, 11, 131, 251]), [0.5, 0.5, 0.255, 0.01]);
}

#[test]
fn the_first_end_counts_and_one_that_comes_before_the_cosine_leaves_it_out() {
    let mut config = run(Schedule::Cosine, 10, Some(450));
    config.recipe.epochs = Some(2);
    assert_close(rates(&config, [201]), [0.01]);
    config.recipe.steps = Some(10);
    assert_close(rates(&config, [10]), [0.5]);
}
