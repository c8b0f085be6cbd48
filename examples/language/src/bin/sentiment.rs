//! Says how positive a text is, with a BERT fine-tuned on reviews that people have scored.

use std::{path::PathBuf, process::ExitCode, slice};

use burn::tensor::Device;
use clap::{Args, Parser, Subcommand};
use example_common::{
    devices::{self, DeviceArg},
    exit::{self, STOPPED},
    memory,
    pictures::Pictures,
    text::printable_lines,
};
use language::{
    Error, encoder,
    fine_tuning::{FineTuning, Model},
    input,
    reviews::{self, Review},
    sentiment::{Sentiment, examples},
    tokens::Tokenizer,
    weights::{MINILM, REVIEWS},
};

/// Says how positive a text is, from about -4 to 4.
#[derive(Parser)]
#[command(name = "sentiment", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, global = true, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

#[derive(Subcommand)]
enum Command {
    /// Fine-tune an encoder on reviews; every fifth is held out
    Train(TrainArgs),
    /// Score the reviews that were held out, and print for how many the sign is right
    Evaluate(EvaluateArgs),
    /// Print the score of each text
    Ask(AskArgs),
}

#[derive(Args)]
struct TrainArgs {
    /// Reviews: lines of an ID, a score from -4 to 4 and a text, with tabs between them [default: those fetched by cargo xtask fetch reviews]
    reviews: Option<PathBuf>,
    /// The folder of the fine-tuned model, as transformers would save it
    #[arg(long, value_name = "FOLDER", default_value = "sentiment-model")]
    out: PathBuf,
    /// The encoder: a folder that transformers saved, with tokenizer.json [default: MiniLM, fetched by cargo xtask fetch minilm]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// How it is fine-tuned.
    #[command(flatten)]
    fine_tuning: FineTuning,
}

#[derive(Args)]
struct EvaluateArgs {
    /// The reviews that were given to train, of which every fifth is scored
    reviews: Option<PathBuf>,
    /// The fine-tuned model, or one that transformers saved
    #[arg(long, value_name = "FOLDER", default_value = "sentiment-model")]
    model: PathBuf,
}

#[derive(Args)]
struct AskArgs {
    /// The texts [default: each line of standard input]
    texts: Vec<String>,
    /// The fine-tuned model, or one that transformers saved
    #[arg(long, value_name = "FOLDER", default_value = "sentiment-model")]
    model: PathBuf,
    /// Pictures of the first text on the command line that is read.
    #[command(
        flatten,
        next_help_heading = "Pictures of the first text on the command line that is read"
    )]
    pictures: Pictures,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    memory::keep_freed();
    exit::run(|| run(&cli))
}

fn run(cli: &Cli) -> Result<u8, Error> {
    let device = devices::choose(cli.device)?.device;
    match &cli.command {
        Command::Train(args) => train(args, &device),
        Command::Evaluate(args) => evaluate(args, &device),
        Command::Ask(args) => ask(args, &device),
    }
}

/// Fine-tunes, saves, and evaluates.
fn train(args: &TrainArgs, device: &Device) -> Result<u8, Error> {
    let source = MINILM.or(args.model.as_deref())?;
    let reviews = reviews::read(&REVIEWS.or(args.reviews.as_deref())?)?;
    let (train, held_out) = reviews::split(reviews);
    let examples_of = |tokenizer: &Tokenizer| {
        Ok([
            examples(&train, tokenizer)?,
            examples(&held_out, tokenizer)?,
        ])
    };
    let trained = (args.fine_tuning).train(&source, &args.out, device, examples_of)?;
    let Some((model, tokenizer)) = trained else {
        return Ok(STOPPED);
    };
    exit::println(&accuracy(&model, &tokenizer, &held_out)?);
    Ok(0)
}

fn evaluate(args: &EvaluateArgs, device: &Device) -> Result<u8, Error> {
    let (model, tokenizer) = Model::load(&args.model, device)?;
    let reviews = reviews::read(&REVIEWS.or(args.reviews.as_deref())?)?;
    let (_, held_out) = reviews::split(reviews);
    // Unlike a training, it fails if its figures cannot be written.
    println!("{}", accuracy(&model, &tokenizer, &held_out)?);
    Ok(0)
}

/// A line that says how many scores have the right sign: above 0, or not.
fn accuracy(
    model: &Model<Sentiment>,
    tokenizer: &Tokenizer,
    held_out: &[Review],
) -> Result<String, Error> {
    let texts = held_out
        .iter()
        .map(|review| tokenizer.encode_text(&review.text));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let bar = input::progress(texts.len(), "reviews");
    let scores = model.scores(&texts, |more| bar.inc(more as u64));
    bar.finish_and_clear();
    let right = scores.iter().zip(held_out);
    let right = right.filter(|(score, review)| (**score > 0.0) == (review.score > 0.0));
    let (right, all) = (right.count(), held_out.len());
    let percent = 100.0 * (right as f64 / all as f64);
    Ok(format!(
        "of {all} reviews that were held out, {percent:.2} % have the right sign"
    ))
}

fn ask(args: &AskArgs, device: &Device) -> Result<u8, Error> {
    args.pictures.probe_for(&args.texts, "text", None)?;
    let (model, tokenizer) = Model::<Sentiment>::load(&args.model, device)?;
    let mut first = None;
    let code = input::each(&args.texts, |text| {
        let tokens = tokenizer.encode_text(text)?;
        let scores = model.scores(slice::from_ref(&tokens), |_| {});
        let line = format!("{:+.2}\t{}\n", scores[0], printable_lines(text));
        args.pictures.print(&line);
        first.get_or_insert((text.to_string(), tokens));
        Ok(())
    })?;
    if let (true, Some((text, tokens))) = (args.pictures.are_wanted(), first) {
        let bert = &model.encoder.bert;
        let layers = encoder::attention(bert, &tokenizer.tokenizer, &tokens)?;
        let title = "What the sentiment model looks at";
        args.pictures.draw_encoder(title, &text, layers)?;
    }
    Ok(code)
}
