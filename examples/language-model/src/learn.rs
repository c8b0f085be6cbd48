//! Training with Burn's learner.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use burn::{
    data::{dataloader::DataLoaderBuilder, dataset::Dataset},
    grad_clipping::GradientClippingConfig,
    lr_scheduler::{
        composed::ComposedLrSchedulerConfig, cosine::CosineAnnealingLrSchedulerConfig,
        linear::LinearLrSchedulerConfig, module_lr_scheduler::ModuleLrScheduler,
    },
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
        checkpoint::{
            CheckpointingAction, CheckpointingStrategy, ComposedCheckpointingStrategy,
            FileCheckpointer, KeepLastNCheckpoints, MetricCheckpointingStrategy,
        },
        metric::{
            AccuracyMetric, LearningRateMetric, LossMetric, Metric, PerplexityMetric,
            store::{Aggregate, Direction, EventStoreClient, Split},
        },
    },
};

use crate::{
    cli::{Recipe, TrainArgs},
    error::Error,
    folder::{Folder, model_config},
    plain,
    samples::Samples,
    text::{Text, WindowBatcher},
};

/// Tokens of the held-out text that samples continue.
const PROMPT: usize = 12;

/// Trains a model and saves it.
pub fn train(args: &TrainArgs) -> Result<(), Error> {
    let folder = Folder::new(&args.out);
    let (recipe, tokenizer, epoch) = match args.resume {
        true => {
            let (recipe, tokenizer) = folder.resume()?;
            (recipe, Some(tokenizer), Some(folder.newest_checkpoint()?))
        }
        false => (args.recipe.clone(), None, None),
    };
    let devices = devices(args)?;
    check(&recipe, args, devices.len())?;
    let text = Text::read(&args.text, &recipe, tokenizer)?;
    let config = model_config(&recipe, text.tokenizer.get_vocab_size(true));
    config.validate()?;
    let steps = text.train.len() / recipe.batch * args.epochs;
    let schedule = schedule(&recipe, steps)?;
    if epoch.is_none() {
        folder.start(&recipe, &text.tokenizer)?;
    }

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
    println!(
        "{} parameters, {} tokens, {steps} steps",
        model.num_params(),
        text.train.len() * recipe.len
    );

    // Every device takes its part of the batch. Their gradients are added up, so each divides its loss by the tokens of the whole batch;
    // ddp takes the mean of gradients instead.
    let batcher = WindowBatcher {
        tokens: (!args.ddp).then_some(recipe.batch * recipe.len),
        seed: recipe.seed,
    };
    // Burn's loader begins its orders anew when a run is resumed: another seed makes them different ones.
    let shuffle = recipe.seed + epoch.unwrap_or(0) as u64;
    let loader = |batcher| {
        DataLoaderBuilder::new(batcher)
            .batch_size(recipe.batch / devices.len())
            .set_device(device.clone())
    };
    let held_out = WindowBatcher {
        tokens: None,
        ..batcher
    };
    let prompt = text.held_out.beginning(PROMPT.min(recipe.len - 1)).to_vec();
    let samples = Samples::new(&folder, &config, &text.tokenizer, &prompt, &device);
    let best = Best::default();
    let loss = LossMetric::new();
    let stop = StoppingCondition::NoImprovementSince {
        n_epochs: args.patience,
    };
    let training = SupervisedTraining::new(
        folder.path(),
        loader(batcher).shuffle(shuffle).build(text.train),
        loader(held_out).build(text.held_out),
    )
    .with_training_strategy(strategy.into())
    .metrics((loss.clone(),))
    .metric_train_numeric(LearningRateMetric::new())
    .metric_valid_numeric(PerplexityMetric::new())
    .metric_valid_numeric(AccuracyMetric::new())
    .with_custom_checkpointers(
        samples,
        FileCheckpointer::new(folder.path().join("checkpoint"), "optim"),
        FileCheckpointer::new(folder.path().join("checkpoint"), "scheduler"),
    )
    .with_checkpointing_strategy(best.clone().and_the_newest(&loss))
    .early_stopping(MetricEarlyStoppingStrategy::new(
        &loss,
        Aggregate::Mean,
        Direction::Lowest,
        Split::Valid,
        stop,
    ))
    .num_epochs(args.epochs);
    let training = match epoch {
        Some(epoch) => training.checkpoint(epoch),
        None => training,
    };
    let training = plain::instead_of_the_dashboard(training);
    let interrupter = training.interrupter();
    // Without a handler, Ctrl-C ends the program: every finished epoch has its checkpoint.
    let _ = ctrlc::set_handler(move || interrupter.stop(Some("Ctrl-C")));

    let optimizer = AdamWConfig::new()
        .with_beta_2(0.95)
        .with_weight_decay(0.1)
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)))
        .init();
    let result = training.launch(Learner::new(model, optimizer, schedule));
    if let Some(error) = result.error {
        return Err(Error::Training(error.to_string()));
    }
    let Some(best) = best.epoch() else {
        return Err(Error::Training(
            "it was stopped before its first epoch was over".into(),
        ));
    };
    let path = folder.checkpoint("model", best);
    let record = ModuleRecord::load(&path).map_err(|error| Error::Run {
        path,
        problem: error.to_string(),
    })?;
    folder.save(&config.init(&device).load_record(record))?;
    println!(
        "the model of epoch {best} is in {}",
        folder.path().join("model.safetensors").display()
    );
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
        [] => Ok(vec![example_devices::choose(None)?.0]),
        devices => Ok(devices
            .iter()
            .map(|device| device.open())
            .collect::<Result<_, _>>()?),
    }
}

fn check(recipe: &Recipe, args: &TrainArgs, devices: usize) -> Result<(), Error> {
    let refused = |sentence: String| Err(Error::Option(sentence));
    if recipe.batch == 0 || !recipe.batch.is_multiple_of(devices) {
        return refused(format!(
            "--batch must be a multiple of the {devices} devices, got {}",
            recipe.batch
        ));
    }
    if recipe.len < 2 {
        return refused(format!("--len must be at least 2, got {}", recipe.len));
    }
    if args.epochs == 0 {
        return refused("--epochs must be at least 1, got 0".into());
    }
    if !(0.0..1.0).contains(&recipe.dropout) {
        return refused(format!(
            "--dropout must be at least 0 and less than 1, got {}",
            recipe.dropout
        ));
    }
    Ok(())
}

/// A linear rise, then a cosine down to a tenth.
fn schedule(recipe: &Recipe, steps: usize) -> Result<ModuleLrScheduler, Error> {
    let rate = recipe.learning_rate;
    let warmup = recipe.warmup.max(1);
    ComposedLrSchedulerConfig::new()
        .linear(LinearLrSchedulerConfig::new(
            1.0 / warmup as f64,
            1.0,
            warmup,
        ))
        .cosine(CosineAnnealingLrSchedulerConfig::new(rate, steps).with_min_lr(0.1 * rate))
        .init()
        .map_err(|problem| Error::Option(format!("--learning-rate {rate}: {problem}")))
}

/// The epoch with the lowest loss on what is held out, 0 before the first.
#[derive(Clone, Default)]
struct Best(Arc<AtomicUsize>);

impl Best {
    fn epoch(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&epoch| epoch > 0)
    }

    /// Keeps the checkpoints of the best epoch and of the newest, to resume from.
    fn and_the_newest(self, loss: &LossMetric) -> impl CheckpointingStrategy + 'static {
        let best = MetricCheckpointingStrategy::new(
            loss,
            Aggregate::Mean,
            Direction::Lowest,
            Split::Valid,
        );
        let strategies = ComposedCheckpointingStrategy::builder()
            .add(KeepLastNCheckpoints::new(1))
            .add(best)
            .build();
        Noted {
            strategies,
            best: self,
            loss: loss.name().to_string().into(),
        }
    }
}

/// A strategy that notes the best epoch.
struct Noted {
    strategies: ComposedCheckpointingStrategy,
    best: Best,
    loss: Arc<String>,
}

impl CheckpointingStrategy for Noted {
    fn checkpointing(
        &mut self,
        epoch: usize,
        store: &EventStoreClient,
    ) -> Vec<CheckpointingAction> {
        let best = store.find_epoch(
            &self.loss,
            Aggregate::Mean,
            Direction::Lowest,
            &Split::Valid,
        );
        self.best.0.store(best.unwrap_or(epoch), Ordering::Relaxed);
        self.strategies.checkpointing(epoch, store)
    }
}
