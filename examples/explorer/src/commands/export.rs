//! A model of the page from a run of the translator.

use std::path::{Path, PathBuf};

use burn::{module::Module, tensor::Device};
use burn_attn_models::{
    seq2seq::Seq2SeqConfig,
    train::Checkpoint,
    weights::{in_f16, in_int8},
};
use clap::{Args, ValueEnum};
use example_common::{error::Error, exit::println};
use explorer_model::ModelFile;
use serde::Deserialize;

/// Options of `export`.
#[derive(Args)]
pub struct ExportArgs {
    /// The folder of the run, as `translation train --out` made it
    #[arg(long, value_name = "FOLDER", default_value = "translation-run")]
    run: PathBuf,
    /// The model's name: the page reads NAME.model.gz and NAME.tokenizer.json.gz
    #[arg(long)]
    name: String,
    /// How its numbers are stored
    #[arg(long, value_enum, default_value_t = Stored::F16)]
    stored: Stored,
}

/// How the numbers of a model are stored.
#[derive(Clone, Copy, ValueEnum)]
enum Stored {
    /// In 16 bits.
    F16,
    /// Matrices in 8 bits, the rest in 16.
    Int8,
}

/// What the page needs of the configuration of a run.
#[derive(Deserialize)]
struct RunConfig {
    model: Seq2SeqConfig,
}

/// Writes the best model of a run, and its tokenizer.
pub fn run(args: &ExportArgs, page: &Path) -> Result<(), Error> {
    let checkpoint = Checkpoint::<RunConfig>::best(&args.run)?;
    let config = &checkpoint.config.model;
    let model = checkpoint.trained(config.init(&Device::default()))?.valid();
    let model = match args.stored {
        Stored::F16 => in_f16(model),
        Stored::Int8 => in_int8(model),
    };
    let bytes = ModelFile::to_bytes(config, model)?;
    for (end, bytes) in [
        ("model", bytes.as_slice()),
        ("tokenizer.json", checkpoint.part("tokenizer")?),
    ] {
        let path = page.join(format!("{}.{end}.gz", args.name));
        let size = super::page_files::write_compressed(&path, bytes)?;
        println(&format!("{}: {size} bytes", path.display()));
    }
    Ok(())
}
