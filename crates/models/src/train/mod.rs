#![doc = include_str!("train.md")]

mod average;
mod batch;
mod by_length;
mod checkpoint;
mod clip;
mod detection;
mod hash;
mod mixed_precision;
mod replicas;
mod schedule;
mod shares;
mod state;
mod step;
mod trainer;
mod trainer_config;

pub use average::MovingAverage;
pub use batch::{ImageBatch, LanguageModelBatch, Seq2SeqBatch, Targets, TokenBatch};
pub use by_length::{BatchSize, batches_by_length};
pub use checkpoint::{
    BEST_CHECKPOINT, Checkpoint, CheckpointFolder, NEWEST_CHECKPOINT, TrainError,
};
pub use clip::clip_by_global_norm;
pub use detection::{DetectionBatch, Predictions};
pub use mixed_precision::MixedPrecision;
pub use replicas::Replicas;
pub use schedule::warmup_cosine;
pub use state::{Accuracy, CurvePoint, State};
pub use trainer::{Clock, Trainer};
pub use trainer_config::{AVERAGE_EVERY, Event, Outcome, TrainerConfig, TrainingData, last_step};
