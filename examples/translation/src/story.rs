//! The whole story, told when no command is given.

use crate::checkpoint::{self, Checkpoint};
use crate::cli::{Shared, TrainArgs};
use crate::commands::{Place, begin, report_run, resume, say_how_to_resume};
use crate::error::Error;
use crate::explain::explain;
use crate::files;
use crate::trainer::Outcome;
use crate::translator::Translator;

/// Trains on the built-in corpus, evaluates, translates and explains; returns the exit code.
///
/// A story that was interrupted goes on; one that was finished is told anew, in place of the old one. Another run in the
/// folder is left alone, and named.
pub fn tell(shared: &Shared, place: &Place) -> Result<u8, Error> {
    let args = TrainArgs::default();
    let (split, outcome) = match checkpoint::newest(&shared.out)? {
        Some(path) if is_unfinished_story(&path, &args, shared)? => {
            resume(&args, &path, shared, place)?
        }
        Some(_) => {
            for path in checkpoint::list(&shared.out)? {
                checkpoint::remove(&path)?;
            }
            begin(args.config()?, shared, place)?
        }
        None => begin(args.config()?, shared, place)?,
    };
    if let Outcome::Interrupted(name) = outcome {
        say_how_to_resume(&name, &shared.out);
        println!("(or just tell the story again)");
        return Ok(130);
    }
    let translator = Translator::load(&shared.out, &place.device, 1)?;
    report_run(&translator, &split, shared, place)?;

    // A long sentence has more to show.
    let Some(example) = split
        .held_out
        .iter()
        .max_by_key(|example| example.source.len())
    else {
        return Ok(0);
    };
    let html = shared.out.join("attention.html");
    let translation = explain(&translator, &example.source, &html)?;
    println!(
        "\nWhat every layer and head looks at while it translates\n  {}\n    {translation}",
        example.source
    );
    println!("is in {}: open it in a browser.", html.display());
    println!(
        "\nYour turn: cargo run --release -p translation -- translate \"{}\"",
        split.held_out[0].source
    );
    Ok(0)
}

/// Whether the checkpoint belongs to a story that was interrupted.
///
/// # Errors
/// If it belongs to another run: the story must not destroy it.
fn is_unfinished_story(
    path: &std::path::Path,
    args: &TrainArgs,
    shared: &Shared,
) -> Result<bool, Error> {
    let checkpoint = Checkpoint::read(path)?;
    let mut story = args.config()?;
    // What only the corpus can tell was not asked for, so it cannot differ.
    story
        .data
        .fingerprint
        .clone_from(&checkpoint.config.data.fingerprint);
    story.model.vocab_size = checkpoint.config.model.vocab_size;
    let same = serde_json::to_value(&story).ok() == serde_json::to_value(&checkpoint.config).ok();
    if !same {
        return Err(Error::Occupied {
            path: shared.out.clone(),
            checkpoint: files::name(path),
        });
    }
    Ok(!checkpoint.state.finished)
}
