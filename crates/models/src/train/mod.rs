//! Training: a loop that resumes exactly, batches of tokens, and the steps of the models on them.
//!
//! Take [`Trainer`] to train a model that predicts tokens: a run that was killed at any moment goes on from its newest checkpoint with the loss
//! curve of one that was not. Take burn-train's `SupervisedTraining` for models with other outputs, or for metrics and strategies of Burn's:
//! it saves between epochs alone, and a resumed run has other random numbers and another order of the data.
//!
//! [`LanguageModel`](crate::language_model::LanguageModel) and [`Seq2Seq`](crate::seq2seq::Seq2Seq) implement burn-train's `TrainStep` and
//! `InferenceStep`, which both take, and which are useful in your own loop too:
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use std::{collections::BTreeMap, ops::ControlFlow};
//!
//! use burn::{optim::AdamConfig, tensor::Device};
//! use burn_attn_models::{language_model::LanguageModelConfig, train::*};
//!
//! /// Texts, the last of which is the validation part.
//! struct Texts(Vec<Vec<u32>>);
//!
//! impl TrainingData for Texts {
//!     type Batch = LanguageModelBatch;
//!     fn steps(&self, epoch: usize) -> Vec<Vec<usize>> {
//!         let lengths: Vec<[usize; 1]> = self.0[..self.0.len() - 1].iter().map(|text| [text.len()]).collect();
//!         batches_by_length(&lengths, BatchSize::Samples(2), 1, epoch as u64)
//!     }
//!     fn tokens(&self, sample: usize) -> usize {
//!         self.0[sample].len()
//!     }
//!     fn batch(&self, samples: &[usize], device: &Device) -> LanguageModelBatch {
//!         let texts: Vec<_> = samples.iter().map(|&sample| &self.0[sample]).collect();
//!         LanguageModelBatch::new(&texts, device)
//!     }
//!     fn validation(&self, device: &Device) -> impl Iterator<Item = LanguageModelBatch> {
//!         std::iter::once(LanguageModelBatch::new(&self.0[self.0.len() - 1..], device))
//!     }
//! }
//!
//! let texts = Texts(vec![vec![5, 6, 7, 8], vec![9, 8, 7], vec![5, 6, 7]]);
//! let path = std::env::temp_dir().join(format!("trainer-{}", std::process::id()));
//! std::fs::create_dir_all(&path)?;
//! let begin = || {
//!     let config = TrainerConfig { epochs: Some(50), clip: Some(1.0), ..TrainerConfig::new(&Device::default()) };
//!     let scheduler = warmup_cosine(1e-2, 3, Some(50), 0.0).unwrap();
//!     let folder = CheckpointFolder { path: path.clone(), config: "what determines the run".to_string(), parts: BTreeMap::new() };
//!     let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4);
//!     Trainer::start(folder, config, AdamConfig::new().init(), scheduler, |device| model.init(device))
//! };
//! let stop_at = |step| move |trainer: &Trainer<_, String>, _| -> Result<_, TrainError> {
//!     Ok(if trainer.state.step == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
//! };
//! begin().run(&texts, stop_at(3))?;
//! let mut resumed = begin().resume(&Checkpoint::newest(&path)?)?;
//! assert_eq!(resumed.run(&texts, stop_at(0))?, Outcome::Finished);
//! assert!(resumed.state.curve[49].train < 0.5 * resumed.state.curve[0].train);
//!
//! // The model with the lowest validation loss.
//! let best = Checkpoint::<String>::best(&path)?;
//! let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
//! let model = best.trained(model)?;
//! # std::fs::remove_dir_all(&path)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Several devices
//!
//! A [`Trainer`] with [`Replicas::on`] divides every batch among the devices. With Burn's learner, `ExecutionStrategy::multi` adds up the
//! gradients of the devices. To see the gradients that one device would have, the loss of each device must be divided by the tokens of the batches of all: give every batch their number with
//! [`divided_by`](TokenBatch::divided_by). `ExecutionStrategy::ddp` with `ReduceOperation::Mean` takes the mean, so there
//! each batch is divided by its own, which is the default; that is exact if all of them have as many tokens, and otherwise gives the tokens of
//! small ones more weight.
//!
//! # Dropout
//!
//! A step draws its dropout from a stream of seeds that its tokens determine, together with the batch's
//! [`seed`](TokenBatch::seed). So devices drop different numbers, in whatever order they work. The same batch drops the same
//! numbers each time, unless it is given another `seed`. This is so for all dropout on flex and ndarray, and for that of attention weights
//! everywhere; elsewhere, the other layers draw from Burn's generator, which the devices share.
//!
//! On one device or two, such a run repeats to the bit; the gradients of more are added up in the order in which they arrive.
//!
//! # Half precision
//!
//! [`MixedPrecision`] takes the steps of a model in bf16 and keeps its weights in f32; its page says what that costs and how close it is.
//!
//! # Memory of glibc
//!
//! Under Linux, glibc returns freed tensors to the system, and the next step pays for their pages again. With
//! `MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=18446744073709551615` in the environment it keeps them: after
//! `cargo build --release -p tiny`, `target/release/tiny` then takes 0.8 of the time. The other examples that train set this themselves.
//!
//! # Metrics
//!
//! The loss that metrics see is the mean over the tokens of a batch, smoothed in training if the batch says so; `LossMetric` gives all
//! batches the same weight. `AccuracyMetric` and `PerplexityMetric` also count padding, unless `with_pad_token(0)` makes them leave out
//! token 0. They get logits in f32, also those of a step in half precision.

mod average;
mod batch;
mod by_length;
mod checkpoint;
mod clip;
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
pub use batch::{LanguageModelBatch, Seq2SeqBatch, Targets, TokenBatch};
pub use by_length::{BatchSize, batches_by_length};
pub use checkpoint::{
    BEST_CHECKPOINT, Checkpoint, CheckpointFolder, NEWEST_CHECKPOINT, TrainError,
};
pub use clip::clip_by_global_norm;
pub use mixed_precision::MixedPrecision;
pub use replicas::Replicas;
pub use schedule::warmup_cosine;
pub use state::{Accuracy, CurvePoint, State};
pub use trainer::{Clock, Trainer};
pub use trainer_config::{AVERAGE_EVERY, Event, Outcome, TrainerConfig, TrainingData, last_step};
