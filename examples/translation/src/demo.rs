//! The demo, which runs when no command is given.

use std::path::Path;

use burn_attn_models::train::Outcome;
use example_common::{devices::TargetDevice, error::Error, exit::println, files, lock};

use crate::checkpoint::{self, Checkpoint};
use crate::cli::{OUT, Shared, TrainArgs};
use crate::commands::{HELD_OUT, begin, print_how_to_resume, report_run, resume};
use crate::data::Split;
use crate::explain::explain;
use crate::run_config::RunConfig;
use crate::translator::Translator;

/// Trains on the built-in corpus, evaluates, translates and explains; returns the exit code.
///
/// A demo that was interrupted continues, and one that is finished runs without training again. Another run in the
/// folder is left alone, and reported.
pub fn run(shared: &Shared, target: &TargetDevice) -> Result<u8, Error> {
    let (split, outcome) = train(shared, target)?;
    if let Outcome::Interrupted(name) = outcome {
        let code = print_how_to_resume(&name, &shared.out);
        println("(or run the same command again)");
        return Ok(code);
    }
    let translator = Translator::load(&shared.out, &target.device, 1)?;
    println(&report_run(&translator, &split, HELD_OUT, shared, target)?);

    // A long sentence has more to show.
    let Some(example) = split
        .held_out
        .iter()
        .max_by_key(|example| example.source.len())
    else {
        return Ok(0);
    };
    let html = shared.out.join(checkpoint::PAGE);
    let (translation, page) = explain(&translator, &example.source)?;
    files::replace(&html, page.to_html().as_bytes())?;
    println(&format!(
        "\nWhat every layer and head looks at while it translates\n  {}\n    {translation}",
        example.source
    ));
    println(&format!("is in {}: open it in a browser.", html.display()));
    println(&your_turn(&split.held_out[0].source, &shared.out));
    Ok(0)
}

/// The command that translates a sentence with the run of a folder.
fn your_turn(sentence: &str, out: &Path) -> String {
    let out = match out == Path::new(OUT) {
        true => String::new(),
        false => format!(" --out {}", out.display()),
    };
    format!("\nYour turn: cargo run --release -p translation -- translate \"{sentence}\"{out}")
}

/// Trains the model of the demo, unless it is trained already.
///
/// # Errors
/// If the folder holds another run, which the demo must not destroy.
fn train(shared: &Shared, target: &TargetDevice) -> Result<(Split, Outcome), Error> {
    lock::free(&shared.out)?;
    let args = TrainArgs::default();
    let mut demo = RunConfig::new(&args)?;
    if !checkpoint::exists(&shared.out) {
        return begin(&args, shared, target);
    }
    let Checkpoint { config, state, .. } = checkpoint::newest(&shared.out)?;
    // No option sets what the corpus alone determines.
    demo.data.fingerprint.clone_from(&config.data.fingerprint);
    demo.model.vocab_size = config.model.vocab_size;
    // The machine determines the number of replicas.
    demo.replicas = config.replicas;
    if serde_json::to_value(&demo).ok() != serde_json::to_value(&config).ok() {
        return Err(checkpoint::occupied(&shared.out, &state.name()));
    }
    let trained = resume(shared, target)?;
    if state.finished {
        println("(delete it, or name another folder with --out, to train anew)");
    }
    Ok(trained)
}

#[cfg(test)]
mod tests;
