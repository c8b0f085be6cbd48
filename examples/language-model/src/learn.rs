//! Training with Burn's learner.

use burn::{
    data::{dataloader::DataLoaderBuilder, dataset::Dataset},
    grad_clipping::GradientClippingConfig,
    module::Module,
    optim::AdamWConfig,
    store::ModuleRecord,
    tensor::{
        Device,
        distributed::{DistributedConfig, ReduceOperation},
    },
    train::{
        ExecutionStrategy, Learner, MetricEarlyStoppingStrategy, MultiDeviceOptim,
        StoppingCondition, SupervisedTraining,
        checkpoint::FileCheckpointer,
        metric::{
            AccuracyMetric, LearningRateMetric, LossMetric, Metric, PerplexityMetric,
            store::{Aggregate, Direction, Split},
        },
    },
};

use burn_attn_models::{language_model::LanguageModelConfig, train::warmup_cosine};
use example_common::{
    exit::{STOPPED, println},
    learner,
};

use crate::{
    checkpoints::{BestAndNewest, End, Guarded, Watch},
    cli::{Recipe, TrainArgs},
    error::Error,
    folder::{Folder, Run, model_config},
    samples::Samples,
    text::{Text, WindowBatcher},
};

/// Tokens of the held-out text that samples continue.
const PROMPT: usize = 12;
/// Passes over the text at most, unless it is said.
const EPOCHS: usize = 10;

/// Trains a model and saves it; returns the exit code.
pub fn train(args: &TrainArgs) -> Result<u8, Error> {
    let folder = Folder::new(&args.out);
    let devices = devices(args)?;
    // Nobody else trains in the folder for as long as it is locked: until the end of this function.
    let (mut run, tokenizer, epoch, lock) = match args.resume {
        true => {
            let (run, tokenizer, epoch, lock) = folder.resume()?;
            (run, Some(tokenizer), Some(epoch), Some(lock))
        }
        false => {
            folder.check_free()?;
            let run = Run {
                recipe: args.recipe.clone(),
                epochs: EPOCHS,
                text: String::new(),
                best: None,
            };
            (run, None, None, None)
        }
    };
    run.epochs = args.epochs.unwrap_or(run.epochs);
    let recipe = run.recipe.clone();
    check(&recipe, run.epochs, args.patience, devices.len())?;
    let text = Text::read(&args.text, &recipe, tokenizer)?;
    let config = model_config(&recipe, text.tokenizer.get_vocab_size(true));
    let _lock = match epoch {
        None => {
            run.text.clone_from(&text.fingerprint);
            Some(folder.start(&run, &text.tokenizer)?)
        }
        Some(_) if run.text != text.fingerprint => {
            let name = args.text.display();
            return Err(folder.refused(&format!("{name} is not the text of this run")));
        }
        Some(epoch) if epoch >= run.epochs => {
            let best = run.best.unwrap_or(epoch);
            save_best(&folder, &config, best, &devices[0])?;
            println(&format!(
                "{epoch} epochs are over, and --epochs {} asks for no more",
                run.epochs
            ));
            return Ok(0);
        }
        Some(_) => {
            folder.note(&run)?;
            lock
        }
    };
    let steps = (text.train.len() / recipe.batch).saturating_mul(run.epochs);

    let device = devices[0].clone();
    let strategy = match (args.ddp, &devices[..]) {
        (true, _) => {
            let config = DistributedConfig {
                all_reduce_op: ReduceOperation::Mean,
            };
            ExecutionStrategy::ddp(devices.clone(), config)
        }
        (false, [device]) => ExecutionStrategy::single(device.clone()),
        (false, _) => ExecutionStrategy::multi(devices.clone(), MultiDeviceOptim::OptimMainDevice),
    };
    let model = {
        let device = device.clone().autodiff();
        burn_attn::seed(&device, recipe.seed);
        config.init(&device)
    };
    println(&format!(
        "{} parameters, {} tokens, {steps} steps",
        model.num_params(),
        text.train.len() * recipe.len
    ));

    // Burn's loader begins its orders anew when a run is resumed: another seed makes them different ones.
    let seed = recipe.seed.wrapping_add(epoch.unwrap_or(0) as u64);
    // Every device takes its part of the batch. Their gradients are added up, so each divides its loss by the tokens of the whole batch;
    // ddp takes the mean of gradients instead.
    let batcher = WindowBatcher::new((!args.ddp).then_some(recipe.batch * recipe.len), seed);
    let loader = |batcher, batch| {
        DataLoaderBuilder::new(batcher)
            .batch_size(batch)
            .set_device(device.clone())
    };
    let end = End::default();
    let prompt = text.held_out.beginning(PROMPT.min(recipe.len - 1)).to_vec();
    let samples = Samples::new(&folder, &config, &text.tokenizer, &prompt, &device);
    let file = |name| FileCheckpointer::new(folder.path().join("checkpoint"), name);
    let loss = LossMetric::new();
    let stop = StoppingCondition::NoImprovementSince {
        n_epochs: args.patience,
    };
    let training = SupervisedTraining::new(
        folder.path(),
        loader(batcher, recipe.batch / devices.len())
            .shuffle(seed)
            .build(text.train),
        // On the first device alone.
        loader(WindowBatcher::new(None, seed), recipe.batch).build(text.held_out),
    )
    .with_training_strategy(strategy.into())
    .with_application_logger(None)
    .metrics((loss.clone(),))
    .metric_train_numeric(LearningRateMetric::new())
    .metric_valid_numeric(PerplexityMetric::new())
    .metric_valid_numeric(AccuracyMetric::new())
    .with_custom_checkpointers(
        Guarded {
            inner: samples,
            end: end.clone(),
        },
        Guarded {
            inner: file("optim"),
            end: end.clone(),
        },
        Guarded {
            inner: file("scheduler"),
            end: end.clone(),
        },
    )
    .with_checkpointing_strategy(BestAndNewest {
        folder: folder.clone(),
        run: run.clone(),
        metric: loss.name().to_string(),
        end: end.clone(),
    })
    .early_stopping(MetricEarlyStoppingStrategy::new(
        &loss,
        Aggregate::Mean,
        Direction::Lowest,
        Split::Valid,
        stop,
    ))
    .num_epochs(run.epochs);
    let training = match epoch {
        Some(epoch) => training.checkpoint(epoch),
        None => training,
    };
    let interrupter = training.interrupter();
    end.stop_by(interrupter.clone());
    let training = learner::instead_of_the_dashboard(training).with_progress_logger(Watch {
        interrupter: interrupter.clone(),
        end: end.clone(),
    });
    learner::stop_by_ctrl_c(interrupter);

    let optimizer = AdamWConfig::new()
        .with_beta_2(0.95)
        .with_weight_decay(0.1)
        // Of each parameter: on several devices, the learner shows the sum of the gradients to nobody but the optimizer.
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)))
        .init();
    let rate = recipe.learning_rate;
    let scheduler = warmup_cosine(rate, recipe.warmup, 0, Some(steps), 0.1 * rate)
        .map_err(|problem| Error::Option(format!("--learning-rate {rate}: {problem}")))?;
    let learner = Learner::new(model, optimizer, scheduler);
    // With the renderer, the dashboard leaves the terminal.
    drop(training.launch(learner));
    let out = folder.path().display();
    let newest = folder.newest();
    match end.of_training() {
        (Some(error), _) => return Err(Error::Training(error)),
        (None, true) => {
            match newest {
                Ok((run, _, epoch)) => {
                    save_best(&folder, &config, run.best.unwrap_or(epoch), &device)?;
                    println(&format!(
                        "stopped; train {} --resume --out {out} goes on after epoch {epoch}",
                        args.text.display()
                    ));
                }
                Err(_) => println("stopped in the first epoch: nothing is saved"),
            }
            return Ok(STOPPED);
        }
        (None, false) => {}
    }
    let (run, _, epoch) = newest?;
    save_best(&folder, &config, run.best.unwrap_or(epoch), &device)?;
    Ok(0)
}

/// Saves the weights of the best epoch beside the model's configuration.
fn save_best(
    folder: &Folder,
    config: &LanguageModelConfig,
    best: usize,
    device: &Device,
) -> Result<(), Error> {
    let path = folder.checkpoint("model", best);
    let record = ModuleRecord::load(&path).map_err(|error| Error::Run {
        path,
        problem: error.to_string(),
    })?;
    folder.save(&config.init(device).load_record(record))?;
    println(&format!(
        "the model of epoch {best} is in {}",
        folder.path().join("model.safetensors").display()
    ));
    Ok(())
}

/// The devices asked for, or the default one.
fn devices(args: &TrainArgs) -> Result<Vec<Device>, Error> {
    if args.ddp
        && let Some(other) = args
            .devices
            .iter()
            .find(|device| device.backend() != "cuda")
    {
        return Err(Error::Option(format!(
            "--ddp needs devices that exchange gradients themselves, and in Burn 0.22 {other} does not: only cuda does"
        )));
    }
    match &args.devices[..] {
        [] => Ok(vec![example_common::devices::choose(None)?.0]),
        devices => Ok(devices
            .iter()
            .map(|device| device.open())
            .collect::<Result<_, _>>()?),
    }
}

fn check(recipe: &Recipe, epochs: usize, patience: usize, devices: usize) -> Result<(), Error> {
    let refused = |sentence: String| Err(Error::Option(sentence));
    let positive = [
        ("--batch", recipe.batch),
        ("--epochs", epochs),
        ("--patience", patience),
    ];
    if let Some((option, _)) = positive.iter().find(|(_, value)| *value == 0) {
        return refused(format!("{option} must be at least 1, got 0"));
    }
    if !recipe.batch.is_multiple_of(devices) {
        return refused(format!(
            "{devices} devices cannot share a batch of {} equally",
            recipe.batch
        ));
    }
    if recipe.len < 2 {
        return refused(format!("--len must be at least 2, got {}", recipe.len));
    }
    if !(0.0..1.0).contains(&recipe.dropout) {
        return refused(format!(
            "--dropout must be at least 0 and less than 1, got {}",
            recipe.dropout
        ));
    }
    let rate = recipe.learning_rate;
    if !(rate > 0.0 && rate <= 1.0) {
        return refused(format!(
            "--learning-rate must be above 0 and at most 1, got {rate}"
        ));
    }
    Ok(model_config(recipe, recipe.vocabulary).validate()?)
}
