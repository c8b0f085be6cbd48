//! Which checkpoints a run keeps, and that each of them is whole.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::translator::Translator;
use burn_attn_models::train::{BEST_CHECKPOINT as BEST, NEWEST_CHECKPOINT as NEWEST};

#[test]
fn the_last_and_the_best_checkpoint_are_kept() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let curve = finished(start(3, out.path())).training.state.curve;
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
    finished(start(1, out.path()));
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
        let mut trainer = stopped_at(3, start(2, out.path()));
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
    let mut trainer = stopped_at(3, start(2, out.path()));
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
        let state = finished(start_with(config, out.path())).training.state;
        assert_eq!(state.step, 5);
        let newest = checkpoint::newest(out.path()).unwrap();
        assert!(newest.part("average").is_err(), "{average:?}");
        let translator = Translator::load(out.path(), &Device::default(), 1).unwrap();
        (state.curve, weights(&translator.model))
    };
    assert_eq!(run(Some(20)), run(None));
}

/// The numbers of the embedding.
fn weights(model: &Seq2Seq) -> Vec<f32> {
    let weight = model.embedding.weight.val().into_data();
    weight.iter::<f32>().collect()
}

#[test]
fn the_average_is_that_of_its_models_and_translates() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let with_average = trained_as(config(9, Schedule::Noam), |recipe| {
        recipe.average = Some(30);
    });
    let mut trainer = start_with(with_average, out.path());
    let mut models = Vec::new();
    for steps in [10, 20, 30] {
        trainer = stopped_at(steps, trainer);
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

    let translator = Translator::load(out.path(), &Device::default(), 1).unwrap();
    let best = read(checkpoint::best(out.path()));
    assert_eq!(weights(&translator.model), best);
}
