//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use example_common::{devices::DeviceArg, pictures::Pictures};
use serde::{Deserialize, Serialize};

/// A language model of any text: trained on one device or several, and asked to continue a prompt.
#[derive(Debug, Parser)]
#[command(name = "language-model", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model on a text, or resume its training
    Train(TrainArgs),
    /// Continue a prompt with a trained model
    Continue(ContinueArgs),
}

/// Options of `train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// The text, in UTF-8
    pub text: PathBuf,
    /// The folder of the run: checkpoints with the loss curve, samples, and the model as `transformers` saves it
    #[arg(long, value_name = "DIR", default_value = "language-model-run")]
    pub out: PathBuf,
    /// Where to train: flex, ndarray, wgpu, vulkan, metal, webgpu, cuda, rocm or cpu, each with its cargo feature; or several with an equal
    /// part of each batch, as in `flex,flex` or `cuda:0,cuda:1` [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    pub devices: Vec<DeviceArg>,
    /// Let several devices exchange gradients among themselves (CUDA alone) instead of sending them to the first one
    #[arg(long, requires = "devices")]
    pub ddp: bool,
    /// Resume from the newest checkpoint in --out, on the same loss curve, with the recipe that the run began with
    #[arg(long, conflicts_with = "Recipe")]
    pub resume: bool,
    /// What the model is, and how it is trained.
    #[command(flatten)]
    pub recipe: Recipe,
}

/// What a resumed run has to repeat.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Tokens of the vocabulary at most: 256 bytes, and sequences of bytes that are frequent in the text
    #[arg(long, default_value_t = 2048)]
    pub vocabulary: usize,
    /// Tokens that the model sees at most
    #[arg(long, default_value_t = 128)]
    pub len: usize,
    /// Width of the model
    #[arg(long, default_value_t = 192)]
    pub d_model: usize,
    /// Attention heads
    #[arg(long, default_value_t = 6)]
    pub heads: usize,
    /// Layers
    #[arg(long, default_value_t = 4)]
    pub layers: usize,
    /// Width inside the feed-forward layers
    #[arg(long, default_value_t = 512)]
    pub d_ff: usize,
    /// Probability of dropout
    #[arg(long, default_value_t = 0.1)]
    pub dropout: f64,
    /// Texts of `len` tokens in a step, on all devices together
    #[arg(long, default_value_t = 16)]
    pub batch: usize,
    /// Highest learning rate: it rises to here in the first `warmup` steps, then falls along a cosine to a tenth. A run that ends within these
    /// steps has no cosine, and need not reach it
    #[arg(long, default_value_t = 2e-3)]
    pub learning_rate: f64,
    /// Steps in which the learning rate rises
    #[arg(long, default_value_t = 100)]
    pub warmup: usize,
    /// Passes over the text at most
    #[arg(long, default_value_t = 10)]
    pub epochs: usize,
    /// Stop after so many epochs without a better validation loss
    #[arg(long, value_name = "EPOCHS", default_value_t = 2)]
    pub patience: usize,
    /// Seed of parameters, order and dropout
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Options of `continue`.
#[derive(Debug, Args)]
pub struct ContinueArgs {
    /// The prompt
    pub prompt: String,
    /// The folder of the run
    #[arg(long, value_name = "DIR", default_value = "language-model-run")]
    pub out: PathBuf,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceArg>,
    /// New tokens at most
    #[arg(long, default_value_t = 100)]
    pub tokens: usize,
    /// 1 draws from the model's own probabilities, less prefers the probable ones, 0 always takes the most probable one
    #[arg(long, default_value_t = 0.8)]
    pub temperature: f64,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What to draw of the attention.
    #[command(flatten)]
    pub pictures: Pictures,
}

#[cfg(test)]
mod tests;
