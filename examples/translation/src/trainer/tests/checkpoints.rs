//! Which checkpoints a run keeps, and that each of them is whole.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;

#[test]
fn the_last_and_the_best_checkpoint_are_kept() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(3, out.path());
    trainer.run(&|_| false, &Progress::silent()).unwrap();
    let curve = &trainer.state.curve;
    let best = curve
        .iter()
        .min_by(|a, b| a.validation.total_cmp(&b.validation))
        .unwrap();
    assert_eq!(
        checkpoint::best(out.path()).unwrap(),
        out.path().join(format!("epoch-{:04}", best.epoch))
    );
    assert_eq!(
        checkpoint::newest(out.path()).unwrap().unwrap(),
        out.path().join("epoch-0003")
    );
    let entries = std::fs::read_dir(out.path()).unwrap().count();
    // And the curve.
    assert_eq!(entries, if best.epoch == 3 { 2 } else { 3 });
    assert!(out.path().join(crate::curve::FILE).is_file());
}

#[test]
fn a_truncated_checkpoint_is_refused_in_one_sentence() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    start(1, out.path())
        .run(&|_| false, &Progress::silent())
        .unwrap();
    let path = checkpoint::newest(out.path()).unwrap().unwrap();
    for file in [
        "model.bpk",
        "optimizer.bpk",
        "tokenizer.json",
        "config.json",
        "state.json",
    ] {
        let place = path.join(file);
        let whole = std::fs::read(&place).unwrap();
        std::fs::write(&place, &whole[..whole.len() / 2]).unwrap();
        let error = Checkpoint::read(&path).err().unwrap().to_string();
        assert!(
            error.contains(&format!("{file} is not a checkpoint of this program: ")),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
        std::fs::write(&place, &whole).unwrap();
    }
    assert!(Checkpoint::read(&path).is_ok());
}

/// Every file of a folder and of those in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.append(&mut files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_behind() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer
        .run(&|state| state.step == 3, &Progress::silent())
        .unwrap();
    // A file in the place of the next checkpoint: what is written aside cannot take its name.
    std::fs::write(out.path().join("epoch-0001"), "in the way").unwrap();
    let before = files(out.path());
    let error = trainer
        .run(&|_| false, &Progress::silent())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot write "), "{error}");
    assert!(files(out.path()) == before);
    Checkpoint::read(&out.path().join("epoch-0000-step-000003")).unwrap();
}

#[test]
fn one_state_can_be_saved_twice() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer.run(&stop_at(3), &Progress::silent()).unwrap();
    let first = out.path().join("epoch-0000-step-000003");
    for again in 1..=11 {
        let name = trainer.save().unwrap();
        let newest = checkpoint::newest(out.path()).unwrap().unwrap();
        assert_eq!(newest, out.path().join(&name), "time {again}");
        Checkpoint::read(&newest).unwrap();
        // A kill would leave the one before as well, whole.
        Checkpoint::read(&first).unwrap();
    }
    checkpoint::tidy(out.path()).unwrap();
    let left = checkpoint::list(out.path()).unwrap();
    assert_eq!(left, [out.path().join("epoch-0000-step-000003-again-11")]);
    // The one that was removed does not make its name free for a newer one.
    assert_eq!(trainer.save().unwrap(), "epoch-0000-step-000003-again-12");
}

/// An epoch has five steps, and the first model is added to an average after ten.
#[test]
fn a_run_that_is_too_short_for_an_average_translates_with_its_model() {
    let _turn = turn();
    let run = |average: Option<usize>| {
        let out = tempfile::tempdir().unwrap();
        let config = RunConfig {
            average,
            ..config(1, Schedule::Noam)
        };
        let mut trainer = start_with(config, out.path());
        trainer.run(&|_| false, &Progress::silent()).unwrap();
        assert_eq!(trainer.state.step, 5);
        let newest = checkpoint::newest(out.path()).unwrap().unwrap();
        assert!(!newest.join("average.bpk").exists(), "{average:?}");
        let device = Device::default();
        let translator = crate::translator::Translator::load(out.path(), &device, 1).unwrap();
        let weight = translator.model.embedding.weight.val().into_data();
        let weight: Vec<f32> = weight.iter::<f32>().collect();
        (trainer.state.curve, weight)
    };
    assert_eq!(run(Some(20)), run(None));
}

#[test]
fn a_run_that_was_stopped_before_its_average_began_begins_it_later() {
    let _turn = turn();
    let progress = Progress::silent();
    let with_average = RunConfig {
        average: Some(20),
        ..config(3, Schedule::Noam)
    };
    let straight = tempfile::tempdir().unwrap();
    let mut whole = start_with(with_average.clone(), straight.path());
    whole.run(&|_| false, &progress).unwrap();
    let pieces = tempfile::tempdir().unwrap();
    start_with(with_average, pieces.path())
        .run(&stop_at(7), &progress)
        .unwrap();
    let mut last = resume(pieces.path());
    assert!(last.average.is_none());
    last.run(&|_| false, &progress).unwrap();
    assert!(last.average.is_some());
    assert_eq!(last.state.curve, whole.state.curve);
}

#[test]
fn the_average_is_that_of_its_models_and_translates() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start_with(
        RunConfig {
            average: Some(30),
            ..config(9, Schedule::Noam)
        },
        out.path(),
    );
    let weights = |model: &Seq2Seq| -> Vec<f32> {
        let weight = model.embedding.weight.val().into_data();
        weight.iter::<f32>().collect()
    };
    let mut models = Vec::new();
    for steps in [10, 20, 30] {
        trainer.run(&stop_at(steps), &Progress::silent()).unwrap();
        models.push(weights(trainer.model()));
    }
    let mean = |index: usize| models.iter().map(|model| model[index]).sum::<f32>() / 3.0;
    let read = |path: &Path| {
        let average = Checkpoint::read(path).unwrap().average(&Device::default());
        weights(&average.unwrap().unwrap())
    };
    let average = read(&checkpoint::newest(out.path()).unwrap().unwrap());
    let apart = (0..average.len()).map(|index| (average[index] - mean(index)).abs());
    assert!(apart.fold(0.0, f32::max) < 1e-6);
    let last = models[2].iter().zip(&average).map(|(a, b)| (a - b).abs());
    assert!(last.fold(0.0, f32::max) > 1e-4);

    let translator =
        crate::translator::Translator::load(out.path(), &Device::default(), 1).unwrap();
    let best = read(&checkpoint::best(out.path()).unwrap());
    assert_eq!(weights(&translator.model), best);
}
