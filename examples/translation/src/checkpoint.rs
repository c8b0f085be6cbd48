//! The folder of a run, and its checkpoints: those of the training, with the configuration and the vocabulary.

use std::path::Path;

use burn_attn_models::train::{self, BEST_CHECKPOINT, NEWEST_CHECKPOINT};
use example_common::error::Error;
use example_common::run_folder::RunFolder;

use crate::curve;
use crate::run_config::RunConfig;
use crate::vocabulary::Vocabulary;

/// A checkpoint that was read.
pub type Checkpoint = train::Checkpoint<RunConfig>;

/// The part with the vocabulary.
pub const TOKENIZER: &str = "tokenizer";

/// The page of attention in the folder of a run.
pub const PAGE: &str = "attention.html";

/// The folder of a run, which draws both files only beside a checkpoint.
pub fn folder(out: &Path) -> RunFolder {
    RunFolder::new(out, &[curve::FILE, PAGE])
}

/// The error about a folder with another run, whose newest checkpoint has this name.
pub fn occupied(out: &Path, name: &str) -> Error {
    let out = out.display();
    let ways = format!(
        "train --resume --out {out} goes on with it, --out with another folder starts anew"
    );
    format!("{out} already holds the run {name}: {ways}").into()
}

/// Whether a folder holds a run that can be resumed.
pub fn exists(out: &Path) -> bool {
    out.join(NEWEST_CHECKPOINT).exists()
}

/// Refuses a folder without such a run.
pub fn check(out: &Path) -> Result<(), Error> {
    match exists(out) {
        true => Ok(()),
        false => Err(format!(
            "{} holds no checkpoint: train first, or name the folder of a run with --out",
            out.display()
        )
        .into()),
    }
}

/// The newest checkpoint of a run.
///
/// # Errors
/// If there is none, or it is not complete.
pub fn newest(out: &Path) -> Result<Checkpoint, Error> {
    check(out)?;
    checked(Checkpoint::newest(out)?)
}

/// The checkpoint with the lowest validation loss, or the newest if none was measured.
///
/// # Errors
/// If there is none, or it is not complete.
pub fn best(out: &Path) -> Result<Checkpoint, Error> {
    if !out.join(BEST_CHECKPOINT).exists() {
        check(out)?;
    }
    checked(Checkpoint::best(out)?)
}

fn checked(checkpoint: Checkpoint) -> Result<Checkpoint, Error> {
    checkpoint.config.validate()?;
    Ok(checkpoint)
}

/// The vocabulary of the run.
pub fn vocabulary(checkpoint: &Checkpoint) -> Result<Vocabulary, Error> {
    Vocabulary::from_json(checkpoint.part(TOKENIZER)?)
}
