//! The training loop: kills while it saves, runs that are resumed with other ends, data that is not there.

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use burn::{
    lr_scheduler::{
        LrSchedulerConfig,
        module_lr_scheduler::{ModuleLrScheduler, ModuleLrSchedulerConfig},
    },
    module::ParamGroup,
    optim::{AdamConfig, ModuleOptimizer, SgdConfig},
    tensor::{Device, Tensor, Tolerance},
};
use burn_attn_models::{
    language_model::{LanguageModel, LanguageModelConfig},
    train::{
        BEST_CHECKPOINT, Checkpoint, CheckpointFolder, LanguageModelBatch, NEWEST_CHECKPOINT,
        Outcome, TrainError, Trainer, TrainerConfig, TrainingData, warmup_cosine,
    },
};
use burn_attn_tests::{numbers::alone, sentence};
use tempfile::{TempDir, tempdir};

/// One step for each text of the training part, and a text for validation.
struct Texts {
    training: Vec<[u32; 3]>,
    validation: Vec<[u32; 3]>,
}

impl TrainingData for Texts {
    type Batch = LanguageModelBatch;

    fn steps(&self, _: usize) -> Vec<Vec<usize>> {
        (0..self.training.len()).map(|text| vec![text]).collect()
    }

    fn tokens(&self, sample: usize) -> usize {
        self.training[sample].len()
    }

    fn batch(&self, samples: &[usize], device: &Device) -> LanguageModelBatch {
        let texts: Vec<_> = samples.iter().map(|&one| self.training[one]).collect();
        LanguageModelBatch::new(&texts, device)
    }

    fn validation(&self, device: &Device) -> impl Iterator<Item = LanguageModelBatch> {
        let texts = self.validation.iter();
        texts.map(move |text| {
            let mut batch = LanguageModelBatch::new(&[text], device);
            // All of a text of zeros is padding.
            batch.targets.count *= usize::from(*text != [0; 3]);
            batch
        })
    }
}

/// Three steps for each epoch.
fn texts() -> Texts {
    Texts {
        training: vec![[3, 5, 7], [11, 13, 17], [2, 4, 6]],
        validation: vec![[3, 5, 7]],
    }
}

fn trainer(folder: &Path, change: impl FnOnce(&mut TrainerConfig)) -> Trainer<LanguageModel, ()> {
    trainer_of(folder, SgdConfig::new().init(), schedule(), change)
}

fn schedule() -> ModuleLrScheduler {
    warmup_cosine(0.1, 1, None, 0.0).expect("a schedule")
}

fn trainer_of(
    folder: &Path,
    optimizer: ModuleOptimizer,
    schedule: ModuleLrScheduler,
    change: impl FnOnce(&mut TrainerConfig),
) -> Trainer<LanguageModel, ()> {
    let mut config = TrainerConfig::new(&Device::default());
    change(&mut config);
    let folder = CheckpointFolder {
        path: folder.into(),
        config: (),
        parts: BTreeMap::new(),
    };
    let model = LanguageModelConfig::new(19)
        .with_d_model(6)
        .with_n_heads(3)
        .with_n_layers(1);
    Trainer::start(folder, config, optimizer, schedule, |device| {
        model.init(device)
    })
}

/// Trains until so many steps are done.
fn run(trainer: &mut Trainer<LanguageModel, ()>, texts: &Texts, steps: usize) -> Outcome {
    let outcome = trainer.run(texts, |trainer, _| -> Result<_, TrainError> {
        Ok(match trainer.state.step == steps {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    });
    outcome.expect("it trains")
}

fn folder() -> TempDir {
    tempdir().expect("a folder")
}

/// The embedding's weight in the average of the models.
fn average(trainer: &Trainer<LanguageModel, ()>) -> Tensor<2> {
    let average = trainer.average().expect("an average");
    average.embedding.weight.val()
}

fn newest(folder: &Path) -> Checkpoint<()> {
    Checkpoint::newest(folder).expect("a checkpoint")
}

#[test]
fn a_kill_between_two_renames_does_not_cost_the_best_checkpoint() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let config = |epochs| move |config: &mut TrainerConfig| config.epochs = Some(epochs);
    assert_eq!(
        run(&mut trainer(folder, config(1)), &texts(), 0),
        Outcome::Finished
    );
    let best = fs::read(folder.join(BEST_CHECKPOINT)).expect("the best");
    // What a kill leaves after the best checkpoint has its name, and before the newest has.
    let unfinished = folder.join(format!(".unfinished-{NEWEST_CHECKPOINT}"));
    fs::hard_link(folder.join(BEST_CHECKPOINT), &unfinished).expect("a second name");

    let resumed = trainer(folder, config(2)).resume(&newest(folder));
    run(&mut resumed.expect("a trainer"), &texts(), 4);
    assert_eq!(newest(folder).state.step, 4);
    assert!(!unfinished.exists());
    let still = fs::read(folder.join(BEST_CHECKPOINT)).expect("the best");
    assert!(best == still, "the best checkpoint has changed");
}

#[test]
fn a_run_that_is_resumed_with_fewer_epochs_is_over() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    run(&mut trainer(folder, |_| ()), &texts(), 3);
    // The last step of the epoch is done, and still has to be evaluated.
    let state = newest(folder).state;
    assert_eq!((state.epoch, state.step_in_epoch), (0, 3));
    for _ in 0..2 {
        let resumed = trainer(folder, |config| config.epochs = Some(1)).resume(&newest(folder));
        let mut resumed = resumed.expect("a trainer");
        assert_eq!(run(&mut resumed, &texts(), 0), Outcome::Finished);
        assert_eq!(resumed.state.curve.len(), 1);
        assert!(resumed.state.curve[0].train > 0.0);
    }
}

#[test]
fn a_run_whose_epochs_became_shorter_ends() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    run(&mut trainer(folder, |_| ()), &texts(), 2);
    let resumed = trainer(folder, |config| config.epochs = Some(2)).resume(&newest(folder));
    let mut texts = texts();
    texts.training.truncate(1);
    let mut resumed = resumed.expect("a trainer");
    assert_eq!(run(&mut resumed, &texts, 0), Outcome::Finished);
    assert_eq!((resumed.state.epoch, resumed.state.step), (2, 3));
}

#[test]
fn the_loss_of_an_epoch_is_that_of_its_steps() {
    let _alone = alone();
    let tokens = [1, 4].map(|steps| {
        let folder = folder();
        let mut trainer = trainer(folder.path(), |_| ());
        run(&mut trainer, &texts(), steps);
        trainer.state.loss_tokens
    });
    // The fourth step is the first of the second epoch.
    assert!(tokens[0] > 0);
    assert_eq!(tokens[0], tokens[1]);
}

#[test]
fn an_average_over_fewer_steps_than_it_skips_is_the_newest_model() {
    let (_alone, folder) = (alone(), folder());
    let mut trainer = trainer(folder.path(), |config| config.average = Some(3));
    run(&mut trainer, &texts(), 20);
    let average = average(&trainer);
    let newest = trainer.model().embedding.weight.val().inner();
    average.into_data().assert_eq(&newest.into_data(), true);
}

#[test]
fn an_average_that_begins_late_is_the_mean_of_its_models() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    run(&mut trainer(folder, |_| ()), &texts(), 10);
    let resumed = trainer(folder, |config| config.average = Some(1000)).resume(&newest(folder));
    let mut resumed = resumed.expect("a trainer");
    let models = [20, 30].map(|steps| {
        run(&mut resumed, &texts(), steps);
        resumed.model().embedding.weight.val().inner()
    });
    let average = average(&resumed);
    let [first, second] = models;
    let mean = (first + second) / 2.0;
    let (average, mean) = (average.into_data(), mean.into_data());
    average.assert_approx_eq::<f32>(&mean, Tolerance::absolute(1e-6));

    let average = |config: &mut TrainerConfig| config.average = Some(1000);
    for (written, averaged) in [(2, 2), (0, 3)] {
        let mut checkpoint = newest(folder);
        assert_eq!((checkpoint.state.step, checkpoint.state.averaged), (30, 2));
        // Earlier checkpoints had no such number, and an average from the first step on.
        checkpoint.state.averaged = written;
        let resumed = trainer(folder, average).resume(&checkpoint);
        assert_eq!(resumed.expect("a trainer").state.averaged, averaged);
    }
}

#[test]
fn moments_of_another_optimizer_are_refused() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let of_adam = || trainer_of(folder, AdamConfig::new().init(), schedule(), |_| ());
    run(&mut of_adam(), &texts(), 2);
    of_adam()
        .resume(&newest(folder))
        .map(drop)
        .expect("a trainer");
    let refused = trainer(folder, |_| ()).resume(&newest(folder)).map(drop);
    let sentence = refused.expect_err("refused").to_string();
    assert!(
        sentence.ends_with("optimizer-1: it is of another optimizer"),
        "{sentence}"
    );
}

#[test]
fn a_group_of_parameters_has_its_own_learning_rate() {
    let (_alone, folder) = (alone(), folder());
    let embedding = ParamGroup::from_path("embedding.weight");
    let schedule = ModuleLrSchedulerConfig::new(LrSchedulerConfig::Constant(0.1))
        .with_group(embedding, LrSchedulerConfig::Constant(0.0))
        .init()
        .expect("a schedule");
    let mut trainer = trainer_of(folder.path(), SgdConfig::new().init(), schedule, |_| ());
    let numbers = |trainer: &Trainer<LanguageModel, ()>| {
        let model = trainer.model();
        let attention = &model.transformer.layers[0].self_attention;
        [&model.embedding.weight, &attention.output.weight].map(|weight| weight.val().into_data())
    };
    let before = numbers(&trainer);
    run(&mut trainer, &texts(), 1);
    let after = numbers(&trainer);
    before[0].assert_eq(&after[0], true);
    assert_ne!(before[1], after[1]);
}

#[test]
fn data_that_is_not_there_is_said_before_the_first_step() {
    let _alone = alone();
    let trained = |texts: Texts| {
        let folder = folder();
        sentence(move || run(&mut trainer(folder.path(), |_| ()), &texts, 0))
    };
    let without_validation = Texts {
        validation: Vec::new(),
        ..texts()
    };
    assert_eq!(
        trained(without_validation),
        "Trainer: the validation part has no batch"
    );
    let padding_alone = Texts {
        validation: vec![[0; 3]; 2],
        ..texts()
    };
    assert_eq!(
        trained(padding_alone),
        "Trainer: the validation part has no token to predict"
    );
    let without_training = Texts {
        training: Vec::new(),
        ..texts()
    };
    assert_eq!(trained(without_training), "Trainer: an epoch has no step");
}

#[test]
fn a_folder_that_is_not_there_or_of_another_run_is_said_before_the_first_step() {
    let (_alone, folder) = (alone(), folder());
    let refused = |path: &Path| {
        let mut trainer = trainer(path, |_| ());
        let outcome = trainer.run(&texts(), |_, _| -> Result<_, TrainError> {
            Ok(ControlFlow::Break(()))
        });
        assert_eq!(trainer.state.step, 0);
        outcome.expect_err("refused").to_string()
    };
    let none = folder.path().join("none");
    let sentence = format!(
        "cannot write into {}: No such file or directory (os error 2)",
        none.display()
    );
    assert_eq!(refused(&none), sentence);

    let mut first = trainer(folder.path(), |_| ());
    run(&mut first, &texts(), 2);
    let path = folder.path().join(NEWEST_CHECKPOINT);
    let sentence = "belongs to another run: resume it, or choose another folder";
    assert_eq!(
        refused(folder.path()),
        format!("{} {sentence}", path.display())
    );
    assert_eq!(newest(folder.path()).state.step, 2);
    // It goes on in its own folder.
    run(&mut first, &texts(), 4);
    assert_eq!(newest(folder.path()).state.step, 4);

    // The best checkpoint may be all that is left of a run. Beside an unfinished newest one, it is of a run that begins anew.
    fs::remove_file(path).expect("the newest");
    let best = folder.path().join(BEST_CHECKPOINT);
    assert_eq!(
        refused(folder.path()),
        format!("{} {sentence}", best.display())
    );
    let unfinished = format!(".unfinished-{NEWEST_CHECKPOINT}");
    fs::write(folder.path().join(unfinished), "half").expect("a file");
    run(&mut trainer(folder.path(), |_| ()), &texts(), 2);
    assert_eq!(newest(folder.path()).state.step, 2);
}

#[test]
fn what_a_checkpoint_cannot_hold_is_said_before_the_first_step() {
    let (_alone, folder) = (alone(), folder());
    for name in ["model", "average", "optimizer-2"] {
        let mut trainer = trainer(folder.path(), |_| ());
        trainer.folder.parts.insert(name.into(), vec![3]);
        assert_eq!(
            sentence(move || run(&mut trainer, &texts(), 0)),
            format!("Trainer: a part of the program cannot be named {name}")
        );
    }
    assert_eq!(
        sentence(|| trainer(folder.path(), |config| config.optimizers = 0)),
        "Trainer: there are no optimizers"
    );
}
