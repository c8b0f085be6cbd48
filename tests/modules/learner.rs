//! Burn's learner trains the models: on two devices as on one.

use std::path::Path;

use burn::{
    data::{
        dataloader::{DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    grad_clipping::GradientClippingConfig,
    module::Module,
    optim::{AdamConfig, GradientsParams, ModuleOptimizer},
    tensor::Device,
    train::{
        ExecutionStrategy, InferenceStep, Learner, MultiDeviceOptim, SupervisedTraining, TrainStep,
        logger::{EvaluationProgressLogger, TrainingProgressLogger},
        metric::{LossMetric, MetricDefinition},
        renderer::{
            EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
            MetricsRendererTraining,
        },
    },
};
use burn_attn_models::{
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    train::{LanguageModelBatch, Seq2SeqBatch, TokenBatch},
};
use burn_attn_tests::{
    compare::{assert_close, difference},
    devices,
    numbers::{filled, mixed},
    parameters,
};

const VOCABULARY: usize = 29;
const STEPS: usize = 20;
/// Texts of a step.
const BATCH: usize = 6;

/// A text, and how many tokens the texts of its step have to predict.
#[derive(Clone, Debug)]
struct Item {
    text: Vec<u32>,
    tokens_of_step: usize,
}

#[derive(Clone)]
struct Texts;

impl Batcher<Item, LanguageModelBatch> for Texts {
    fn batch(&self, items: Vec<Item>, device: &Device) -> LanguageModelBatch {
        let texts: Vec<&[u32]> = items.iter().map(|item| item.text.as_slice()).collect();
        LanguageModelBatch::new(&texts, device)
            .divided_by(items[0].tokens_of_step)
            .smoothing(0.1)
            .seed(3)
    }
}

/// The texts of every step. Both halves of a step have as many tokens, so that the mean of their losses is the loss of the step, but rows
/// are not of one length.
fn steps() -> Vec<Vec<Item>> {
    let lens = [3, 7, 2, 5, 4, 3];
    let step = |step: usize| {
        let text = |(row, len): (usize, usize)| Item {
            text: (0..len + step % 3)
                .map(|at| (mixed((step * 100 + row * 10 + at) as u64) % VOCABULARY as u64) as u32)
                .collect(),
            tokens_of_step: lens.iter().map(|len| len + step % 3 - 1).sum(),
        };
        lens.into_iter().enumerate().map(text).collect()
    };
    (0..STEPS).map(step).collect()
}

fn model(dropout: f64, device: &Device) -> LanguageModel {
    let config = LanguageModelConfig::new(VOCABULARY)
        .with_d_model(12)
        .with_n_heads(3)
        .with_d_ff(20)
        .with_max_len(11)
        .with_absolute_position(AbsolutePosition::Sinusoidal);
    let block = config.block.clone().with_dropout(dropout);
    filled(config.with_block(block).init(device), 7)
}

/// With a limit that clips: gradients must be added up before.
fn optimizer() -> ModuleOptimizer {
    let clipping = GradientClippingConfig::Norm(0.05);
    AdamConfig::new().with_grad_clipping(Some(clipping)).init()
}

/// What training for an epoch made of a model: its loss in every step, averaged over devices, and its weights.
struct Trained {
    losses: Vec<f64>,
    model: LanguageModel,
}

/// Trains on `items`, of which each of `devices` takes an equal share.
fn train(model: LanguageModel, items: Vec<Item>, devices: &[Device]) -> Trained {
    let folder = tempfile::tempdir().unwrap();
    let loader = || DataLoaderBuilder::new(Texts).batch_size(BATCH / devices.len());
    let strategy = match devices {
        [device] => ExecutionStrategy::single(device.clone()),
        _ => ExecutionStrategy::multi(devices.to_vec(), MultiDeviceOptim::OptimMainDevice),
    };
    let valid = items[..BATCH].to_vec();
    let main_device = strategy.main_device().clone();
    let training = SupervisedTraining::new(
        folder.path(),
        loader()
            .set_device(main_device.clone().autodiff())
            .build(InMemDataset::new(items)),
        loader()
            .set_device(main_device)
            .build(InMemDataset::new(valid)),
    )
    .with_training_strategy(strategy.into())
    .with_application_logger(None)
    .renderer(Box::new(Silent))
    .metrics((LossMetric::new(),))
    .num_epochs(1);
    let result = training.launch(Learner::new(model, optimizer(), 0.01));
    assert!(result.error.is_none(), "{:?}", result.error);
    Trained {
        losses: losses(folder.path(), devices.len()),
        model: result.model,
    }
}

/// The losses that the learner wrote down, `devices` for each step.
fn losses(folder: &Path, devices: usize) -> Vec<f64> {
    let log = std::fs::read_to_string(folder.join("train/epoch-1/Loss.log")).unwrap();
    let losses: Vec<f64> = log
        .lines()
        .filter(|line| !line.ends_with("final"))
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    let steps = losses.chunks(devices);
    steps
        .map(|step| step.iter().sum::<f64>() / devices as f64)
        .collect()
}

/// The order in which two devices, which take one half of the data each, have the same texts in a step as one device.
fn halves(steps: &[Vec<Item>]) -> Vec<Item> {
    let half = |from: usize| {
        let steps = steps.iter();
        steps.flat_map(move |step| step[from..from + BATCH / 2].to_vec())
    };
    half(0).chain(half(BATCH / 2)).collect()
}

/// On the CPU: a driver in software compiles for minutes. `half_precision` has two devices on wgpu, whose gradients are added up.
#[test]
fn two_devices_follow_one() {
    for (name, device) in devices::unsampled() {
        let steps = steps();
        let model = model(0.0, &device.clone().autodiff());
        let one = train(model.clone(), steps.concat(), std::slice::from_ref(&device));
        let two = train(model, halves(&steps), &[device.clone(), device]);
        assert_eq!((one.losses.len(), two.losses.len()), (STEPS, STEPS));
        assert!(one.losses[STEPS - 1] < 0.9 * one.losses[0], "{name}");
        let apart = difference(&two.losses, &one.losses);
        assert!(apart <= 1e-4, "{name}: losses are {apart} apart");
        let weights = parameters::values(&one.model);
        for (parameter, value) in parameters::values(&two.model) {
            let what = format!("{name}: {parameter}");
            assert_close(&what, &value, &weights[&parameter], 1e-4);
        }
    }
}

#[test]
fn two_devices_repeat_a_run_with_dropout() {
    for (name, device) in devices::cpu() {
        let run = |dropout| {
            let model = model(dropout, &device.clone().autodiff());
            let devices = [device.clone(), device.clone()];
            train(model, halves(&steps()), &devices).losses
        };
        let first = run(0.3);
        assert_eq!(first, run(0.3), "{name}");
        assert_ne!(first, run(0.0), "{name}");
    }
}

fn seq2seq(device: &Device) -> Seq2Seq {
    let model = Seq2SeqConfig::new(VOCABULARY)
        .with_d_model(12)
        .with_n_heads(3)
        .with_d_ff(20)
        .with_dropout(0.0)
        .with_max_len(11)
        .init(device);
    filled(model, 5)
}

#[test]
fn gradients_of_the_parts_of_a_batch_add_up() {
    let device = devices::any().autodiff();
    let model = seq2seq(&device);
    let sources = [vec![4, 5, 6, 2], vec![7, 2], vec![8, 9, 2]];
    let targets = [vec![1, 10, 2], vec![1, 11, 12, 13, 2], vec![1, 2]];
    let batch = |rows: std::ops::Range<usize>| {
        Seq2SeqBatch::new(&sources[rows.clone()], &targets[rows], &device)
            .divided_by(7)
            .smoothing(0.1)
    };
    let gradients = |gradients: &GradientsParams| {
        let weight = gradients.get::<2>(model.embedding.weight.id).unwrap();
        weight.into_data()
    };
    let whole = TrainStep::step(&model, batch(0..3));
    let [first, second] = [0..1, 1..3].map(|rows| TrainStep::step(&model, batch(rows)));
    let id = model.embedding.weight.id;
    let sum = first.grads.get::<2>(id).unwrap() + second.grads.get::<2>(id).unwrap();
    assert_close("gradient", &sum.into_data(), &gradients(&whole.grads), 1e-6);
    // The loss that the metrics see is that of the tokens of each part.
    let losses = [&whole, &first, &second].map(|step| step.item.loss.clone().into_scalar::<f32>());
    let mean = (2.0 * losses[1] + 5.0 * losses[2]) / 7.0;
    assert!((losses[0] - mean).abs() < 1e-5, "{losses:?}");
}

#[test]
fn validation_has_no_smoothing() {
    let device = devices::any();
    let model = seq2seq(&device.clone().autodiff()).valid();
    let batch = Seq2SeqBatch::new(&[[4, 5, 2]], &[[1, 6, 2]], &device);
    let loss = |batch| InferenceStep::step(&model, batch).loss.into_scalar::<f32>();
    assert_eq!(loss(batch.clone().smoothing(0.5)), loss(batch));
}

/// Shows nothing.
struct Silent;

impl MetricsRendererTraining for Silent {
    fn update_train(&mut self, _: MetricState) {}
    fn update_valid(&mut self, _: MetricState) {}
}

impl MetricsRendererEvaluation for Silent {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl TrainingProgressLogger for Silent {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}
    fn update_epoch(&mut self, _: usize) {}
    fn start_split(&mut self, _: &str, _: usize) {}
    fn update_split(&mut self, _: usize) {}
    fn end_split(&mut self) {}
    fn end(&mut self) {}
    fn log_event_training(&mut self, _: String) {}
}

impl EvaluationProgressLogger for Silent {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricsRenderer for Silent {
    fn manual_close(&mut self) {}
    fn register_metric(&mut self, _: MetricDefinition) {}
}
