//! Compares texts by their meaning, and searches a folder of texts, with a sentence encoder such as MiniLM.

use std::{path::PathBuf, process::ExitCode};

use burn_attn_viz::{AttentionGroup, AttentionPage};
use clap::{Args, Parser, Subcommand};
use example_common::{
    devices::{self, DeviceArg},
    exit, files,
};
use language::{
    Error,
    input::{self, at_least_one},
    pictures::Pictures,
    sentences::{SentenceEncoder, cosine},
    text_index::{self, TextIndex},
    weights::MINILM,
};

/// Compares texts by their meaning, and searches a folder of texts.
#[derive(Parser)]
#[command(name = "search", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The sentence encoder: a folder that transformers saved or a GGUF file, with tokenizer.json [default: MiniLM, fetched by cargo xtask fetch minilm]
    #[arg(long, global = true, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: the fastest device built in]
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
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
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
    let (device, _) = devices::choose(cli.device)?;
    let encoder = SentenceEncoder::load(&source, device)?;
    match &cli.command {
        Command::Compare(args) => compare(args, &encoder).map(|()| 0),
        Command::Find(args) => find(args, &encoder),
    }
}

fn compare(args: &CompareArgs, encoder: &SentenceEncoder) -> Result<(), Error> {
    args.pictures.probe()?;
    let texts = args.texts.iter().map(|text| encoder.tokens(text));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let rows: Vec<Vec<u32>> = texts.iter().map(|text| text.get_ids().to_vec()).collect();
    let vectors = encoder.vectors(&rows, |_| {});
    for (i, first) in args.texts.iter().enumerate() {
        for (j, second) in args.texts.iter().enumerate().skip(i + 1) {
            println!("{:.6}\t{first}\t{second}", cosine(&vectors[i], &vectors[j]));
        }
    }
    if args.pictures.are_wanted() {
        let layers = encoder.attention(&texts[0])?;
        let page = AttentionPage::new("What the sentence encoder looks at")
            .source(&args.texts[0])
            .group(AttentionGroup::new("Self-attention", layers.clone()));
        args.pictures.draw(&page, &layers)?;
    }
    Ok(())
}

fn find(args: &FindArgs, encoder: &SentenceEncoder) -> Result<u8, Error> {
    let file = match &args.index {
        Some(file) => file.clone(),
        None => args.folder.join(text_index::FILE),
    };
    let bar = input::progress(0, "passages");
    if !args.folder.is_dir() {
        return Err(Error::Option(format!(
            "{} is not a folder",
            args.folder.display()
        )));
    }
    // Before an hour of reading depends on it.
    files::probe(&file).map_err(|error| {
        let file = file.display();
        Error::Option(format!(
            "cannot write {file}: {error}; --index names another place"
        ))
    })?;
    let (index, update) = TextIndex::update(
        &args.folder,
        &args.extensions,
        &file,
        encoder,
        |over, all| {
            bar.set_length(all as u64);
            bar.set_position(over as u64);
        },
    )?;
    bar.finish_and_clear();
    if update.read + update.skipped > 0 {
        exit::warn(&format!(
            "texts read: {}, kept: {}, skipped because they or their names are not UTF-8: {}; {} passages in {}",
            update.read,
            update.kept,
            update.skipped,
            index.len(),
            file.display()
        ));
    }
    if index.is_empty() {
        return Err(Error::Option(format!(
            "there is no text in {}: no file with the extension {} has any",
            args.folder.display(),
            args.extensions.join(" or ")
        )));
    }
    match &args.query {
        Some(query) => answer(query, args.top, &index, encoder).map(|()| 0),
        None => input::each_line(|query| answer(query, args.top, &index, encoder)),
    }
}

fn answer(
    query: &str,
    top: usize,
    index: &TextIndex,
    encoder: &SentenceEncoder,
) -> Result<(), Error> {
    let tokens = encoder.tokens(query)?.get_ids().to_vec();
    let vector = encoder.vectors(&[tokens], |_| {}).remove(0);
    for hit in index.nearest(&vector, top) {
        let text: Vec<&str> = hit.passage.text.split_whitespace().collect();
        println!(
            "{:.4}\t{}:{}\t{}",
            hit.cosine,
            hit.path.display(),
            hit.passage.line,
            text.join(" ")
        );
    }
    Ok(())
}
