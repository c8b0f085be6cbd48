//! Fine-tuning with Burn's learner: of all layers, or of adapters of low rank (LoRA; Hu et al., arXiv:2106.09685).

use std::{fmt::Debug, path::Path};

use burn::{
    data::{
        dataloader::{DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    module::{Lora, Module, ModuleVisitor, Param, ParamGroup},
    optim::AdamWConfig,
    tensor::{Device, Tensor},
    train::{
        ExecutionStrategy, InferenceStep, Learner, LearnerModel, SupervisedTraining, TrainOutput,
        TrainStep,
    },
};
use burn_attn_models::train::{BatchSize, batches_by_length, clip_by_global_norm, warmup_cosine};
use clap::Args;
use example_common::{exit, learner};

use crate::{
    Error,
    input::{self, at_least_one},
};

/// Learning rate of whole layers, and of adapters.
const RATES: [f64; 2] = [1e-4, 1e-3];
/// Burn's LoRA adds the product of its two matrices times this number divided by the rank.
const ALPHA: f64 = 16.0;

/// How a model is fine-tuned.
#[derive(Args, Clone, Debug)]
pub struct FineTuning {
    /// Passes over the examples
    #[arg(long, default_value_t = 2, value_parser = at_least_one)]
    pub epochs: usize,
    /// Examples per step
    #[arg(long, default_value_t = 32, value_parser = at_least_one)]
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
    /// The examples in batches of about the same length, by the length of each.
    pub fn batches<E: Clone>(&self, examples: &[E], length: impl Fn(&E) -> usize) -> Vec<Vec<E>> {
        let lengths: Vec<[usize; 1]> = examples.iter().map(|example| [length(example)]).collect();
        let batches = batches_by_length(&lengths, BatchSize::Samples(self.batch), self.seed, 0);
        let batch = |indices: Vec<usize>| indices.into_iter().map(|index| examples[index].clone());
        batches
            .into_iter()
            .map(|indices| batch(indices).collect())
            .collect()
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

    /// Fine-tunes a model, and writes the learner's metrics into `folder`. Returns nothing if Ctrl-C has stopped it.
    ///
    /// # Errors
    /// If the learning rate is refused, or if training fails.
    pub fn run<M, I, E>(
        &self,
        model: M,
        batcher: impl Batcher<Vec<E>, I> + Clone + 'static,
        [train, held_out]: [Vec<Vec<E>>; 2],
        metrics: impl FnOnce(SupervisedTraining<M>) -> SupervisedTraining<M>,
        folder: &Path,
        device: &Device,
    ) -> Result<Option<M>, Error>
    where
        M: LearnerModel + TrainStep<Input = I> + InferenceStep<Input = I>,
        I: Clone + Debug + Send + 'static,
        E: Clone + Debug + Send + Sync + 'static,
    {
        let rate = self
            .learning_rate
            .unwrap_or(RATES[usize::from(self.lora.is_some())]);
        let steps = train.len().saturating_mul(self.epochs);
        let schedule = warmup_cosine(rate, steps.div_ceil(10), 0, Some(steps), 0.0)
            .map_err(|problem| Error::Option(format!("--learning-rate {rate}: {problem}")))?;
        let model = self.prepared(model);
        exit::println(&format!(
            "{} of {} parameters are trainable, in {steps} steps",
            trainable(&model),
            model.num_params()
        ));
        let loader = |batches: Vec<Vec<E>>| {
            DataLoaderBuilder::new(batcher.clone())
                .batch_size(1)
                .shuffle(self.seed)
                .set_device(device.clone())
                .build(InMemDataset::new(batches))
        };
        let training = SupervisedTraining::new(folder, loader(train), loader(held_out))
            .with_training_strategy(ExecutionStrategy::single(device.clone()).into())
            .with_application_logger(None)
            .num_epochs(self.epochs);
        // The dashboard of a terminal would not say how training ended.
        let training = learner::without_dashboard(metrics(training));
        let interrupter = training.interrupter();
        learner::stop_by_ctrl_c(interrupter.clone());
        let optimizer = AdamWConfig::new()
            .with_epsilon(1e-8)
            .with_weight_decay(0.01)
            .init();
        let result = training.launch(Learner::new(model, optimizer, schedule));
        if let Some(error) = result.error {
            return Err(Error::Training(error.to_string()));
        }
        if result.interrupted.is_some() {
            return Ok(None);
        }
        // From now on, the first Ctrl-C ends the program.
        interrupter.stop(Some("training is over"));
        let model = result.model.materialize();
        if !is_finite(&model) {
            let problem = "the parameters are no longer numbers: try a lower --learning-rate";
            return Err(Error::Training(problem.into()));
        }
        Ok(Some(model))
    }
}

/// The step of a model: the gradients of its loss, with a common norm of at most 1, and what the metrics see.
pub fn step<M: Module, O>(model: &M, loss: &Tensor<1>, output: O) -> TrainOutput<O> {
    let step = TrainOutput::new(model, loss.backward(), output);
    TrainOutput {
        grads: clip_by_global_norm(step.grads, model, 1.0),
        ..step
    }
}

/// The number of trainable parameters.
fn trainable<M: Module>(model: &M) -> usize {
    struct Count(usize);

    impl ModuleVisitor for Count {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.val().is_require_grad() {
                self.0 += param.val().shape().num_elements();
            }
        }
    }

    let mut count = Count(0);
    model.visit(&mut count);
    count.0
}

/// Whether no parameter has become infinite or worse.
fn is_finite<M: Module>(model: &M) -> bool {
    struct Finite(bool);

    impl ModuleVisitor for Finite {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let largest = param.val().abs().max().into_scalar::<f32>();
            self.0 &= largest.is_finite();
        }
    }

    let mut finite = Finite(true);
    model.visit(&mut finite);
    finite.0
}
