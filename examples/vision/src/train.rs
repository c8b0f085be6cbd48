//! Training with the library's trainer.

use std::{collections::BTreeMap, ops::ControlFlow, path::PathBuf};

use burn::{module::Module, optim::AdamWConfig, tensor::Device};
use burn_attn_models::train::{CheckpointFolder, Replicas, Trainer, TrainerConfig, warmup_cosine};
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit::{STOPPED, println},
    input,
    run_folder::{RunFolder, name as progress},
    training::{self, Kind},
};
use serde::{Deserialize, Serialize};

use crate::{
    Task,
    digits::Digits,
    int8,
    mnist::Mnist,
    objects::Objects,
    segments::Segments,
    training_task::{Recipe, TrainingTask, VALIDATION},
};

/// What a run writes beside its checkpoints.
const RESULTS: &[&str] = &[
    "config.json",
    "preprocessor_config.json",
    "model.safetensors",
    int8::FILE,
];

/// Options of `train`.
#[derive(Args)]
pub struct TrainArgs {
    /// What the model learns
    task: Task,
    /// The folder with MNIST
    #[arg(long, value_name = "FOLDER", default_value = "target/weights/mnist")]
    data: PathBuf,
    /// The folder of the run: checkpoints with the loss curve, and the model, as `transformers` saves it in f16, but for `detect`, and in int8,
    /// but for `recognise`
    #[arg(long, value_name = "FOLDER", default_value = "vision-run")]
    out: PathBuf,
    /// Where to train: flex, ndarray, wgpu, vulkan, metal, webgpu, cuda, rocm or cpu, each with its cargo feature; or several with an equal
    /// part of each batch, as in `flex,flex` or `cuda:0,cuda:1` [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    devices: Vec<DeviceArg>,
    /// Resume from the newest checkpoint in --out, on the same loss curve, with the recipe that the run began with
    #[arg(long, conflicts_with = "RecipeArgs")]
    resume: bool,
    #[command(flatten)]
    recipe: RecipeArgs,
}

/// The options of a run that its task has its own defaults of.
#[derive(Args)]
struct RecipeArgs {
    /// Passes over the training part; of scenes, 4,096 that were never seen before [default: 20, 40 or 24]
    #[arg(long)]
    epochs: Option<usize>,
    /// Images of a step, on all devices together [default: 64 of recognise, 32 of the others]
    #[arg(long)]
    batch: Option<usize>,
    /// Highest learning rate: it rises to here in the first twentieth of the steps, then falls along a cosine to 0 [default: 0.002, of detect
    /// 0.001]
    #[arg(long)]
    learning_rate: Option<f64>,
    /// Seed of parameters, order and augmentation [default: 1]
    #[arg(long)]
    seed: Option<u64>,
}

/// What a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    /// What the model does.
    task: String,
    recipe: Recipe,
    /// The fingerprint of the data.
    data: String,
}

/// Trains a model and saves it; returns the exit code.
pub fn run(args: &TrainArgs) -> Result<u8, Error> {
    match args.task {
        Task::Recognise => train::<Digits>(args, "recognise"),
        Task::Detect => train::<Objects>(args, "detect"),
        Task::Segment => train::<Segments>(args, "segment"),
    }
}

fn train<D: TrainingTask>(args: &TrainArgs, task: &str) -> Result<u8, Error> {
    let folder = RunFolder::new(&args.out, RESULTS);
    let devices = devices::open_all(&args.devices)?;
    // Nobody else trains in the folder for as long as it is locked: until the end of this function.
    let (checkpoint, lock) = folder.newest::<Run>(args.resume)?.unzip();
    let resumed = checkpoint.as_ref().map(|checkpoint| &checkpoint.config);
    if let Some(run) = resumed.filter(|run| run.task != task) {
        return Err(folder.refused(&format!("the run here is of {}, not of {task}", run.task)));
    }
    let recipe = match resumed {
        Some(run) => run.recipe.clone(),
        None => args.recipe.or(D::RECIPE),
    };
    check(&recipe, devices.len())?;
    let mnist = Mnist::training(&args.data)?;
    let fingerprint = mnist.fingerprint();
    let name = args.data.display();
    if resumed.is_some_and(|run| run.data != fingerprint) {
        return Err(folder.refused(&format!("{name} is not the data of this run")));
    }
    if mnist.len() < VALIDATION {
        let scans = mnist.len();
        return Err(format!("{name} has {scans} scans, but {VALIDATION} are needed").into());
    }
    let data = D::new(mnist, &recipe);
    let _lock = match lock {
        Some(lock) => lock,
        None => folder.start()?,
    };
    let run = Run {
        task: task.into(),
        recipe,
        data: fingerprint,
    };
    let mut trainer = trainer(&folder, run, &data, &devices)?;
    if let Some(checkpoint) = &checkpoint {
        trainer = trainer.resume(checkpoint)?;
    }
    let epochs = trainer.folder.config.recipe.epochs;
    let go_on = |_: &Trainer<_, _>| ControlFlow::Continue(());
    let is_stopped = training::run(&mut trainer, &data, Kind::Other, epochs, go_on)?;
    if is_stopped {
        println(&format!(
            "stopped; train {task} --resume --data {name} --out {} goes on after {}",
            folder.path.display(),
            progress(&trainer.state)
        ));
        return Ok(STOPPED);
    }
    D::save(trainer.trained(), &folder.path)?;
    println(&format!("the model is in {}", folder.path.display()));
    Ok(0)
}

/// The training of a run that begins.
fn trainer<D: TrainingTask>(
    folder: &RunFolder,
    run: Run,
    data: &D,
    devices: &[Device],
) -> Result<Trainer<D::Model, Run>, Error> {
    let recipe = run.recipe.clone();
    let steps = data.steps(0).len().saturating_mul(recipe.epochs);
    let optimizer = AdamWConfig::new()
        .with_beta_2(0.98)
        .with_epsilon(1e-8)
        .with_weight_decay(0.05)
        .init();
    let rate = recipe.learning_rate;
    let scheduler = warmup_cosine(rate, steps / 20, Some(steps), 0.0)
        .map_err(|problem| format!("--learning-rate {rate}: {problem}"))?;
    let config = TrainerConfig {
        replicas: match devices {
            [_] => Replicas::new(1),
            _ => Replicas::on(devices),
        },
        seed: recipe.seed,
        epochs: Some(recipe.epochs),
        clip: Some(1.0),
        ..TrainerConfig::new(&devices[0])
    };
    let checkpoints = CheckpointFolder {
        path: folder.path.clone(),
        config: run,
        parts: BTreeMap::new(),
    };
    let trainer = Trainer::start(checkpoints, config, optimizer, scheduler, D::init);
    let parameters = trainer.model().num_params();
    println(&format!("{parameters} parameters, {steps} steps"));
    Ok(trainer)
}

impl RecipeArgs {
    /// The recipe, with the values of `default` for options that are not given.
    fn or(&self, default: Recipe) -> Recipe {
        Recipe {
            epochs: self.epochs.unwrap_or(default.epochs),
            batch: self.batch.unwrap_or(default.batch),
            learning_rate: self.learning_rate.unwrap_or(default.learning_rate),
            seed: self.seed.unwrap_or(default.seed),
        }
    }
}

fn check(recipe: &Recipe, devices: usize) -> Result<(), Error> {
    let Recipe {
        epochs,
        batch,
        learning_rate: rate,
        ..
    } = *recipe;
    input::check([
        ("--batch", batch > 0, "at least 1", batch as f64),
        ("--epochs", epochs > 0, "at least 1", epochs as f64),
        (
            "--learning-rate",
            rate > 0.0 && rate <= 1.0,
            "above 0 and at most 1",
            rate,
        ),
    ])?;
    match batch.is_multiple_of(devices) {
        true => Ok(()),
        false => Err(format!("{devices} devices cannot share a batch of {batch} equally").into()),
    }
}

#[cfg(test)]
mod tests;
