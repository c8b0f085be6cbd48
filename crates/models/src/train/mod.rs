//! Training with Burn's learner: batches of tokens, and the steps of the models on them.
//!
//! [`LanguageModel`](crate::language_model::LanguageModel) and [`Seq2Seq`](crate::seq2seq::Seq2Seq) implement burn-train's `TrainStep` and
//! `InferenceStep`, so `SupervisedTraining` trains them with its metrics, checkpoints and dashboard, on one device or on several. The
//! same steps are useful in your own training loop:
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::{optim::AdamConfig, tensor::Device, train::TrainStep};
//! use burn_attn_models::{language_model::LanguageModelConfig, train::{LanguageModelBatch, clip_by_global_norm}};
//!
//! let device = Device::default().autodiff();
//! let mut model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&device);
//! let mut optimizer = AdamConfig::new().init();
//! // Two texts of a few tokens. The model learns to predict all but the first of each.
//! let texts = [vec![5, 6, 7, 8], vec![9, 8, 7]];
//! let batch = LanguageModelBatch::new(&texts, &device);
//! let first = model.step(batch.clone()).item.loss.into_scalar::<f32>();
//! for _ in 0..20 {
//!     let output = model.step(batch.clone());
//!     let gradients = clip_by_global_norm(output.grads, &model, 1.0);
//!     model = optimizer.step(0.01, model, gradients);
//! }
//! assert!(model.step(batch).item.loss.into_scalar::<f32>() < 0.5 * first);
//! # }
//! ```
//!
//! # Several devices
//!
//! `ExecutionStrategy::multi` adds up the gradients of the devices. To see the gradients that one device would have, the loss of each device
//! must be divided by the tokens of the batches of all: give every batch their number with
//! [`divided_by`](LanguageModelBatch::divided_by). `ExecutionStrategy::ddp` with `ReduceOperation::Mean` takes the mean, so there
//! each batch is divided by its own, which is the default; that is exact if all of them have as many tokens, and otherwise gives the tokens of
//! small ones more weight.
//!
//! # Dropout
//!
//! A step draws its dropout from a stream of seeds that its tokens determine, together with the batch's
//! [`seed`](LanguageModelBatch::seed). So devices drop different numbers, in whatever order they work. The same batch drops the same
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
mod clip;
mod mixed_precision;
mod replicas;
mod schedule;
mod shares;
mod step;

pub use average::MovingAverage;
pub use batch::{LanguageModelBatch, Seq2SeqBatch, Targets};
pub use by_length::{BatchSize, batches_by_length};
pub use clip::clip_by_global_norm;
pub use mixed_precision::MixedPrecision;
pub use replicas::Replicas;
pub use schedule::warmup_cosine;
