//! Runs so small that a test trains them, and what all tests of training need.
//!
//! | file | what it checks |
//! | --- | --- |
//! | `course.rs` | going on, telling how far it is, and ending |
//! | `checkpoints.rs` | which checkpoints there are, and that they are whole |
//! | `on_wgpu.rs` | training on a GPU |
//! | `precision.rs` | training in bf16 |
//! | `replicas.rs` | training on several replicas |

mod checkpoints;
mod course;
#[cfg(feature = "wgpu")]
mod on_wgpu;
#[cfg(feature = "flex")]
mod precision;
mod replicas;

use std::cell::Cell;
use std::time::Duration;

use burn_attn_models::seq2seq::Seq2SeqConfig;
use burn_attn_models::train::{Clock, CurvePoint};

use super::*;
use crate::cli::{Recipe, Schedule, TrainArgs};
use crate::data::Pair;
use crate::run_config::DataConfig;

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
        replicas: 1,
        recipe: Recipe {
            vocabulary: 300,
            seed: 5,
            batch: 7,
            epochs: Some(epochs),
            schedule,
            learning_rate: 1e-2,
            warmup: 5,
            smoothing: 0.1,
            ..TrainArgs::default().recipe
        },
    }
}

/// The configuration with another recipe.
fn trained_as(config: RunConfig, change: impl FnOnce(&mut Recipe)) -> RunConfig {
    let mut config = config;
    change(&mut config.recipe);
    config
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
    let vocabulary = Vocabulary::train(&texts, 300).unwrap();
    config.model.vocab_size = vocabulary.len();
    Trainer::start(config, &split, vocabulary, device, out).unwrap()
}

fn resume(out: &Path) -> Trainer {
    resume_on(&Device::default(), out)
}

fn resume_on(device: &Device, out: &Path) -> Trainer {
    let checkpoint = checkpoint::newest(out).unwrap();
    Trainer::resume(&checkpoint, &split(), device, out).unwrap()
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

/// Trains until so many steps are done, which is before the end.
pub fn stopped_at(step: usize, mut trainer: Trainer) -> Trainer {
    let outcome = trainer.run(|state| state.step == step, &Progress::silent());
    assert!(matches!(outcome.unwrap(), Outcome::Interrupted(_)));
    trainer
}

/// Trains to the end.
fn finished(mut trainer: Trainer) -> Trainer {
    let outcome = trainer.run(|_| false, &Progress::silent());
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    trainer
}

/// Two losses for each point of a curve.
fn losses(curve: &[CurvePoint]) -> Vec<f64> {
    let points = curve.iter();
    points
        .flat_map(|point| [point.train, point.validation])
        .collect()
}
