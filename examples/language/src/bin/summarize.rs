//! Writes a title or a summary of a text with a T5.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use burn::tensor::Device;
use burn_attn_models::{
    generate::{BeamOptions, GenerateOptions, beam_search, generate},
    seq2seq::Seq2Seq,
    t5,
    text::labels,
    tokens::padded,
};
use burn_attn_viz::{AttentionGroup, AttentionPage};
use clap::Parser;
use example_common::{
    devices::{self, DeviceArg},
    exit,
    files::FileError,
    pictures::{Pictures, maps},
    text::printable_lines,
};
use language::{
    Error,
    error::tokenizer_failed,
    input::{self, at_least},
    tokens::Tokenizer,
    weights::TITLES,
};

/// T5's begin token and end token of an output.
const BEGIN: u32 = 0;
const END: u32 = 1;
/// Tokens that T5 was trained to read.
const READS: usize = 512;
/// The widest beam: each of its outputs has a cache.
const WIDEST: usize = 256;

/// Writes a title for a text, or whatever else a T5 was trained to make of one.
#[derive(Parser)]
#[command(name = "summarize", version)]
struct Cli {
    /// The text, in UTF-8 [default: standard input]
    file: Option<PathBuf>,
    /// What the model was trained to be asked, before the text
    #[arg(long, value_name = "TEXT", default_value = "summarize: ")]
    prefix: String,
    /// New tokens at most
    #[arg(long, default_value_t = 48, value_parser = at_least::<1>)]
    tokens: usize,
    /// Outputs that are followed side by side; 1 always takes the most probable token
    #[arg(long, default_value_t = 1, value_parser = at_least::<1>)]
    beam: usize,
    /// Outputs to print, the most probable first; at most the beam
    #[arg(long, default_value_t = 1, value_parser = at_least::<1>)]
    best: usize,
    /// Tokens that are read at most, those of the prefix and the end token too; the rest of the text is left out
    #[arg(long, default_value_t = READS, value_parser = at_least::<2>)]
    longest: usize,
    /// The model: a folder that transformers saved, with tokenizer.json [default: one that writes titles, fetched by cargo xtask fetch t5]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
    /// Pictures of the first output.
    #[command(flatten, next_help_heading = "Pictures of the first output")]
    pictures: Pictures,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| run(&cli).map(|()| 0))
}

fn run(cli: &Cli) -> Result<(), Error> {
    let (best, beam) = (cli.best, cli.beam);
    if best > beam {
        return Err(format!("--best {best} must be at most --beam {beam}").into());
    }
    if beam > WIDEST {
        return Err(format!("--beam must be at most {WIDEST}, got {beam}").into());
    }
    cli.pictures.probe_beside(cli.file.as_ref())?;
    let source = TITLES.or(cli.model.as_deref())?;
    let device = devices::choose(cli.device)?.device;
    let (name, text) = match &cli.file {
        Some(path) => (path.display().to_string(), input::read(path)?),
        None => {
            if io::stdin().is_terminal() {
                exit::warn("type the text, then press Ctrl-D on a line of its own");
            }
            let text = io::read_to_string(io::stdin());
            let text = text.map_err(FileError::of("read", "standard input"))?;
            let text = input::without_mark(&text).to_string();
            ("standard input".into(), text)
        }
    };
    let model = t5::from_pretrained(&source, &device)?;
    let [vocab_size, _] = model.embedding.weight.dims();
    let tokenizer = Tokenizer::of(&source, vocab_size, cli.longest)?;

    let tokens = source_tokens(cli, &name, &text, &tokenizer)?;
    let outputs = outputs(cli, &model, &tokens, &device)?;
    for output in &outputs {
        let output = tokenizer.tokenizer.decode(output, true);
        let output = output.map_err(tokenizer_failed)?;
        let text = printable_lines(output.trim());
        cli.pictures.print(&format!("{text}\n"));
    }
    match cli.pictures.are_wanted() {
        true => draw(cli, &model, &tokenizer, &tokens, &outputs[0], &device),
        false => Ok(()),
    }
}

/// What the model reads: the prefix, the text as far as it fits, and the end token.
fn source_tokens(
    cli: &Cli,
    name: &str,
    text: &str,
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>, Error> {
    if tokenizer.encode(text, false)?.is_empty() {
        return Err(format!("there is no text in {name}").into());
    }
    let encoding = tokenizer.encode(format!("{}{text}", cli.prefix), false)?;
    let budget = cli.longest - 1;
    let mut read = encoding.get_offsets().iter().take(budget);
    if !read.any(|(_, end)| *end > cli.prefix.len()) {
        return Err(format!(
            "--longest {} has no room for the text: the prefix and the end token fill it",
            cli.longest
        )
        .into());
    }
    let mut tokens = encoding.get_ids().to_vec();
    if tokens.len() > budget {
        let len = tokens.len();
        exit::warn(&format!(
            "{name} has {len} tokens with its prefix: only the first {budget} are read (--longest)"
        ));
        tokens.truncate(budget);
    }
    tokens.push(END);
    Ok(tokens)
}

/// The tokens of the best outputs.
fn outputs(
    cli: &Cli,
    model: &Seq2Seq,
    source: &[u32],
    device: &Device,
) -> Result<Vec<Vec<u32>>, Error> {
    let (source, lengths) = padded(&[source], device);
    let start = model.start(source, &lengths);
    let prompt = [vec![BEGIN]];
    if cli.beam == 1 {
        let options = GenerateOptions::new(cli.tokens).stop_tokens([END]);
        let found = generate(model, start, &prompt, &options)?;
        return Ok(found.into_iter().map(|output| output.tokens).collect());
    }
    let options = BeamOptions::new(cli.beam, cli.tokens)
        .stop_tokens([END])
        .n_best(cli.best);
    let found = beam_search(model, start, &prompt, &options)?;
    Ok(found
        .into_iter()
        .flatten()
        .map(|output| output.generation.tokens)
        .collect())
}

/// Draws the attention of the encoder, of the decoder, and from the output to the text.
fn draw(
    cli: &Cli,
    model: &Seq2Seq,
    tokenizer: &Tokenizer,
    source: &[u32],
    output: &[u32],
    device: &Device,
) -> Result<(), Error> {
    // What the decoder reads is one token behind what it writes.
    let written = [&[BEGIN], output].concat();
    let (ids, lengths) = padded(&[source], device);
    let (target, _) = padded(&[&written], device);
    let attention = model.attention(ids, &lengths, target);
    let [read, written, end] =
        [source, &written, &[END]].map(|tokens| labels(&tokenizer.tokenizer, tokens));
    let mut next = written[1..].to_vec();
    next.push(match output.len() < cli.tokens.min(model.max_len()) {
        true => end.concat(),
        // The output was cut off.
        false => "…".into(),
    });
    let encoder = maps(attention.encoder, &read, &read)?;
    let decoder = maps(attention.decoder, &written, &written)?;
    let cross = maps(attention.cross, &written, &read)?;
    let page = AttentionPage::new("What the summary looks at")
        .group(AttentionGroup::new("Encoder self-attention", encoder))
        .group(AttentionGroup::new("Decoder self-attention", decoder).written(next.clone()))
        .group(AttentionGroup::new("Cross-attention", cross).written(next));
    cli.pictures.draw(&page)
}
