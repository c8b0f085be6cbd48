//! Training with the library's trainer.

use std::{collections::BTreeMap, ops::ControlFlow};

use burn::{module::Module, optim::AdamWConfig, tensor::Device};
use burn_attn_models::{
    language_model::LanguageModel,
    train::{CheckpointFolder, CurvePoint, Replicas, Trainer, TrainerConfig, warmup_cosine},
};
use example_common::{
    devices,
    error::{Error, tokenizer_failed},
    exit::{STOPPED, println},
    input,
    run_folder::{RunFolder, name},
    training::{self, Kind},
};

use crate::{
    cli::{Recipe, TrainArgs},
    folder::{self, Checkpoint, Run, TOKENIZER, model_config, tokenizer},
    samples,
    text::Text,
};

/// Tokens of the held-out text that samples continue.
const PROMPT: usize = 12;

/// Trains a model and saves it; returns the exit code.
pub fn train(args: &TrainArgs) -> Result<u8, Error> {
    let folder = folder::of_run(&args.out);
    let devices = devices(args)?;
    // Nobody else trains in the folder for as long as it is locked: until the end of this function.
    let (checkpoint, lock) = folder.newest::<Run>(args.resume)?.unzip();
    let mut run = match &checkpoint {
        Some(checkpoint) => checkpoint.config.clone(),
        None => Run {
            recipe: args.recipe.clone(),
            text: String::new(),
        },
    };
    let recipe = run.recipe.clone();
    check(&recipe, devices.len())?;
    let vocabulary = checkpoint.as_ref().map(tokenizer).transpose()?;
    let text = Text::read(&args.text, &recipe, vocabulary)?;
    let _lock = match &checkpoint {
        None => {
            run.text.clone_from(&text.fingerprint);
            Some(folder.start()?)
        }
        Some(_) if run.text != text.fingerprint => {
            let name = args.text.display();
            return Err(folder.refused(&format!("{name} is not the text of this run")));
        }
        Some(Checkpoint { state, .. })
            if state.epoch >= recipe.epochs || is_flat(&state.curve, recipe.patience) =>
        {
            folder::save_best(&folder.path, &devices[0])?;
            println(&format!("the run is over, after {} epochs", state.epoch));
            return Ok(0);
        }
        Some(_) => lock,
    };

    let mut trainer = trainer(args, run, &folder, &text, &devices)?;
    if let Some(checkpoint) = &checkpoint {
        trainer = trainer.resume(checkpoint)?;
    }
    let prompt = text.held_out.beginning(PROMPT.min(recipe.len - 1));
    let is_stopped = training::run(&mut trainer, &text, Kind::Text, recipe.epochs, |trainer| {
        let curve = &trainer.state.curve;
        let model = trainer.trained();
        samples::write(&folder.path, curve.len(), &model, &text.tokenizer, prompt);
        match is_flat(curve, recipe.patience) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    folder::save_best(&folder.path, &devices[0])?;
    if !is_stopped {
        return Ok(0);
    }
    println(&format!(
        "stopped; train {} --resume --out {} goes on after {}",
        args.text.display(),
        folder.path.display(),
        name(&trainer.state)
    ));
    Ok(STOPPED)
}

/// The training of a run that begins.
fn trainer(
    args: &TrainArgs,
    run: Run,
    folder: &RunFolder,
    text: &Text,
    devices: &[Device],
) -> Result<Trainer<LanguageModel, Run>, Error> {
    let recipe = run.recipe.clone();
    let steps = (text.train.len() / recipe.batch).saturating_mul(recipe.epochs);
    let optimizer = AdamWConfig::new()
        .with_beta_2(0.95)
        .with_weight_decay(0.1)
        .init();
    let rate = recipe.learning_rate;
    let scheduler = warmup_cosine(rate, recipe.warmup, Some(steps), 0.1 * rate)
        .map_err(|problem| format!("--learning-rate {rate}: {problem}"))?;
    let config = TrainerConfig {
        replicas: match devices {
            [_] if !args.ddp => Replicas::new(1),
            _ if !args.ddp => Replicas::on(devices),
            _ => Replicas::exchanging(devices),
        },
        seed: recipe.seed,
        epochs: Some(recipe.epochs),
        clip: Some(1.0),
        ..TrainerConfig::new(&devices[0])
    };
    let vocabulary = text.tokenizer.to_string(false).map_err(tokenizer_failed)?;
    let checkpoints = CheckpointFolder {
        path: folder.path.clone(),
        config: run,
        parts: BTreeMap::from([(TOKENIZER.into(), vocabulary.into_bytes())]),
    };
    let model = model_config(&recipe, text.tokenizer.get_vocab_size(true));
    let init = |device: &Device| model.init(device);
    let trainer = Trainer::start(checkpoints, config, optimizer, scheduler, init);
    println(&format!(
        "{} parameters, {} tokens, {steps} steps",
        trainer.model().num_params(),
        text.train.len() * recipe.len
    ));
    Ok(trainer)
}

/// Whether the loss on the held-out text has not fallen for so many epochs.
fn is_flat(curve: &[CurvePoint], patience: usize) -> bool {
    let best = (0..curve.len()).min_by(|&a, &b| {
        let [a, b] = [a, b].map(|index| curve[index].validation);
        a.total_cmp(&b)
    });
    best.is_some_and(|best| curve.len() - 1 - best >= patience)
}

/// The devices asked for, or the default one.
fn devices(args: &TrainArgs) -> Result<Vec<Device>, Error> {
    let mut asked = args.devices.iter();
    if args.ddp
        && let Some(other) = asked.find(|device| device.backend() != "cuda")
    {
        let problem = "--ddp needs devices that exchange gradients themselves, and in Burn 0.22";
        return Err(format!("{problem} {other} does not: only cuda does").into());
    }
    Ok(devices::open_all(&args.devices)?)
}

fn check(recipe: &Recipe, devices: usize) -> Result<(), Error> {
    let Recipe {
        len,
        dropout,
        batch,
        learning_rate: rate,
        epochs,
        patience,
        ..
    } = *recipe;
    let (is_dropout, is_rate) = ((0.0..1.0).contains(&dropout), rate > 0.0 && rate <= 1.0);
    let below_one = "at least 0 and less than 1";
    input::check([
        ("--batch", batch > 0, "at least 1", batch as f64),
        ("--epochs", epochs > 0, "at least 1", epochs as f64),
        ("--patience", patience > 0, "at least 1", patience as f64),
        ("--len", len > 1, "at least 2", len as f64),
        ("--dropout", is_dropout, below_one, dropout),
        ("--learning-rate", is_rate, "above 0 and at most 1", rate),
    ])?;
    if !batch.is_multiple_of(devices) {
        return Err(format!("{devices} devices cannot share a batch of {batch} equally").into());
    }
    Ok(model_config(recipe, recipe.vocabulary).validate()?)
}
