//! Says how positive a text is, with a BERT fine-tuned on reviews that people have scored.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use burn::tensor::Device;
use burn_attn_viz::{AttentionGroup, AttentionPage};
use clap::{Args, Parser, Subcommand};
use example_common::{
    devices::{self, DeviceArg},
    exit::{self, STOPPED},
    memory,
    text::printable_lines,
};
use language::{
    Error,
    encoder::{self, Encoder},
    fine_tuning::FineTuning,
    input,
    pictures::Pictures,
    reviews,
    sentiment::{self, Example, SentimentModel, TASK},
    tokens::{self, Tokenizer},
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
    /// Pictures of the first text on the command line.
    #[command(
        flatten,
        next_help_heading = "Pictures of the first text on the command line"
    )]
    pictures: Pictures,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    memory::keep_freed();
    exit::run(|| run(&cli))
}

fn run(cli: &Cli) -> Result<u8, Error> {
    let (device, _) = devices::choose(cli.device)?;
    match &cli.command {
        Command::Train(args) => train(args, &device),
        Command::Evaluate(args) => evaluate(args, &device).map(|()| 0),
        Command::Ask(args) => ask(args, &device),
    }
}

/// Fine-tunes, saves, and evaluates.
fn train(args: &TrainArgs, device: &Device) -> Result<u8, Error> {
    let source = MINILM.or(args.model.as_deref())?;
    let reviews = reviews::read(&REVIEWS.or(args.reviews.as_deref())?)?;
    let _lock = encoder::prepare(&source, &args.out)?;
    let training = device.clone().autodiff();
    burn_attn::seed(&training, args.fine_tuning.seed);
    let (encoder, tokenizer) = Encoder::with_new_head(&source, TASK, &training)?;
    let model = SentimentModel { encoder };
    let max_len = model.encoder.bert.max_len();
    let (train, held_out) = reviews::split(reviews);
    let train = sentiment::examples(&train, &tokenizer, max_len)?;
    let held_out = sentiment::examples(&held_out, &tokenizer, max_len)?;
    let folder = args.out.join("training");
    let options = &args.fine_tuning;
    let trained = sentiment::fine_tune(model, [&train, &held_out], options, &folder, device)?;
    let Some(model) = trained else {
        exit::println("stopped: nothing is saved");
        return Ok(STOPPED);
    };
    model.encoder.save(&source, TASK, &args.out)?;
    exit::println(&format!("the model is in {}", args.out.display()));
    exit::println(&accuracy(&model, &held_out));
    Ok(0)
}

fn load(folder: &Path, device: &Device) -> Result<(SentimentModel, Tokenizer), Error> {
    let (encoder, tokenizer) = Encoder::load(folder, TASK, device)?;
    Ok((SentimentModel { encoder }, tokenizer))
}

fn evaluate(args: &EvaluateArgs, device: &Device) -> Result<(), Error> {
    let (model, tokenizer) = load(&args.model, device)?;
    let reviews = reviews::read(&REVIEWS.or(args.reviews.as_deref())?)?;
    let (_, held_out) = reviews::split(reviews);
    let held_out = sentiment::examples(&held_out, &tokenizer, model.encoder.bert.max_len())?;
    // Unlike a training, it fails if its figures cannot be written.
    println!("{}", accuracy(&model, &held_out));
    Ok(())
}

/// A line that says how many scores have the right sign.
fn accuracy(model: &SentimentModel, held_out: &[Example]) -> String {
    let bar = input::progress(held_out.len(), "reviews");
    let texts: Vec<_> = held_out
        .iter()
        .map(|example| example.text.clone())
        .collect();
    let scores = model.scores(&texts, |more| bar.inc(more as u64));
    bar.finish_and_clear();
    let accuracy = sentiment::accuracy(scores.into_iter().zip(held_out));
    format!(
        "of {} reviews that were held out, {:.2} % have the right sign",
        held_out.len(),
        100.0 * accuracy
    )
}

fn ask(args: &AskArgs, device: &Device) -> Result<u8, Error> {
    args.pictures.probe()?;
    if args.pictures.are_wanted() && args.texts.is_empty() {
        let problem = "--html and --text draw a text of the command line, and there is none";
        return Err(Error::Option(problem.into()));
    }
    let (model, tokenizer) = load(&args.model, device)?;
    let max_len = model.encoder.bert.max_len();
    let score = |text: &str| {
        let tokens = tokens::encoded(&tokenizer, text, max_len)?;
        let scores = model.scores(std::slice::from_ref(&tokens), |_| {});
        println!("{:+.2}\t{}", scores[0], printable_lines(text));
        Ok(tokens)
    };
    let Some((first, rest)) = args.texts.split_first() else {
        return input::each_line(|line| score(line).map(drop));
    };
    let tokens = score(first)?;
    rest.iter().try_for_each(|text| score(text).map(drop))?;
    if args.pictures.are_wanted() {
        let layers = model.encoder.attention(&tokenizer, &tokens)?;
        let page = AttentionPage::new("What the sentiment model looks at")
            .source(first)
            .group(AttentionGroup::new("Self-attention", layers.clone()));
        args.pictures.draw(&page, &layers)?;
    }
    Ok(0)
}
