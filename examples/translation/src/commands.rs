//! What each command does.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::train::Interrupter;
use burn_attn::ops::backend::in_host_memory;
use burn_attn_models::train::{Outcome, Replicas};
use example_common::devices::TargetDevice;
use example_common::error::Error;
use example_common::exit::{STOPPED, println};
use example_common::files;
use example_common::learner;
use example_common::lock;

use crate::checkpoint;
use crate::cli::{Command, Shared, TrainArgs};
use crate::curve;
use crate::data::{self, Split};
use crate::evaluate::evaluate;
use crate::explain::explain;
use crate::progress::{Progress, duration};
use crate::report::{self, Report};
use crate::run_config::RunConfig;
use crate::trainer::Trainer;
use crate::translate::translate;
use crate::translator::Translator;

/// How reports name the sentences that were set aside; a file of `--test` has its path instead.
pub const HELD_OUT: &str = "held-out sentences, never seen";

/// Runs the command and returns the exit code.
pub fn run(command: Command, shared: &Shared, target: &TargetDevice) -> Result<u8, Error> {
    match command {
        Command::Train { resume, args } => {
            let args = (!resume).then_some(args);
            train(args.as_deref(), shared, target)
        }
        Command::Translate { text, search } => {
            refuse_outputs(shared, "translate")?;
            let translator = Translator::load(&shared.out, &target.device, search.beam)?;
            translate(&translator, text)
        }
        Command::Evaluate { data, test, search } => {
            let translator = Translator::load(&shared.out, &target.device, search.beam)?;
            let corpus = data.or_else(|| translator.config.data.file.clone());
            files::probe_outputs(&outputs(shared), corpus.iter().chain(&test))?;
            let (split, tested_on) = match test {
                Some(test) => {
                    let held_out = data::group_by_source(&data::read_tsv(&test)?);
                    let split = Split {
                        held_out,
                        ..Split::default()
                    };
                    (split, test.display().to_string())
                }
                None => {
                    let mut config = translator.config.clone();
                    config.data.file = corpus;
                    (config.reload(&shared.out)?, HELD_OUT.into())
                }
            };
            // Unlike a training, it fails if its figures cannot be written.
            println!(
                "{}",
                report_run(&translator, &split, &tested_on, shared, target)?
            );
            Ok(0)
        }
        Command::Explain {
            sentence,
            search,
            mut pictures,
        } => {
            refuse_outputs(shared, "explain")?;
            let translator = Translator::load(&shared.out, &target.device, search.beam)?;
            if !pictures.are_wanted() {
                pictures.html = Some(shared.out.join(checkpoint::PAGE));
            }
            pictures.probe()?;
            let (translation, page) = explain(&translator, &sentence)?;
            pictures.print(&format!("{translation}\n"));
            pictures.draw(&page)?;
            Ok(0)
        }
    }
}

/// Starts a run, or resumes one if there are no options.
fn train(args: Option<&TrainArgs>, shared: &Shared, target: &TargetDevice) -> Result<u8, Error> {
    let (split, outcome) = match args {
        Some(args) => begin(args, shared, target)?,
        None => resume(shared, target)?,
    };
    if let Outcome::Interrupted(name) = outcome {
        return Ok(print_how_to_resume(&name, &shared.out));
    }
    let translator = Translator::load(&shared.out, &target.device, 1)?;
    println(&report_run(&translator, &split, HELD_OUT, shared, target)?);
    Ok(0)
}

/// The files that are written at the very end, which may be in the folder of the run.
fn outputs(shared: &Shared) -> [(&'static str, &Option<PathBuf>); 2] {
    [
        ("--report", &shared.report),
        ("--translations", &shared.translations),
    ]
}

/// Refuses the files that a command does not write.
fn refuse_outputs(shared: &Shared, command: &str) -> Result<(), Error> {
    match outputs(shared).into_iter().find(|(_, path)| path.is_some()) {
        None => Ok(()),
        Some((option, _)) => Err(format!(
            "{option} is written by the demo, train and evaluate, not by {command}"
        )
        .into()),
    }
}

/// Decides the number of replicas, if it is not given. More than one is refused on any device but the CPU's threads: they would wait for
/// each other there, and would share one RNG, so that dropout depended on scheduling.
fn decide_replicas(
    config: &mut RunConfig,
    asked: Option<usize>,
    target: &TargetDevice,
) -> Result<(), Error> {
    let shares_threads = in_host_memory(&target.device);
    match asked {
        Some(replicas) if replicas > 1 && !shares_threads => Err(format!(
            "--replicas {replicas} needs the device flex or ndarray, got {}",
            target.name
        )
        .into()),
        None if shares_threads => {
            config.replicas = Replicas::recommended().min(config.recipe.batch.max(1));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Starts a run in an empty folder.
pub fn begin(
    args: &TrainArgs,
    shared: &Shared,
    target: &TargetDevice,
) -> Result<(Split, Outcome), Error> {
    lock::free(&shared.out)?;
    if checkpoint::exists(&shared.out) {
        let newest = checkpoint::newest(&shared.out)?;
        return Err(checkpoint::occupied(&shared.out, &newest.state.name()));
    }
    let folder = checkpoint::folder(&shared.out);
    folder.check_no_run()?;
    let mut config = RunConfig::new(args)?;
    decide_replicas(&mut config, args.replicas, target)?;
    (config.recipe.precision).check(&target.device, &target.name)?;
    let _lock = folder.start()?;
    files::probe_outputs(&outputs(shared), &args.data)?;
    let (split, vocabulary) = config.prepare()?;
    let mut trainer = Trainer::start(config, &split, vocabulary, &target.device, &shared.out)?;
    println(&format!(
        "training on {}: {} pairs, {} tokens in the vocabulary, {} parameters, on {}{}",
        trainer.config().data.name(),
        split.train.len(),
        trainer.config().model.vocab_size,
        trainer.training.model().num_params(),
        target.name,
        match trainer.config().replicas {
            1 => String::new(),
            replicas => format!(", {replicas} replicas"),
        },
    ));
    Ok((split, drive(&mut trainer)?))
}

/// Resumes the run of a folder from its newest checkpoint.
pub fn resume(shared: &Shared, target: &TargetDevice) -> Result<(Split, Outcome), Error> {
    lock::free(&shared.out)?;
    // A folder that may be a typing error is not created.
    checkpoint::check(&shared.out)?;
    let _lock = lock::prepare(&shared.out)?;
    let checkpoint = checkpoint::newest(&shared.out)?;
    files::probe_outputs(&outputs(shared), &checkpoint.config.data.file)?;
    let precision = checkpoint.config.recipe.precision;
    precision.check(&target.device, &target.name)?;
    let split = checkpoint.config.reload(&shared.out)?;
    if checkpoint.state.finished {
        // A kill after the last checkpoint may have left the curve without its end.
        curve::draw(&checkpoint.state.curve, &shared.out.join(curve::FILE))?;
        println(&format!(
            "{} is complete: nothing is left to train",
            shared.out.display()
        ));
        return Ok((split, Outcome::Finished));
    }
    let mut trainer = Trainer::resume(&checkpoint, &split, &target.device, &shared.out)?;
    println(&format!(
        "going on from {} in {}, on {}",
        checkpoint.state.name(),
        shared.out.display(),
        target.name
    ));
    Ok((split, drive(&mut trainer)?))
}

/// Trains with a progress bar until the end or Ctrl-C.
fn drive(trainer: &mut Trainer) -> Result<Outcome, Error> {
    let interrupter = Interrupter::new();
    learner::stop_by_ctrl_c(interrupter.clone());
    let progress = Progress::new();
    let outcome = trainer.run(|_| interrupter.should_stop(), &progress);
    // From here on Ctrl-C is the second one, which ends the program.
    interrupter.stop(None);
    progress.finish();
    outcome
}

/// Tells the user what to do after an interruption and returns the exit code.
pub fn print_how_to_resume(name: &str, out: &Path) -> u8 {
    println(&format!(
        "stopped; train --resume --out {} goes on from {name}",
        out.display()
    ));
    STOPPED
}

/// Evaluates a run, writes the figures where `--report` says and the translations where `--translations` says, and returns the figures, to be
/// printed.
pub fn report_run(
    translator: &Translator,
    split: &Split,
    tested_on: &str,
    shared: &Shared,
    target: &TargetDevice,
) -> Result<String, Error> {
    // A best checkpoint alone is a model that was handed on.
    let checkpoint = match checkpoint::exists(&shared.out) {
        true => checkpoint::newest(&shared.out),
        false => checkpoint::best(&shared.out),
    };
    let state = checkpoint?.state;
    let scores = evaluate(translator, split)?;
    // Before anything is printed: the reader of the lines may be gone.
    if let Some(path) = &shared.translations {
        report::write_translations(path, &split.held_out, &scores.translations)?;
    }
    if let Some(path) = &shared.report {
        let report = Report {
            tested_on,
            scores: &scores,
            checkpoint: &translator.checkpoint,
            beam: translator.beam,
            state: &state,
            parameters: translator.model.num_params(),
            device: &target.name,
            config: &translator.config,
        };
        report.write(path)?;
    }
    Ok(format!(
        "\ntrained for {} ({:.0} tokens/s); translated with checkpoint {}\n{}",
        duration(state.seconds),
        state.tokens_per_second(),
        translator.checkpoint,
        report::text(&scores, &split.held_out, tested_on)
    ))
}
