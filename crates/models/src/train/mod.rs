//! Training with Burn's learner: batches of tokens, and the steps of the models on them.
//!
//! [`LanguageModel`](crate::language_model::LanguageModel) and [`Seq2Seq`](crate::seq2seq::Seq2Seq) implement burn-train's `TrainStep` and
//! `InferenceStep`, so `SupervisedTraining` trains them with its metrics, checkpoints and dashboard, on one device or on several. The
//! same steps are useful in a loop of one's own:
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
//! each batch is divided by its own, which is the default.
//!
//! # Dropout
//!
//! A step draws its dropout from a stream of seeds that its tokens determine, together with the batch's
//! [`seed`](LanguageModelBatch::seed). So devices drop different numbers, and a run repeats, in whatever order they work. This is
//! so for all dropout on flex and ndarray, and for that of attention weights everywhere; elsewhere, the other layers draw from Burn's
//! generator, which the devices share.

mod batch;
mod clip;
mod replicas;
mod step;

pub use batch::{LanguageModelBatch, Seq2SeqBatch, Targets};
pub use clip::clip_by_global_norm;
pub use replicas::Replicas;
