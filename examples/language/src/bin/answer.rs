//! Answers questions about a passage with words of it: a BERT fine-tuned on stories that a grammar makes.

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
    question_answering::{QuestionAnswering, Reading, spans},
    questions::{self, AnswerScores, Example},
    tokens::Tokenizer,
    weights::MINILM,
};

/// The seed of stories that no model is trained on.
const HELD_OUT_SEED: u64 = u64::MAX;
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
    /// Pictures of the first question on the command line that is read.
    #[command(
        flatten,
        next_help_heading = "Pictures of the first question on the command line that is read"
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
    let seed = args.fine_tuning.seed;
    if seed == HELD_OUT_SEED {
        return Err(format!("--seed {HELD_OUT_SEED} makes the stories that are held out").into());
    }
    let source = MINILM.or(args.model.as_deref())?;
    let train = questions::of_stories(seed, args.stories as usize);
    let held_out = questions::of_stories(HELD_OUT_SEED, HELD_OUT_STORIES);
    let examples =
        |tokenizer: &Tokenizer| Ok([spans(&train, tokenizer)?, spans(&held_out, tokenizer)?]);
    let trained = args
        .fine_tuning
        .train(&source, &args.out, device, examples)?;
    let Some((model, tokenizer)) = trained else {
        return Ok(STOPPED);
    };
    exit::println(&scores(&answers(&model, &tokenizer, &held_out)?));
    Ok(0)
}

fn evaluate(args: &EvaluateArgs, device: &Device) -> Result<u8, Error> {
    let (model, tokenizer) = Model::load(&args.model, device)?;
    let examples = match &args.passages {
        Some(path) => questions::read(path)?,
        None => questions::of_stories(HELD_OUT_SEED, HELD_OUT_STORIES),
    };
    let answers = answers(&model, &tokenizer, &examples)?;
    if args.show {
        for (found, example) in &answers {
            let columns = [&example.question, *found, example.answer()].map(printable_lines);
            println!("{}", columns.join("\t"));
        }
    }
    // Unlike a training, it fails if its figures cannot be written.
    println!("{}", scores(&answers));
    Ok(0)
}

/// Each answer that the model finds, beside its question.
fn answers<'a>(
    model: &Model<QuestionAnswering>,
    tokenizer: &Tokenizer,
    examples: &'a [Example],
) -> Result<Vec<(&'a str, &'a Example)>, Error> {
    let reading = |example: &Example| Reading::new(tokenizer, &example.question, &example.passage);
    let readings = examples
        .iter()
        .map(reading)
        .collect::<Result<Vec<_>, _>>()?;
    let bar = input::progress(readings.len(), "questions");
    let answers = model.answers(&readings, |more| bar.inc(more as u64));
    bar.finish_and_clear();
    Ok((answers.into_iter().zip(examples))
        .map(|(answer, example)| (&example.passage[answer.bytes], example))
        .collect())
}

/// A line that says how good answers are.
fn scores(answers: &[(&str, &Example)]) -> String {
    let pairs = (answers.iter()).map(|(found, example)| (*found, example.answer()));
    let AnswerScores {
        questions,
        exact_match,
        f1,
    } = AnswerScores::of(pairs);
    format!("{questions} questions: exact match {exact_match:.3}, F1 {f1:.3}")
}

fn ask(args: &AskArgs, device: &Device) -> Result<u8, Error> {
    args.pictures
        .probe_for(&args.questions, "question", Some(&args.file))?;
    let passage = input::read(&args.file)?;
    if passage.trim().is_empty() {
        return Err(format!("there is no text in {}", args.file.display()).into());
    }
    let (model, tokenizer) = Model::<QuestionAnswering>::load(&args.model, device)?;
    let mut first = None;
    let code = input::each(&args.questions, |question| {
        let reading = Reading::new(&tokenizer, question, &passage)?;
        let answers = model.answers(slice::from_ref(&reading), |_| {});
        let words: Vec<&str> = passage[answers[0].bytes.clone()]
            .split_whitespace()
            .collect();
        let [words, printed] = [&words.join(" "), question].map(printable_lines);
        let line = format!("{:.2}\t{words}\t{printed}\n", answers[0].probability);
        args.pictures.print(&line);
        first.get_or_insert((question.to_string(), reading.tokens));
        Ok(())
    })?;
    if let (true, Some((question, tokens))) = (args.pictures.are_wanted(), first) {
        let bert = &model.encoder.bert;
        let layers = encoder::attention(bert, &tokenizer.tokenizer, &tokens)?;
        let title = "What the reader looks at";
        args.pictures.draw_encoder(title, &question, layers)?;
    }
    Ok(code)
}
