//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use example_common::devices::DeviceArg;

use crate::precision::Precision;
use crate::run_config::Schedule;

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
  translation train --data pairs.tsv --out run --steps 8000
  translation train --resume --out run                resume after Ctrl-C, a crash or a power cut
  translation evaluate --out run --beam 4

Exit codes: 0 success, 1 failure (one sentence says why), 2 wrong usage, 130 stopped by Ctrl-C.";

/// The folder of a run, unless it is said.
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
        #[arg(long, conflicts_with = "TrainArgs")]
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
    /// Translate one sentence and write a page with the attention of every layer and head
    Explain {
        /// The sentence
        text: String,
        /// The page to write [default: attention.html in --out]
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        #[command(flatten)]
        search: SearchArgs,
    },
}

/// How to search for the best translation.
#[derive(Clone, Copy, Debug, Args)]
pub struct SearchArgs {
    /// Hypotheses kept side by side while searching; 1 is greedy search
    #[arg(long, default_value_t = 1)]
    pub beam: usize,
}

/// Options of a new run; those left out take the defaults of the corpus.
#[derive(Debug, Default, Args)]
pub struct TrainArgs {
    /// Tab-separated lines: source, target; anything after that is ignored [default: the built-in corpus]
    #[arg(long, value_name = "FILE.tsv")]
    pub data: Option<PathBuf>,
    /// Distinct source sentences held out for the report, and as many for choosing the best checkpoint; of the built-in corpus, whose report
    /// has fixed sentences, those for the checkpoint alone [default: 400]
    #[arg(long, value_name = "N")]
    pub held_out: Option<usize>,
    /// Passes over the corpus [default: 7; for --data 10; without a limit if --steps is given]
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// Steps of training
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Sentence pairs per step, of about the same length [default: 32; for --data 64]
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Tokens per step instead, with the padding: as many pairs of about the same length as that makes
    #[arg(long, value_name = "TOKENS", conflicts_with = "batch")]
    pub batch_tokens: Option<usize>,
    /// Replicas of the model, each with a part of every batch and of the threads; on flex and ndarray only [default: one for each
    /// thread, at most 4]
    #[arg(long, value_name = "N")]
    pub replicas: Option<usize>,
    /// What a step computes in; weights, optimizer, validation and translation stay in f32 [default: f32]
    #[arg(long, value_enum)]
    pub precision: Option<Precision>,
    /// Seed of all random numbers: with the same options and seed, a machine repeats a run exactly [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// The most sub-word tokens in the vocabulary that both languages share [default: 2000; for --data 8000]
    #[arg(long, value_name = "TOKENS")]
    pub vocabulary: Option<usize>,
    /// Width of the model; a multiple of --heads [default: 96; for --data 256]
    #[arg(long, value_name = "N")]
    pub d_model: Option<usize>,
    /// Attention heads of every layer [default: 4; for --data 8]
    #[arg(long, value_name = "N")]
    pub heads: Option<usize>,
    /// Layers of the encoder, and as many of the decoder [default: 2; for --data 3]
    #[arg(long, value_name = "N")]
    pub layers: Option<usize>,
    /// Width inside the feed-forward layers [default: 256; for --data 1024]
    #[arg(long, value_name = "N")]
    pub d_ff: Option<usize>,
    /// Positions: the longest sentence, in tokens, that can be read or written [default: 64; for --data 128]
    #[arg(long, value_name = "TOKENS")]
    pub max_len: Option<usize>,
    /// Dropout probability while training, in [0, 1) [default: 0; for --data 0.1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub dropout: Option<f64>,
    /// How the learning rate falls after the warm-up [default: cosine]
    #[arg(long, value_enum)]
    pub schedule: Option<Schedule>,
    /// The highest learning rate [default: 0.003; for --data 0.001]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// Steps until the learning rate is at its highest, which a run of fewer steps never reaches [default: 200; for --data 500]
    #[arg(long, value_name = "STEPS")]
    pub warmup: Option<usize>,
    /// Label smoothing, in [0, 1) [default: 0.05; for --data 0.1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub smoothing: Option<f64>,
    /// The largest norm of the whole gradient; a larger one is scaled down [default: 1]
    #[arg(long, value_name = "NORM", allow_negative_numbers = true)]
    pub clip: Option<f64>,
    /// Translate with a moving average of the parameters over about so many of the last steps: their mean until there are as many, then an
    /// exponential one. It begins with step 10
    #[arg(long, value_name = "STEPS")]
    pub average: Option<usize>,
}

#[cfg(test)]
mod tests;
