//! Which checkpoints a run keeps, and that each of them is whole.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use burn_attn_models::train::{BEST_CHECKPOINT as BEST, NEWEST_CHECKPOINT as NEWEST};

#[test]
fn the_last_and_the_best_checkpoint_are_kept() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(3, out.path());
    trainer.run(|_| false, &Progress::silent()).unwrap();
    let curve = &trainer.training.state.curve;
    let best = curve
        .iter()
        .min_by(|a, b| a.validation.total_cmp(&b.validation))
        .unwrap();
    let epoch = |checkpoint: Result<Checkpoint, Error>| checkpoint.unwrap().state.epoch;
    assert_eq!(epoch(checkpoint::best(out.path())), best.epoch);
    assert_eq!(epoch(checkpoint::newest(out.path())), 3);
    let names: Vec<String> = files(out.path()).into_keys().collect();
    assert_eq!(names, [BEST, crate::curve::FILE, NEWEST]);
}

#[test]
fn a_checkpoint_that_is_not_whole_is_refused_in_one_sentence() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    start(1, out.path())
        .run(|_| false, &Progress::silent())
        .unwrap();
    let place = out.path().join(NEWEST);
    let whole = fs::read(&place).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&place, bytes).unwrap();
        let error = checkpoint::newest(out.path()).err().unwrap().to_string();
        assert!(
            error.contains(&format!("{NEWEST} is not a checkpoint of this program: ")),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    };
    let line = whole.iter().position(|&byte| byte == b'\n').unwrap();
    // In the first line, at its end, and in every part.
    for size in [0, line / 2, line, line + 1, whole.len() - 1] {
        refused(&whole[..size]);
    }
    for part in 1..23 {
        refused(&whole[..line + (whole.len() - line) * part / 23]);
    }
    let mut changed = whole.clone();
    changed[whole.len() - 5] ^= 1;
    refused(&changed);
    fs::write(&place, &whole).unwrap();
    assert!(checkpoint::newest(out.path()).is_ok());
}

/// Every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let bytes = fs::read(&path).unwrap();
            (example_common::files::name(&path), bytes)
        })
        .collect()
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_behind() {
    for in_the_way in [BEST, ".unfinished-newest.checkpoint"] {
        let _turn = turn();
        let out = tempfile::tempdir().unwrap();
        let mut trainer = start(2, out.path());
        trainer.run(stop_at(3), &Progress::silent()).unwrap();
        // A folder in the place of the next checkpoint.
        fs::create_dir(out.path().join(in_the_way)).unwrap();
        let before = files(out.path());
        let error = trainer
            .run(|_| false, &Progress::silent())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot write "), "{error}");
        assert!(files(out.path()) == before);
        assert_eq!(checkpoint::newest(out.path()).unwrap().state.step, 3);
    }
}

#[test]
fn one_state_can_be_saved_twice() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer.run(stop_at(3), &Progress::silent()).unwrap();
    for _ in 0..2 {
        trainer.training.save().unwrap();
        let newest = checkpoint::newest(out.path()).unwrap();
        assert_eq!(newest.state, trainer.training.state);
        // None was measured.
        let names: Vec<String> = files(out.path()).into_keys().collect();
        assert_eq!(names, [NEWEST]);
        assert_eq!(
            checkpoint::best(out.path()).unwrap().state,
            trainer.training.state
        );
    }
}

/// An epoch has five steps, and the first model is added to an average after ten.
#[test]
fn a_run_that_is_too_short_for_an_average_translates_with_its_model() {
    let _turn = turn();
    let run = |average: Option<usize>| {
        let out = tempfile::tempdir().unwrap();
        let config = trained_as(config(1, Schedule::Noam), |recipe| recipe.average = average);
        let mut trainer = start_with(config, out.path());
        trainer.run(|_| false, &Progress::silent()).unwrap();
        assert_eq!(trainer.training.state.step, 5);
        let device = Device::default();
        let newest = checkpoint::newest(out.path()).unwrap();
        assert!(newest.part("average").is_err(), "{average:?}");
        let translator = crate::translator::Translator::load(out.path(), &device, 1).unwrap();
        let weight = translator.model.embedding.weight.val().into_data();
        let weight: Vec<f32> = weight.iter::<f32>().collect();
        (trainer.training.state.curve, weight)
    };
    assert_eq!(run(Some(20)), run(None));
}

#[test]
fn a_run_that_was_stopped_before_its_average_began_begins_it_later() {
    let _turn = turn();
    let progress = Progress::silent();
    let with_average = trained_as(config(3, Schedule::Noam), |recipe| {
        recipe.average = Some(20);
    });
    let straight = tempfile::tempdir().unwrap();
    let mut whole = start_with(with_average.clone(), straight.path());
    whole.run(|_| false, &progress).unwrap();
    let pieces = tempfile::tempdir().unwrap();
    start_with(with_average, pieces.path())
        .run(stop_at(7), &progress)
        .unwrap();
    let mut last = resume(pieces.path());
    assert!(last.training.average().is_none());
    last.run(|_| false, &progress).unwrap();
    assert!(last.training.average().is_some());
    assert_eq!(last.training.state.curve, whole.training.state.curve);
}

#[test]
fn the_average_is_that_of_its_models_and_translates() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let with_average = trained_as(config(9, Schedule::Noam), |recipe| {
        recipe.average = Some(30);
    });
    let mut trainer = start_with(with_average, out.path());
    let weights = |model: &Seq2Seq| -> Vec<f32> {
        let weight = model.embedding.weight.val().into_data();
        weight.iter::<f32>().collect()
    };
    let mut models = Vec::new();
    for steps in [10, 20, 30] {
        trainer.run(stop_at(steps), &Progress::silent()).unwrap();
        models.push(weights(trainer.training.model()));
    }
    let mean = |index: usize| models.iter().map(|model| model[index]).sum::<f32>() / 3.0;
    let read = |checkpoint: Result<Checkpoint, Error>| {
        let checkpoint = checkpoint.unwrap();
        assert!(checkpoint.part("average").is_ok());
        let model = checkpoint.config.model.init(&Device::default());
        weights(&checkpoint.trained(model).unwrap())
    };
    let average = read(checkpoint::newest(out.path()));
    let apart = (0..average.len()).map(|index| (average[index] - mean(index)).abs());
    assert!(apart.fold(0.0, f32::max) < 1e-6);
    let last = models[2].iter().zip(&average).map(|(a, b)| (a - b).abs());
    assert!(last.fold(0.0, f32::max) > 1e-4);

    let translator =
        crate::translator::Translator::load(out.path(), &Device::default(), 1).unwrap();
    let best = read(checkpoint::best(out.path()));
    assert_eq!(weights(&translator.model), best);
}
