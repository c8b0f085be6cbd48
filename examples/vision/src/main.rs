#![doc = include_str!("../README.md")]

mod augmentation;
mod detector;
mod digits;
mod images;
mod mnist;
mod objects;
mod preprocessing;
mod recognise;
mod scenes;
mod segments;
mod test;
mod train;
mod training_scenes;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// What is in an image, by vision transformers that are trained here.
#[derive(Parser)]
#[command(name = "vision", version)]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say which digit is in an image, and draw where the model looked
    Recognise(recognise::RecogniseArgs),
    /// Train a model
    Train(train::TrainArgs),
    /// Measure a model on images that it has never seen
    Test(test::TestArgs),
}

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Task {
    /// Which digit is in an image: a ViT on MNIST
    Recognise,
    /// Where digits are in a scene, and which: a DETR on scenes of MNIST
    Detect,
    /// Which digit each pixel of a scene is of: a SegFormer on scenes of MNIST
    Segment,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    example_common::memory::keep_freed();
    example_common::exit::run(|| match cli.command {
        Command::Recognise(args) => recognise::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Test(args) => test::run(&args).map(|()| 0),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
