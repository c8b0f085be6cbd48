//! Fine-tuning with Burn's learner: of all layers, or of adapters of low rank (LoRA; Hu et al., arXiv:2106.09685).

use std::{fmt::Debug, marker::PhantomData, path::Path};

use burn::{
    data::{
        dataloader::{DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    module::{Lora, Module, ModuleVisitor, Param, ParamGroup},
    optim::AdamWConfig,
    tensor::{Device, Tensor},
    train::{
        ClassificationOutput, ExecutionStrategy, InferenceStep, Learner, SupervisedTraining,
        TrainOutput, TrainStep,
        metric::{AccuracyMetric, LossMetric},
    },
};
use burn_attn_models::train::{BatchSize, batches_by_length, clip_by_global_norm, warmup_cosine};
use clap::Args;
use example_common::{exit, learner};

use crate::{
    Error,
    encoder::{self, Encoder, Task},
    input::{self, at_least},
    tokens::Tokenizer,
};

/// Learning rate of whole layers, and of adapters.
const RATES: [f64; 2] = [1e-4, 1e-3];
/// Burn's LoRA adds the product of its two matrices times this number divided by the rank.
const ALPHA: f64 = 16.0;

/// What an encoder is fine-tuned for.
pub trait Objective: Clone + Debug + Send + Sync + 'static {
    /// The head and what it is for.
    const TASK: Task;
    /// What the model learns from.
    type Example: Clone + Debug + Send + Sync + 'static;
    /// Examples as tensors.
    type Batch: Clone + Debug + Send + 'static;

    /// Number of tokens of an example.
    fn len(example: &Self::Example) -> usize;

    /// Examples as tensors.
    fn batch(examples: &[Self::Example], device: &Device) -> Self::Batch;

    /// The loss of a batch, and the logits and classes that the metrics compare.
    fn output(model: &Model<Self>, batch: Self::Batch) -> ClassificationOutput;
}

/// An encoder with a head for an objective.
#[derive(Module, Debug)]
pub struct Model<O: Objective> {
    /// The encoder and the head.
    pub encoder: Encoder,
    #[module(skip)]
    objective: PhantomData<O>,
}

impl<O: Objective> Model<O> {
    /// The model of an encoder and its head.
    pub fn new(encoder: Encoder) -> Self {
        Self {
            encoder,
            objective: PhantomData,
        }
    }

    /// A fine-tuned model and its tokenizer.
    ///
    /// # Errors
    /// If there is none.
    pub fn load(folder: &Path, device: &Device) -> Result<(Self, Tokenizer), Error> {
        let (encoder, tokenizer) = Encoder::load(folder, O::TASK, device)?;
        Ok((Self::new(encoder), tokenizer))
    }
}

impl<O: Objective> TrainStep for Model<O> {
    type Input = O::Batch;
    type Output = ClassificationOutput;

    /// Clips the gradients to a global norm of 1.
    fn step(&self, batch: O::Batch) -> TrainOutput<ClassificationOutput> {
        let output = O::output(self, batch);
        let step = TrainOutput::new(self, output.loss.backward(), output);
        TrainOutput {
            grads: clip_by_global_norm(step.grads, self, 1.0),
            ..step
        }
    }
}

impl<O: Objective> InferenceStep for Model<O> {
    type Input = O::Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: O::Batch) -> ClassificationOutput {
        O::output(self, batch)
    }
}

/// Makes tensors of batches that [`FineTuning::batches`] has put together.
struct OfBatches<O>(PhantomData<O>);

impl<O: Objective> Batcher<Vec<O::Example>, O::Batch> for OfBatches<O> {
    fn batch(&self, batches: Vec<Vec<O::Example>>, device: &Device) -> O::Batch {
        O::batch(&batches.concat(), device)
    }
}

/// How a model is fine-tuned.
#[derive(Args, Clone, Debug)]
pub struct FineTuning {
    /// Passes over the examples
    #[arg(long, default_value_t = 2, value_parser = at_least::<1>)]
    pub epochs: usize,
    /// Examples per step
    #[arg(long, default_value_t = 32, value_parser = at_least::<1>)]
    pub batch: usize,
    /// Highest learning rate: it rises to here in the first tenth of the steps, then falls to 0 along a cosine [default: 1e-4, with --lora 1e-3]
    #[arg(long, value_parser = input::learning_rate)]
    pub learning_rate: Option<f64>,
    /// Train only the head, the pooler where there is one, and matrices of this rank added to those of the layers (LoRA)
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub lora: Option<u64>,
    /// Seed of new parameters, order and dropout
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl FineTuning {
    /// Fine-tunes the encoder of `source` on the training and the held-out examples, and saves the model and the learner's metrics in `out`.
    /// Returns nothing if Ctrl-C has stopped it.
    ///
    /// # Errors
    /// If the encoder does not fit, an option is refused, training fails, or the model cannot be saved.
    pub fn train<O: Objective>(
        &self,
        source: &Path,
        out: &Path,
        device: &Device,
        examples: impl FnOnce(&Tokenizer) -> Result<[Vec<O::Example>; 2], Error>,
    ) -> Result<Option<(Model<O>, Tokenizer)>, Error> {
        let _lock = encoder::prepare(source, out)?;
        let training = device.clone().autodiff();
        burn_attn::seed(&training, self.seed);
        let (encoder, tokenizer) = Encoder::with_new_head(source, O::TASK, &training)?;
        let data = examples(&tokenizer)?.map(|examples| self.batches::<O>(&examples));
        let model = Model::new(encoder);
        let Some(model) = self.run(model, data, &out.join("training"), device)? else {
            exit::println("stopped: nothing is saved");
            return Ok(None);
        };
        model.encoder.save(source, O::TASK, out)?;
        exit::println(&format!("the model is in {}", out.display()));
        Ok(Some((model, tokenizer)))
    }

    /// The examples in batches of about the same length.
    fn batches<O: Objective>(&self, examples: &[O::Example]) -> Vec<Vec<O::Example>> {
        let lengths: Vec<[usize; 1]> = examples.iter().map(|example| [O::len(example)]).collect();
        let batches = batches_by_length(&lengths, BatchSize::Samples(self.batch), self.seed, 0);
        let example = |&index: &usize| examples[index].clone();
        let batch = |indices: &Vec<usize>| indices.iter().map(example).collect();
        batches.iter().map(batch).collect()
    }

    /// The model with what is to be trained of it: everything; or adapters of the encoder's layers, and what is above them.
    fn prepared<M: Module>(&self, model: M) -> M {
        let Some(rank) = self.lora else {
            return model;
        };
        let of_layers = ParamGroup::from_predicate("encoder.layers");
        let above = ParamGroup::from_any_predicates(vec!["bert.pooler", "encoder.head"]);
        model
            .apply_lora(Lora::new(rank as usize, ALPHA).set_param_group(of_layers))
            .unfreeze_group(above)
    }

    /// Trains a model, with the learner's metrics in `folder`. Returns nothing if Ctrl-C has stopped it.
    fn run<O: Objective>(
        &self,
        model: Model<O>,
        [train, held_out]: [Vec<Vec<O::Example>>; 2],
        folder: &Path,
        device: &Device,
    ) -> Result<Option<Model<O>>, Error> {
        let rate = self
            .learning_rate
            .unwrap_or(RATES[usize::from(self.lora.is_some())]);
        let steps = train.len().saturating_mul(self.epochs);
        let schedule = warmup_cosine(rate, steps.div_ceil(10), Some(steps), 0.0)
            .map_err(|problem| format!("--learning-rate {rate}: {problem}"))?;
        let model = self.prepared(model);
        exit::println(&format!(
            "{} of {} parameters are trainable, in {steps} steps",
            trainable(&model),
            model.num_params()
        ));
        let loader = |batches| {
            DataLoaderBuilder::new(OfBatches::<O>(PhantomData))
                .batch_size(1)
                .shuffle(self.seed)
                .set_device(device.clone())
                .build(InMemDataset::new(batches))
        };
        let training = SupervisedTraining::new(folder, loader(train), loader(held_out))
            .with_training_strategy(ExecutionStrategy::single(device.clone()).into())
            .with_application_logger(None)
            .num_epochs(self.epochs)
            .metrics((LossMetric::new(),))
            .metric_valid_numeric(AccuracyMetric::new());
        // The dashboard of a terminal would not say how training ended.
        let training = learner::without_dashboard(training);
        let interrupter = training.interrupter();
        learner::stop_by_ctrl_c(interrupter.clone());
        let optimizer = AdamWConfig::new()
            .with_epsilon(1e-8)
            .with_weight_decay(0.01)
            .init();
        let result = training.launch(Learner::new(model, optimizer, schedule));
        if let Some(error) = result.error {
            return Err(format!("training failed: {error}").into());
        }
        if result.interrupted.is_some() {
            return Ok(None);
        }
        // From now on, the first Ctrl-C ends the program.
        interrupter.stop(Some("training is over"));
        let model = result.model.materialize();
        match is_finite(&model) {
            true => Ok(Some(model)),
            false => Err(
                "training failed: the parameters are no longer numbers: try a lower --learning-rate"
                    .into(),
            ),
        }
    }
}

/// Calls a function with the numbers of each parameter, and whether they are trainable.
struct EachParam<F>(F);

impl<F: FnMut(Tensor<1>, bool)> ModuleVisitor for EachParam<F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let numbers = param.val();
        let is_trainable = numbers.is_require_grad();
        (self.0)(numbers.reshape([-1]), is_trainable);
    }
}

/// The number of trainable parameters.
fn trainable<M: Module>(model: &M) -> usize {
    let mut count = 0;
    model.visit(&mut EachParam(|numbers: Tensor<1>, is_trainable| {
        count += usize::from(is_trainable) * numbers.shape().num_elements();
    }));
    count
}

/// Whether every parameter is finite.
fn is_finite<M: Module>(model: &M) -> bool {
    let mut is_finite = true;
    model.visit(&mut EachParam(|numbers: Tensor<1>, _| {
        is_finite &= numbers.abs().max().into_scalar::<f32>().is_finite();
    }));
    is_finite
}
