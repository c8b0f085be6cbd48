//! The whole story, told when no command is given.

use example_common::{exit::say, files, lock};

use crate::checkpoint::{self, Checkpoint};
use crate::cli::{Shared, TrainArgs};
use crate::commands::{HELD_OUT, Place, begin, report_run, resume, say_how_to_resume};
use crate::data::Split;
use crate::error::Error;
use crate::explain::explain;
use crate::trainer::Outcome;
use crate::translator::Translator;

/// Trains on the built-in corpus, evaluates, translates and explains; returns the exit code.
///
/// A story that was interrupted continues, and one that is finished is told without training again. Another run in the
/// folder is left alone, and reported.
pub fn tell(shared: &Shared, place: &Place) -> Result<u8, Error> {
    let (split, outcome) = train(shared, place)?;
    if let Outcome::Interrupted(name) = outcome {
        let code = say_how_to_resume(&name, &shared.out);
        say("(or run the same command again)");
        return Ok(code);
    }
    let translator = Translator::load(&shared.out, &place.device, 1)?;
    say(&report_run(&translator, &split, HELD_OUT, shared, place)?);

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
    say(&format!(
        "\nWhat every layer and head looks at while it translates\n  {}\n    {translation}",
        example.source
    ));
    say(&format!("is in {}: open it in a browser.", html.display()));
    say(&format!(
        "\nYour turn: cargo run --release -p translation -- translate \"{}\"",
        split.held_out[0].source
    ));
    Ok(0)
}

/// Trains the model of the story, unless it is trained already.
///
/// # Errors
/// If the folder holds another run, which the story must not destroy.
fn train(shared: &Shared, place: &Place) -> Result<(Split, Outcome), Error> {
    lock::free(&shared.out)?;
    let args = TrainArgs::default();
    let mut story = args.config()?;
    let Some(path) = checkpoint::newest(&shared.out)? else {
        return begin(&args, shared, place);
    };
    let Checkpoint { config, state, .. } = Checkpoint::read(&path)?;
    // What only the corpus determines was not given as an option, so it cannot differ.
    story.data.fingerprint.clone_from(&config.data.fingerprint);
    story.model.vocab_size = config.model.vocab_size;
    // Nor what only the machine determines.
    story.replicas = config.replicas;
    if serde_json::to_value(&story).ok() != serde_json::to_value(&config).ok() {
        return Err(Error::Occupied {
            path: shared.out.clone(),
            checkpoint: files::name(&path),
        });
    }
    let trained = resume(&args, shared, place)?;
    if state.finished {
        say("(delete it, or name another folder with --out, to train anew)");
    }
    Ok(trained)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::folder;
    use crate::progress::Progress;
    use crate::trainer::Trainer;

    #[test]
    fn a_finished_story_is_kept() {
        let _turn = crate::trainer::tests::turn();
        let out = tempfile::tempdir().unwrap();
        let shared = Shared {
            out: out.path().join("run"),
            device: None,
            report: None,
            translations: None,
        };
        let place = Place {
            device: Device::default(),
            name: "test".into(),
        };
        drop(folder::prepare(&shared.out).unwrap());
        let mut config = TrainArgs::default().config().unwrap();
        let (split, vocabulary) = config.prepare().unwrap();
        let mut trainer =
            Trainer::start(config, &split, vocabulary, &place.device, &shared.out).unwrap();
        // The story after one step, as if it were the last.
        trainer
            .run(&|state| state.step == 1, &Progress::silent())
            .unwrap();
        trainer.state.finished = true;
        trainer.save().unwrap();
        checkpoint::tidy(&shared.out).unwrap();
        let before = checkpoint::list(&shared.out).unwrap();

        let (_, outcome) = train(&shared, &place).unwrap();
        assert_eq!(outcome, Outcome::Finished);
        assert_eq!(checkpoint::list(&shared.out).unwrap(), before);
    }
}
