//! The command line.

use std::path::PathBuf;

use clap::builder::ArgPredicate::IsPresent;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use example_common::devices::DeviceArg;
use example_common::pictures::Pictures;
use serde::{Deserialize, Serialize};

use crate::precision::Precision;

/// A small translator that is trained on the spot, and shows what each of its attention heads looks at.
///
/// Without a command it runs a demo: it trains a model on a built-in English–Spanish toy corpus (about a
/// minute on two CPU cores), prints how many sentences that it has never seen it translates exactly right, translates some of
/// them, and writes an HTML page with the attention of every layer and head for one of them.
#[derive(Debug, Parser)]
#[command(name = "translation", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do; without a command, the demo.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of every command.
    #[command(flatten)]
    pub shared: Shared,
}

const EXAMPLES: &str = "Examples:
  translation                                         the demo, on the built-in corpus
  translation translate \"The dog sleeps.\"             with the model of the demo
  translation translate < english.txt > spanish.txt
  translation explain \"The dog sleeps.\" --html a.html
  translation explain \"The dog sleeps.\" --text --draw cross:1
  translation train --data pairs.tsv --out run --steps 8000
  translation train --resume --out run                resume after Ctrl-C, a crash or a power cut
  translation evaluate --out run --beam 4

Exit codes: 0 success, 1 failure (one sentence says why), 2 options that cannot be read, 130 stopped by Ctrl-C.";

/// The default folder of a run.
pub const OUT: &str = "translation-run";

/// Options of every command.
#[derive(Debug, Args)]
pub struct Shared {
    /// The folder of the run: its checkpoints are written there and read from there
    #[arg(long, global = true, value_name = "DIR", default_value = OUT)]
    pub out: PathBuf,
    /// Where to compute: flex, ndarray, wgpu, vulkan, metal, webgpu, cuda, rocm or cpu, and cuda:1 for the second GPU; every device except
    /// flex needs the cargo feature of its name [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, global = true, value_name = "DEVICE")]
    pub device: Option<DeviceArg>,
    /// Also write the figures of the run as JSON, replacing an older file (demo, train and evaluate)
    #[arg(long, global = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Also write the translations of the held-out sentences, replacing an older file: source, translation and all references, with tabs
    /// between them (demo, train and evaluate)
    #[arg(long, global = true, value_name = "FILE.tsv")]
    pub translations: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model, or resume its training, and report how good it is
    Train {
        /// Resume from the newest checkpoint in --out, on the same loss curve, with the options that the run began with
        #[arg(long, conflicts_with_all = ["data", "held_out", "replicas", "d_model", "heads", "layers", "d_ff", "max_len", "dropout", "Recipe"])]
        resume: bool,
        #[command(flatten)]
        args: Box<TrainArgs>,
    },
    /// Translate with the best checkpoint: a sentence, the lines of a pipe, or what is typed
    Translate {
        /// The sentence [default: the lines of standard input, 64 at a time, or a prompt on a terminal]
        text: Option<String>,
        #[command(flatten)]
        search: SearchArgs,
    },
    /// Report how good the best checkpoint is on sentences it has never seen
    Evaluate {
        /// Where the corpus of the run is now, if it was moved
        #[arg(long, value_name = "FILE.tsv")]
        data: Option<PathBuf>,
        /// Evaluate on all sentences of this file instead of those held out of the run's own corpus
        #[arg(long, value_name = "FILE.tsv", conflicts_with = "data")]
        test: Option<PathBuf>,
        #[command(flatten)]
        search: SearchArgs,
    },
    /// Translate one sentence and draw what every layer and head looks at
    Explain {
        /// The sentence
        sentence: String,
        #[command(flatten)]
        search: SearchArgs,
        #[command(
            flatten,
            next_help_heading = "Pictures [default: the page attention.html in --out]"
        )]
        pictures: Pictures,
    },
}

/// How to search for the best translation.
#[derive(Clone, Copy, Debug, Args)]
pub struct SearchArgs {
    /// Hypotheses kept side by side while searching; 1 is greedy search
    #[arg(long, default_value_t = 1)]
    pub beam: usize,
}

/// Options of a new run: its data, its model, and its recipe. Defaults for `--data` are for people's sentences, such as Tatoeba's. Those for the
/// built-in corpus were tuned so that new sentences are translated right after about a minute on two CPU cores; its grammar has no exceptions
/// to memorise, so dropout would only cost time.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// Tab-separated lines: source, target; anything after that is ignored [default: the built-in corpus]
    #[arg(long, value_name = "FILE.tsv")]
    pub data: Option<PathBuf>,
    /// Distinct source sentences held out for the report, and as many for choosing the best checkpoint; of the built-in corpus, whose report
    /// has fixed sentences, those for the checkpoint alone
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub held_out: usize,
    /// Replicas of the model, each with a part of every batch and of the threads; on flex and ndarray only [default: one for each
    /// thread, at most 4]
    #[arg(long, value_name = "N")]
    pub replicas: Option<usize>,
    /// Width of the model; a multiple of --heads; 256 for --data
    #[arg(long, value_name = "N")]
    #[arg(default_value = "96", default_value_if("data", IsPresent, "256"))]
    pub d_model: usize,
    /// Attention heads of every layer; 8 for --data
    #[arg(long, value_name = "N")]
    #[arg(default_value = "4", default_value_if("data", IsPresent, "8"))]
    pub heads: usize,
    /// Layers of the encoder, and as many of the decoder; 3 for --data
    #[arg(long, value_name = "N")]
    #[arg(default_value = "2", default_value_if("data", IsPresent, "3"))]
    pub layers: usize,
    /// Width inside the feed-forward layers; 1024 for --data
    #[arg(long, value_name = "N")]
    #[arg(default_value = "256", default_value_if("data", IsPresent, "1024"))]
    pub d_ff: usize,
    /// Positions: the longest sentence, in tokens, that can be read or written; 128 for --data
    #[arg(long, value_name = "TOKENS")]
    #[arg(default_value = "64", default_value_if("data", IsPresent, "128"))]
    pub max_len: usize,
    /// Dropout probability while training, in [0, 1); 0.1 for --data
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    #[arg(default_value = "0", default_value_if("data", IsPresent, "0.1"))]
    pub dropout: f64,
    /// How it is trained.
    #[command(flatten)]
    pub recipe: Recipe,
}

/// How a run is trained.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Recipe {
    /// Passes over the corpus; 10 for --data; without a limit if --steps is given
    #[arg(long, value_name = "N", default_value = "7")]
    #[arg(default_value_ifs([("steps", IsPresent, None), ("data", IsPresent, Some("10"))]))]
    pub epochs: Option<usize>,
    /// Steps of training
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Sentence pairs per step, of about the same length; 64 for --data
    #[arg(long, value_name = "N")]
    #[arg(default_value = "32", default_value_if("data", IsPresent, "64"))]
    pub batch: usize,
    /// Tokens per step instead, with the padding: as many pairs of about the same length as that makes
    #[arg(long, value_name = "TOKENS", conflicts_with = "batch")]
    pub batch_tokens: Option<usize>,
    /// What a step computes in; weights, optimizer, validation and translation stay in f32
    #[arg(long, value_enum, default_value_t)]
    pub precision: Precision,
    /// Seed of all random numbers: with the same options and seed, a machine repeats a run exactly
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The most sub-word tokens in the vocabulary that both languages share; 8000 for --data
    #[arg(long, value_name = "TOKENS")]
    #[arg(default_value = "2000", default_value_if("data", IsPresent, "8000"))]
    pub vocabulary: usize,
    /// How the learning rate falls after the warm-up
    #[arg(long, value_enum, default_value_t = Schedule::Cosine)]
    pub schedule: Schedule,
    /// The highest learning rate; 0.001 for --data
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    #[arg(default_value = "0.003", default_value_if("data", IsPresent, "0.001"))]
    pub learning_rate: f64,
    /// Steps until the learning rate is at its highest, which a run of fewer steps never reaches; 500 for --data
    #[arg(long, value_name = "STEPS")]
    #[arg(default_value = "200", default_value_if("data", IsPresent, "500"))]
    pub warmup: usize,
    /// Label smoothing, in [0, 1); 0.1 for --data
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    #[arg(default_value = "0.05", default_value_if("data", IsPresent, "0.1"))]
    pub smoothing: f64,
    /// The largest norm of the whole gradient; a larger one is scaled down
    #[arg(long, value_name = "NORM", allow_negative_numbers = true)]
    #[arg(default_value_t = 1.0)]
    pub clip: f64,
    /// Translate with a moving average of the parameters over about so many of the last steps: their mean until there are as many, then an
    /// exponential one. It begins with step 10
    #[arg(long, value_name = "STEPS")]
    pub average: Option<usize>,
}

/// How the learning rate falls after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Along half a cosine, down to 2 % at the end of the epochs or steps; a run that ends within the warm-up has none
    Cosine,
    /// With one over the square root of the step, so that training needs no end
    Noam,
}

impl Default for TrainArgs {
    fn default() -> Self {
        let command = Self::augment_args(clap::Command::new("train"));
        let none = command.get_matches_from(["train"]);
        Self::from_arg_matches(&none).expect("no option is required")
    }
}

#[cfg(test)]
mod tests;
