//! Answers questions about a passage with words of it: a BERT fine-tuned on stories that a grammar makes.

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
    question_answering::{self, QuestionAnswering, Reading, TASK},
    questions::{self, AnswerScores, Example},
    tokens::Tokenizer,
    weights::MINILM,
};

/// The seed of stories that no model is trained on.
const HELD_OUT: u64 = u64::MAX;
/// Stories of this seed.
const HELD_OUT_STORIES: usize = 200;

/// Answers questions about a passage with words of it.
#[derive(Parser)]
#[command(name = "answer", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, global = true, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

#[derive(Subcommand)]
enum Command {
    /// Fine-tune an encoder on stories made by the toy corpus' grammar
    Train(TrainArgs),
    /// Answer questions about stories that were held out, or about other passages, and print how good the answers are
    Evaluate(EvaluateArgs),
    /// Print the answer to each question, and how probable the model finds it
    Ask(AskArgs),
}

#[derive(Args)]
struct TrainArgs {
    /// The folder of the fine-tuned model, as transformers would save it
    #[arg(long, value_name = "FOLDER", default_value = "answer-model")]
    out: PathBuf,
    /// The encoder: a folder that transformers saved, with tokenizer.json [default: MiniLM, fetched by cargo xtask fetch minilm]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Number of stories to make from --seed, with up to four questions each
    #[arg(long, default_value_t = 1200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    stories: u64,
    /// How it is fine-tuned.
    #[command(flatten)]
    fine_tuning: FineTuning,
}

#[derive(Args)]
struct EvaluateArgs {
    /// Passages: lines of a passage, a question and an answer that is in the passage, with tabs between them [default: stories that were held out]
    passages: Option<PathBuf>,
    /// Print each question, the answer found and the right one
    #[arg(long)]
    show: bool,
    /// The fine-tuned model, or one that transformers saved
    #[arg(long, value_name = "FOLDER", default_value = "answer-model")]
    model: PathBuf,
}

#[derive(Args)]
struct AskArgs {
    /// The passage
    file: PathBuf,
    /// The questions [default: each line of standard input]
    questions: Vec<String>,
    /// The fine-tuned model, or one that transformers saved
    #[arg(long, value_name = "FOLDER", default_value = "answer-model")]
    model: PathBuf,
    /// Pictures of the first question on the command line.
    #[command(
        flatten,
        next_help_heading = "Pictures of the first question on the command line"
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
    let options = &args.fine_tuning;
    if options.seed == HELD_OUT {
        let problem = format!("--seed {HELD_OUT} makes the stories that are held out");
        return Err(Error::Option(problem));
    }
    let source = MINILM.or(args.model.as_deref())?;
    let _lock = encoder::prepare(&source, &args.out)?;
    let training = device.clone().autodiff();
    burn_attn::seed(&training, options.seed);
    let (encoder, tokenizer) = Encoder::with_new_head(&source, TASK, &training)?;
    let model = QuestionAnswering { encoder };
    let max_len = model.encoder.bert.max_len();
    let train = questions::of_stories(options.seed, args.stories as usize);
    let train = question_answering::spans(&train, &tokenizer, max_len)?;
    let held_out = questions::of_stories(HELD_OUT, HELD_OUT_STORIES);
    let spans = question_answering::spans(&held_out, &tokenizer, max_len)?;
    let folder = args.out.join("training");
    let trained = question_answering::fine_tune(model, [&train, &spans], options, &folder, device)?;
    let Some(model) = trained else {
        exit::println("stopped: nothing is saved");
        return Ok(STOPPED);
    };
    model.encoder.save(&source, TASK, &args.out)?;
    exit::println(&format!("the model is in {}", args.out.display()));
    exit::println(&scores(&answers(&model, &tokenizer, &held_out)?));
    Ok(0)
}

fn load(folder: &Path, device: &Device) -> Result<(QuestionAnswering, Tokenizer), Error> {
    let (encoder, tokenizer) = Encoder::load(folder, TASK, device)?;
    Ok((QuestionAnswering { encoder }, tokenizer))
}

fn evaluate(args: &EvaluateArgs, device: &Device) -> Result<(), Error> {
    let (model, tokenizer) = load(&args.model, device)?;
    let examples = match &args.passages {
        Some(path) => questions::read(path)?,
        None => questions::of_stories(HELD_OUT, HELD_OUT_STORIES),
    };
    let answers = answers(&model, &tokenizer, &examples)?;
    if args.show {
        for (found, example) in &answers {
            let [question, right] =
                [example.question.as_str(), example.answer()].map(printable_lines);
            println!("{question}\t{}\t{right}", printable_lines(found));
        }
    }
    // Unlike a training, it fails if its figures cannot be written.
    println!("{}", scores(&answers));
    Ok(())
}

/// Each answer that the model finds, beside its question.
fn answers<'a>(
    model: &QuestionAnswering,
    tokenizer: &Tokenizer,
    examples: &'a [Example],
) -> Result<Vec<(&'a str, &'a Example)>, Error> {
    let max_len = model.encoder.bert.max_len();
    let readings = examples
        .iter()
        .map(|example| Reading::new(tokenizer, &example.question, &example.passage, max_len));
    let readings = readings.collect::<Result<Vec<_>, _>>()?;
    let bar = input::progress(readings.len(), "questions");
    let answers = model.answers(&readings, |more| bar.inc(more as u64));
    bar.finish_and_clear();
    Ok((answers.into_iter().zip(examples))
        .map(|(answer, example)| (&example.passage[answer.bytes], example))
        .collect())
}

/// A line that says how good answers are.
fn scores(answers: &[(&str, &Example)]) -> String {
    let pairs = answers
        .iter()
        .map(|(found, example)| (*found, example.answer()));
    let AnswerScores {
        questions,
        exact_match,
        f1,
    } = AnswerScores::of(pairs);
    format!("{questions} questions: exact match {exact_match:.3}, F1 {f1:.3}")
}

fn ask(args: &AskArgs, device: &Device) -> Result<u8, Error> {
    args.pictures.probe()?;
    if args.pictures.are_wanted() && args.questions.is_empty() {
        let problem = "--html and --text draw a question of the command line, and there is none";
        return Err(Error::Option(problem.into()));
    }
    let passage = input::read(&args.file)?;
    if passage.trim().is_empty() {
        let problem = format!("there is no text in {}", args.file.display());
        return Err(Error::Option(problem));
    }
    let (model, tokenizer) = load(&args.model, device)?;
    let max_len = model.encoder.bert.max_len();
    let answer = |question: &str| {
        let reading = Reading::new(&tokenizer, question, &passage, max_len)?;
        let answer = model
            .answers(std::slice::from_ref(&reading), |_| {})
            .remove(0);
        let words: Vec<&str> = passage[answer.bytes].split_whitespace().collect();
        let [words, question] = [words.join(" ").as_str(), question].map(printable_lines);
        println!("{:.2}\t{words}\t{question}", answer.probability);
        Ok(reading)
    };
    let Some((first, rest)) = args.questions.split_first() else {
        return input::each_line(|line| answer(line).map(drop));
    };
    let reading = answer(first)?;
    rest.iter()
        .try_for_each(|question| answer(question).map(drop))?;
    if args.pictures.are_wanted() {
        let layers = model.encoder.attention(&tokenizer, &reading.tokens)?;
        let page = AttentionPage::new("What the reader looks at")
            .source(first)
            .group(AttentionGroup::new("Self-attention", layers.clone()));
        args.pictures.draw(&page, &layers)?;
    }
    Ok(0)
}
