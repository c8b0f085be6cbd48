//! Suites over the modules and models: what a user of the crates sees.
//!
//! | suite | what it holds the modules to |
//! | --- | --- |
//! | `golden` | PyTorch's values, gradients and a training curve |
//! | `persistence` | configurations and weights survive a file |
//! | `import` | weights from PyTorch and burn-nn |
//! | `burn_nn` | the calls that burn-nn shares with us mean the same |
//! | `parity` | every backend trains the same |
//! | `behaviour` | what the documentation promises |
//! | `cache` | a cache changes the cost, never the numbers |
//! | `positions` | the papers' numbers, and the modules that have them |
//! | `quantized` | weights in 8 bits and adapters, Burn's own |
//! | `half_precision` | steps in bf16 with weights in f32 |
//! | `heads` | all that heads can be told, in every module, is attention written out by hand |
//! | `blocks` | every norm, placement, activation and arrangement of a layer is its formula |
//! | `bad_input` | every mistake has its sentence |
//! | `generate` | generation over models whose probabilities are written down |
//! | `language_model` | the language model, cached and not, for every position, mask and grouping |
//! | `learner` | Burn's learner trains the models, on two devices as on one |
//! | `library` | what the tests' own library refuses |
//! | `loss` | the closed-form loss of training is that of Burn |
//! | `mixers` | mixers of tokens are those of `transformers`, and anyone may add one |
//! | `models` | models that `transformers` saved, from their folders |
//! | `on_wgpu` | 8 bits, a cache under autotune, gradients of a few parameters: what wgpu alone can get wrong |
//! | `replicas` | replicas that share a step compute what one does |
//! | `seq2seq` | the translation model and its search |
//! | `trainer` | what the training loop leaves when it is killed, and how it goes on |
//! | `weights` | weights of other libraries' models by tables, both ways |
//!
//! No test draws from Burn's process-wide generators unless it holds `numbers::alone()` of the tests' library: tests run side by side.
//! Parameters and inputs come from `numbers` there, the same on every machine.

mod bad_input;
mod behaviour;
mod blocks;
mod burn_nn;
mod cache;
mod generate;
mod golden;
mod half_precision;
mod heads;
mod import;
mod language_model;
mod learner;
mod library;
mod loss;
mod mixers;
mod models;
#[cfg(feature = "wgpu")]
mod on_wgpu;
mod parity;
mod persistence;
mod positions;
mod quantized;
mod replicas;
mod seq2seq;
mod trainer;
mod weights;
