#![doc = include_str!("../README.md")]

mod augmentation;
mod detect;
mod detector;
mod digits;
mod images;
mod int8;
mod mnist;
mod objects;
mod precision;
mod preprocessing;
mod recognise;
mod scene;
mod scenes;
mod segment;
mod segments;
mod test;
mod train;
mod training_scenes;
mod training_task;

use std::process::ExitCode;

use burn_attn_models::vision::{ImageClassifier, ImageSegmenter};
use clap::{Parser, Subcommand, ValueEnum};

use crate::{detect::SceneDetector, images::ImageArgs};

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
    Recognise(ImageArgs),
    /// Say where digits are in an image, and draw where the model looked for each
    Detect(ImageArgs),
    /// Say which digit each pixel of an image is of, and draw it
    Segment(ImageArgs),
    /// Write a scene of the test part as a PNG
    Scene(scene::SceneArgs),
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
        Command::Recognise(args) => args.run::<ImageClassifier>(),
        Command::Detect(args) => args.run::<SceneDetector>(),
        Command::Segment(args) => args.run::<ImageSegmenter>(),
        Command::Scene(args) => scene::run(&args).map(|()| 0),
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
