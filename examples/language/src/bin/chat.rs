//! Talks with a language model, or lets it continue a text.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use burn::tensor::Device;
use burn_attn_models::{
    generate::{GenerateOptions, Sampling},
    language_model::LanguageModel,
    pretrained,
    tokens::padded,
};
use burn_attn_viz::{AttentionGroup, AttentionPage};
use clap::{Args, Parser};
use example_common::{
    devices::{self, DeviceArg},
    exit,
    pictures::maps,
};
use language::{
    Error,
    conversation::Conversation,
    pictures::Pictures,
    template::{Template, end_tokens},
    weights::GLASSLLM,
};
use tokenizers::Tokenizer;

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
    /// Where to compute: flex, wgpu, cuda:1, ... [default: the fastest device built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Pictures of the whole conversation, at its end
    #[command(flatten)]
    pictures: Pictures,
}

/// How tokens are chosen.
#[derive(Args)]
struct SamplingArgs {
    /// New tokens of a turn at most
    #[arg(long, default_value_t = 200)]
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
    /// Above 1, tokens that are there already become less probable
    #[arg(long, default_value_t = 1.0)]
    repetition_penalty: f64,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| run(&cli).map(|()| 0))
}

fn run(cli: &Cli) -> Result<(), Error> {
    cli.sampling.check()?;
    cli.pictures.probe()?;
    let source = GLASSLLM.or(cli.model.as_deref())?;
    let (device, _) = devices::choose(cli.device)?;
    let model = LanguageModel::from_pretrained(&source, &device)?;
    let mut tokenizer = pretrained::tokenizer(&source)?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None)?;
    // Of a GGUF file, what lies beside it.
    let folder = match source.is_file() {
        true => source.parent().unwrap_or(Path::new("")),
        false => &source,
    };
    let ends = end_tokens(folder)?;
    let mut conversation = Conversation::new(&model, &tokenizer, Template::of(folder)?);
    if let Some(system) = &cli.system {
        conversation = conversation.with_system(system)?;
    }
    let mut turn = 0;
    let mut say = |text: &str| {
        // Another seed for each turn, or the same words would be answered in the same way.
        turn += 1;
        let options = cli.sampling.options(turn).stop_tokens(ends.iter().copied());
        answered(&mut conversation, text, &options)
    };
    if cli.turns.is_empty() {
        typed(&mut say)?;
    }
    for text in &cli.turns {
        println!("> {text}");
        say(text)?;
    }
    match cli.pictures.are_wanted() && !conversation.tokens().is_empty() {
        true => draw(cli, &model, &tokenizer, conversation.tokens(), &device),
        false => Ok(()),
    }
}

/// Reads what is said from standard input, until its end (Ctrl-D).
fn typed(say: &mut impl FnMut(&str) -> Result<bool, Error>) -> Result<(), Error> {
    let is_typed = io::stdin().is_terminal();
    loop {
        if is_typed {
            eprint!("> ");
        }
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        if read.map_err(Error::file("read", "standard input"))? == 0 {
            return Ok(());
        }
        if line.trim().is_empty() {
            continue;
        }
        match say(line.trim()) {
            Ok(true) => {}
            // A reader that closes the pipe has read enough.
            Ok(false) => return Ok(()),
            Err(error) if is_typed => eprintln!("error: {error}"),
            Err(error) => return Err(error),
        }
    }
}

/// Prints the answer while it grows, and how fast it came; false if nobody reads it.
fn answered(
    conversation: &mut Conversation,
    text: &str,
    options: &GenerateOptions,
) -> Result<bool, Error> {
    let mut out = io::stdout();
    let mut is_read = true;
    let mut first = None;
    let started = Instant::now();
    let turn = conversation.say(text, options, |piece| {
        first.get_or_insert_with(Instant::now);
        is_read = write!(out, "{piece}").and_then(|()| out.flush()).is_ok();
        is_read
    })?;
    let _ = writeln!(out);
    let first = first.map_or(started.elapsed(), |first| first - started);
    let rest = started.elapsed().saturating_sub(first).as_secs_f64();
    // The first token waits for what is read.
    let speed = (turn.written.saturating_sub(1)) as f64 / rest.max(1e-9);
    eprintln!(
        "[{} tokens read, the first answered after {:.0} ms; {} tokens, {speed:.0} a second{}]",
        turn.read,
        first.as_secs_f64() * 1e3,
        turn.written,
        match turn.forgotten {
            0 => String::new(),
            forgotten => format!("; the oldest {forgotten} tokens are forgotten"),
        }
    );
    Ok(is_read)
}

impl SamplingArgs {
    fn check(&self) -> Result<(), Error> {
        let refused = |option: &str, allowed: &str, value: f64| {
            Err(Error::Option(format!(
                "--{option} must be {allowed}, got {value}"
            )))
        };
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return refused("temperature", "0 or more", self.temperature);
        }
        if self.top_k == Some(0) {
            return refused("top-k", "at least 1", 0.0);
        }
        if let Some(top_p) = self.top_p.filter(|top_p| !(*top_p > 0.0 && *top_p <= 1.0)) {
            return refused("top-p", "above 0 and at most 1", top_p);
        }
        if let Some(min_p) = self.min_p.filter(|min_p| !(0.0..=1.0).contains(min_p)) {
            return refused("min-p", "between 0 and 1", min_p);
        }
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty.is_finite()) {
            return refused("repetition-penalty", "above 0", self.repetition_penalty);
        }
        let draws = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        match draws && self.temperature == 0.0 {
            true => Err(Error::Option(
                "--top-k, --top-p and --min-p draw tokens, but --temperature 0 does not".into(),
            )),
            false => Ok(()),
        }
    }

    fn options(&self, turn: u64) -> GenerateOptions {
        let sampling = match self.temperature {
            0.0 => Sampling::greedy(),
            temperature => {
                let mut sampling = Sampling::temperature(temperature);
                if let Some(top_k) = self.top_k {
                    sampling = sampling.top_k(top_k);
                }
                if let Some(top_p) = self.top_p {
                    sampling = sampling.top_p(top_p);
                }
                match self.min_p {
                    Some(min_p) => sampling.min_p(min_p),
                    None => sampling,
                }
            }
        };
        GenerateOptions::new(self.tokens)
            .sampling(sampling)
            .repetition_penalty(self.repetition_penalty)
            .seed(self.seed.wrapping_add(turn))
    }
}

fn draw(
    cli: &Cli,
    model: &LanguageModel,
    tokenizer: &Tokenizer,
    tokens: &[u32],
    device: &Device,
) -> Result<(), Error> {
    // The last one may have been chosen when there was no room to read it.
    let tokens = &tokens[..tokens.len().min(model.max_len())];
    let token = |&token| {
        tokenizer
            .id_to_token(token)
            .unwrap_or_else(|| format!("<{token}>"))
    };
    let labels: Vec<String> = tokens.iter().map(token).collect();
    let (ids, _) = padded(&[tokens], device);
    let layers = maps(model.attention(ids), &labels, &labels)?;
    let page = AttentionPage::new("What the language model looks at").group(
        AttentionGroup::new("Self-attention", layers.clone())
            .note("Every token looks at itself and at those before it."),
    );
    cli.pictures.draw(&page, &layers)
}
