//! Compares texts by their meaning, and searches a folder of texts, with a sentence encoder such as MiniLM.

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use burn::train::Interrupter;
use burn_attn_models::sentences::{Prompt, SentenceEncoder};
use clap::{Args, Parser, Subcommand};
use example_common::{
    devices::{self, DeviceArg},
    exit, files, learner,
    pictures::Pictures,
    text::{printable, printable_lines},
};
use language::{
    Error, encoder,
    error::tokenizer_failed,
    input::{self, at_least},
    sentences::{cosine, vector, vectors},
    text_index::{self, TextIndex},
    tokens::check_len,
    weights::MINILM,
};
use tokenizers::Encoding;

/// Compares texts by their meaning, and searches a folder of texts.
#[derive(Parser)]
#[command(name = "search", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The sentence encoder: a folder that sentence-transformers or transformers saved, or a GGUF file with tokenizer.json beside it [default: MiniLM, fetched by cargo xtask fetch minilm]
    #[arg(long, global = true, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, global = true, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

#[derive(Subcommand)]
enum Command {
    /// Print how near each pair of texts is in meaning: the cosine of their vectors, from -1 to 1
    Compare(CompareArgs),
    /// Print the passages of a folder that are nearest in meaning to a query
    Find(FindArgs),
}

#[derive(Args)]
struct CompareArgs {
    /// The texts
    #[arg(required = true, num_args = 2..)]
    texts: Vec<String>,
    /// Pictures of the first text.
    #[command(flatten, next_help_heading = "Pictures of the first text")]
    pictures: Pictures,
}

#[derive(Args)]
struct FindArgs {
    /// The folder
    folder: PathBuf,
    /// The query [default: each line of standard input]
    query: Option<String>,
    /// Passages to print at most
    #[arg(long, default_value_t = 5, value_parser = at_least::<1>)]
    top: usize,
    /// Which files are texts, by their extensions
    #[arg(long, value_delimiter = ',', default_value = "txt,md")]
    extensions: Vec<String>,
    /// Where the vectors are kept [default: .search-index.safetensors in the folder]
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| run(&cli))
}

fn run(cli: &Cli) -> Result<u8, Error> {
    let source = MINILM.or(cli.model.as_deref())?;
    let device = devices::choose(cli.device)?.device;
    let encoder = SentenceEncoder::from_pretrained(&source, &device)?;
    match &cli.command {
        Command::Compare(args) => compare(args, &encoder),
        Command::Find(args) => find(args, &encoder),
    }
}

fn compare(args: &CompareArgs, encoder: &SentenceEncoder) -> Result<u8, Error> {
    args.pictures.probe()?;
    let texts = (args.texts.iter()).map(|text| tokens(text, Prompt::Text, encoder));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let rows: Vec<&[u32]> = texts.iter().map(Encoding::get_ids).collect();
    let vectors = vectors(encoder, &rows, |_| ControlFlow::Continue(()));
    for (i, first) in args.texts.iter().enumerate() {
        for (j, second) in args.texts.iter().enumerate().skip(i + 1) {
            let [first, second] = [first, second].map(|text| printable_lines(text));
            let cosine = cosine(&vectors[i], &vectors[j]);
            let line = format!("{cosine:.6}\t{first}\t{second}\n");
            args.pictures.print(&line);
        }
    }
    if args.pictures.are_wanted() {
        let layers = encoder::attention(&encoder.bert, encoder.tokenizer(), &texts[0])?;
        let title = "What the sentence encoder looks at";
        args.pictures.draw_encoder(title, &args.texts[0], layers)?;
    }
    Ok(0)
}

fn find(args: &FindArgs, encoder: &SentenceEncoder) -> Result<u8, Error> {
    let default = || args.folder.join(text_index::FILE);
    let file = args.index.clone().unwrap_or_else(default);
    let bar = input::progress(0, "passages");
    if !args.folder.is_dir() {
        return Err(format!("{} is not a folder", args.folder.display()).into());
    }
    let kept_in = file.display();
    // Before an hour of reading depends on it.
    files::probe(&file).map_err(|error| format!("{error}; --index names another place"))?;
    // The first Ctrl-C loses no passage that was read.
    let interrupter = Interrupter::new();
    learner::stop_by_ctrl_c(interrupter.clone());
    let (index, update) = TextIndex::update(
        &args.folder,
        &args.extensions,
        &file,
        encoder,
        |over, all| {
            bar.set_length(all as u64);
            bar.set_position(over as u64);
            match interrupter.should_stop() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    )?;
    let is_stopped = interrupter.should_stop();
    // From now on, the first Ctrl-C ends the program.
    interrupter.stop(None);
    bar.finish_and_clear();
    if is_stopped {
        let (all, left) = (index.len(), update.left);
        let read = all - left;
        exit::warn(&match update.is_lost {
            _ if left == 0 => String::from("stopped"),
            true => {
                format!("stopped: {read} of {all} passages were read, but not all could be kept")
            }
            false => format!(
                "stopped: {read} of {all} passages are in {kept_in}; the next search reads the other {left}"
            ),
        });
        return Ok(exit::STOPPED);
    }
    if update.read + update.skipped + update.unreadable > 0 {
        let unreadable = match update.unreadable {
            0 => String::new(),
            unreadable => format!(", because they cannot be read: {unreadable}"),
        };
        exit::warn(&format!(
            "texts read: {}, kept: {}, skipped because they or their names are not UTF-8: {}{unreadable}; {} passages{}",
            update.read,
            update.kept,
            update.skipped,
            index.len(),
            match update.is_lost {
                true => String::new(),
                false => format!(" in {kept_in}"),
            },
        ));
    }
    if index.is_empty() {
        return Err(format!(
            "there is no text in {}: no file with the extension {} has any",
            args.folder.display(),
            args.extensions.join(" or ")
        )
        .into());
    }
    input::each(args.query.as_slice(), |query| {
        answer(query, args.top, &index, encoder)
    })
}

fn answer(
    query: &str,
    top: usize,
    index: &TextIndex,
    encoder: &SentenceEncoder,
) -> Result<(), Error> {
    let tokens = tokens(query, Prompt::Query, encoder)?;
    let vector = vector(encoder, tokens.get_ids());
    for hit in index.nearest(&vector, top) {
        let text: Vec<&str> = hit.passage.text.split_whitespace().collect();
        let line = format!(
            "{:.4}\t{}:{}\t{}",
            hit.cosine,
            hit.path.display(),
            hit.passage.line,
            text.join(" ")
        );
        // File names may have line ends, too.
        println!("{}", printable(&line, usize::MAX));
    }
    Ok(())
}

/// The tokens of a text that has some, and not more than the encoder reads.
fn tokens(text: &str, prompt: Prompt, encoder: &SentenceEncoder) -> Result<Encoding, Error> {
    let len = |text: &str, add_special_tokens| {
        let tokens = encoder.tokenizer().encode(text, add_special_tokens);
        tokens.map_err(tokenizer_failed).map(|tokens| tokens.len())
    };
    let whole = [encoder.prompt(prompt), text].concat();
    check_len(
        text,
        len(text, false)?,
        len(&whole, true)?,
        encoder.max_len(),
    )?;
    Ok(encoder.tokens(text, prompt)?)
}
