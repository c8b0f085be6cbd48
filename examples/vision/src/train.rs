//! Training with the library's trainer.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use burn::{
    module::Module,
    optim::AdamWConfig,
    tensor::{Device, FloatDType},
};
use burn_attn_models::{
    pretrained::LoadOptions,
    train::{CheckpointFolder, Replicas, Trainer, TrainerConfig, warmup_cosine},
    vit::{self, Vit},
};
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit::{STOPPED, println},
    input,
    run_folder::{RunFolder, name},
    training::{self, Kind},
};
use serde::{Deserialize, Serialize};

use crate::{
    Task,
    digits::{self, Digits, VALIDATION},
    mnist::Mnist,
};

/// What a run writes beside its checkpoints.
const RESULTS: &[&str] = &[
    "config.json",
    "preprocessor_config.json",
    "model.safetensors",
];

/// Options of `train`.
#[derive(Args)]
pub struct TrainArgs {
    /// What the model learns
    task: Task,
    /// The folder with MNIST
    #[arg(long, value_name = "FOLDER", default_value = "target/weights/mnist")]
    data: PathBuf,
    /// The folder of the run: checkpoints with the loss curve, and the model as `transformers` saves it, in f16
    #[arg(long, value_name = "FOLDER", default_value = "vision-run")]
    out: PathBuf,
    /// Where to train: flex, ndarray, wgpu, vulkan, metal, webgpu, cuda, rocm or cpu, each with its cargo feature; or several with an equal
    /// part of each batch, as in `flex,flex` or `cuda:0,cuda:1` [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    devices: Vec<DeviceArg>,
    /// Resume from the newest checkpoint in --out, on the same loss curve, with the recipe that the run began with
    #[arg(long, conflicts_with = "Recipe")]
    resume: bool,
    #[command(flatten)]
    recipe: Recipe,
}

/// What a resumed run has to repeat.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Recipe {
    /// Passes over the training part
    #[arg(long, default_value_t = 20)]
    epochs: usize,
    /// Images of a step, on all devices together
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Highest learning rate: it rises to here in the first twentieth of the steps, then falls along a cosine to 0
    #[arg(long, default_value_t = 2e-3)]
    learning_rate: f64,
    /// Seed of parameters, order and augmentation
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    recipe: Recipe,
    /// The fingerprint of the data.
    data: String,
}

/// Trains a model and saves it; returns the exit code.
pub fn run(args: &TrainArgs) -> Result<u8, Error> {
    let Task::Recognise = args.task;
    let folder = RunFolder::new(&args.out, RESULTS);
    let devices = devices::open_all(&args.devices)?;
    // Nobody else trains in the folder for as long as it is locked: until the end of this function.
    let (checkpoint, lock) = folder.newest::<Run>(args.resume)?.unzip();
    let resumed = checkpoint.as_ref().map(|checkpoint| &checkpoint.config);
    let recipe = resumed.map_or(&args.recipe, |run| &run.recipe).clone();
    check(&recipe, devices.len())?;
    let mnist = Mnist::training(&args.data)?;
    let data = mnist.fingerprint();
    if resumed.is_some_and(|run| run.data != data) {
        let name = args.data.display();
        return Err(folder.refused(&format!("{name} is not the data of this run")));
    }
    let digits = Digits {
        mnist,
        batch: recipe.batch,
        seed: recipe.seed,
    };
    if digits.mnist.len() < VALIDATION {
        let (name, scans) = (args.data.display(), digits.mnist.len());
        return Err(format!("{name} has {scans} scans, but {VALIDATION} are needed").into());
    }
    let _lock = match lock {
        Some(lock) => lock,
        None => folder.start()?,
    };
    let mut trainer = trainer(&folder, Run { recipe, data }, &digits, &devices)?;
    if let Some(checkpoint) = &checkpoint {
        trainer = trainer.resume(checkpoint)?;
    }
    let epochs = trainer.folder.config.recipe.epochs;
    let go_on = |_: &Trainer<_, _>| ControlFlow::Continue(());
    let is_stopped = training::run(&mut trainer, &digits, Kind::Other, epochs, go_on)?;
    if is_stopped && !trainer.state.finished {
        println(&format!(
            "stopped; train recognise --resume --out {} goes on after {}",
            folder.path.display(),
            name(&trainer.state)
        ));
        return Ok(STOPPED);
    }
    save(&trainer.trained(), &folder.path, &devices[0])?;
    println(&format!("the model is in {}", folder.path.display()));
    Ok(0)
}

/// The training of a run that begins.
fn trainer(
    folder: &RunFolder,
    run: Run,
    digits: &Digits,
    devices: &[Device],
) -> Result<Trainer<Vit, Run>, Error> {
    let recipe = run.recipe.clone();
    let steps = digits.steps_of_epoch().saturating_mul(recipe.epochs);
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
    let init = |device: &Device| digits::config().init(device);
    let trainer = Trainer::start(checkpoints, config, optimizer, scheduler, init);
    let parameters = trainer.model().num_params();
    println(&format!("{parameters} parameters, {steps} steps"));
    Ok(trainer)
}

/// Saves a model in f16.
fn save(model: &Vit, folder: &Path, device: &Device) -> Result<(), Error> {
    digits::save(model, folder)?;
    let half = LoadOptions::new(device).dtype(FloatDType::F16);
    digits::save(&vit::from_pretrained(folder, half)?, folder)
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
