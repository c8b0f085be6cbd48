//! Talks with a language model, or lets it continue a text.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use burn_attn_models::{
    chat::{ChatModel, Conversation},
    generate::{GenerateOptions, Sampling},
};
use clap::{Args, Parser};
use example_common::{
    devices::{self, DeviceArg},
    exit,
    pictures::Pictures,
    text::{Pieces, printable_lines},
};
use language::{
    Error,
    input::{self, at_least},
    weights::GLASSLLM,
};

/// Talks with a language model by its chat template; one without is asked to continue what is said.
#[derive(Parser)]
#[command(name = "chat", version)]
struct Cli {
    /// What is said, a turn each [default: each line of standard input]
    turns: Vec<String>,
    /// The model: a folder that transformers saved or a GGUF file, with tokenizer.json [default: glassllm, fetched by cargo xtask fetch glassllm]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// What the model is told before the conversation, if it has a chat template
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
    /// How tokens are chosen.
    #[command(flatten, next_help_heading = "How tokens are chosen")]
    sampling: SamplingArgs,
    /// Pictures of the conversation.
    #[command(
        flatten,
        next_help_heading = "Pictures of the conversation, as far as it is remembered at its end"
    )]
    pictures: Pictures,
}

/// How tokens are chosen.
#[derive(Args)]
struct SamplingArgs {
    /// New tokens of a turn at most
    #[arg(long, default_value_t = 200, value_parser = at_least::<1>)]
    tokens: usize,
    /// 1 draws from the model's own probabilities, less prefers the probable ones, 0 always takes the most probable one
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,
    /// Draw among so many tokens, the most probable ones
    #[arg(long)]
    top_k: Option<usize>,
    /// Draw among the most probable tokens that together have this probability
    #[arg(long)]
    top_p: Option<f64>,
    /// Draw among the tokens with at least this part of the largest probability
    #[arg(long)]
    min_p: Option<f64>,
    /// Above 1, tokens that were read or written before become less probable
    #[arg(long, default_value_t = 1.0)]
    repetition_penalty: f64,
    /// Seed of the draws of the first turn; each later turn has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| run(&cli))
}

fn run(cli: &Cli) -> Result<u8, Error> {
    cli.sampling.check()?;
    cli.pictures.probe()?;
    let source = GLASSLLM.or(cli.model.as_deref())?;
    let device = devices::choose(cli.device)?.device;
    let model = ChatModel::from_pretrained(&source, &device)?;
    if model.template.is_none() {
        exit::warn("this model has no chat template: it continues what is said");
    }
    let mut conversation = model.conversation(cli.sampling.tokens);
    if let Some(system) = &cli.system {
        let no_template = "--system needs a model with a chat template, and this one has none";
        let with_system = conversation.with_system(system);
        conversation = with_system.map_err(|_| no_template)?;
    }
    let options = cli.sampling.options();
    let code = input::each(&cli.turns, |text| {
        if !cli.turns.is_empty() {
            let said = format!("> {}\n", printable_lines(text));
            cli.pictures.print(&said);
        }
        answered(&mut conversation, text, &options, &cli.pictures)
    })?;
    if cli.pictures.are_wanted() && !conversation.tokens().is_empty() {
        let ChatModel {
            model, tokenizer, ..
        } = &model;
        cli.pictures
            .draw_language_model(model, tokenizer, conversation.tokens(), &device)?;
    }
    Ok(code)
}

/// Prints the answer while it grows, and how fast it came.
fn answered(
    conversation: &mut Conversation,
    text: &str,
    options: &GenerateOptions,
    pictures: &Pictures,
) -> Result<(), Error> {
    let started = Instant::now();
    let mut pieces = Pieces::default();
    let turn = conversation.say(text, options, |piece| {
        pictures.print(&pieces.printable(piece));
        true
    })?;
    pictures.print("\n");
    let mut line = format!(
        "[{} tokens read, {} written, {:.0} tokens a second",
        turn.read,
        turn.written,
        (turn.read + turn.written) as f64 / started.elapsed().as_secs_f64().max(1e-9)
    );
    if turn.forgotten > 0 {
        line += &format!("; {} tokens of former turns are forgotten", turn.forgotten);
    }
    if turn.is_full {
        line += "; the answer ends because the model is full";
    }
    exit::warn(&(line + "]"));
    Ok(())
}

impl SamplingArgs {
    fn check(&self) -> Result<(), Error> {
        let (temperature, penalty) = (self.temperature, self.repetition_penalty);
        let (top_p, min_p) = (self.top_p.unwrap_or(1.0), self.min_p.unwrap_or(0.0));
        let is_temperature = temperature >= 0.0 && temperature.is_finite();
        let is_top_p = top_p > 0.0 && top_p <= 1.0;
        let is_min_p = (0.0..=1.0).contains(&min_p);
        let is_penalty = penalty > 0.0 && penalty.is_finite();
        input::check([
            ("--temperature", is_temperature, "0 or more", temperature),
            ("--top-k", self.top_k != Some(0), "at least 1", 0.0),
            ("--top-p", is_top_p, "above 0 and at most 1", top_p),
            ("--min-p", is_min_p, "between 0 and 1", min_p),
            ("--repetition-penalty", is_penalty, "above 0", penalty),
        ])?;
        let draws = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        if draws && temperature == 0.0 {
            let problem = "--top-k, --top-p and --min-p draw tokens, but --temperature 0 does not";
            return Err(problem.into());
        }
        Ok(())
    }

    fn options(&self) -> GenerateOptions {
        let mut sampling = match self.temperature {
            0.0 => Sampling::greedy(),
            temperature => Sampling::temperature(temperature),
        };
        sampling = sampling.top_p(self.top_p.unwrap_or(1.0));
        sampling = sampling.min_p(self.min_p.unwrap_or(0.0));
        if let Some(top_k) = self.top_k {
            sampling = sampling.top_k(top_k);
        }
        GenerateOptions::new(self.tokens)
            .sampling(sampling)
            .repetition_penalty(self.repetition_penalty)
            .seed(self.seed)
    }
}
