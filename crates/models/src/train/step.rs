//! The steps that Burn's learner takes with a model.

use burn::{
    module::Module,
    tensor::Tensor,
    train::{InferenceStep, SequenceOutput, TrainOutput, TrainStep},
};
use burn_attn::{TokenMixer, with_dropout_seed};

use super::{ImageBatch, LanguageModelBatch, Seq2SeqBatch, Targets, TokenBatch};
use crate::{
    language_model::LanguageModel,
    loss::{smoothed_cross_entropy, validation_loss, wide},
    segformer::Segformer,
    seq2seq::Seq2Seq,
    vit::Vit,
};

/// The steps of a model, given its logits for a batch, `[batch, len, vocab_size]`.
macro_rules! steps {
    ($(<$mixer:ident>)? $model:ident: $of:ty, $batch:ident: $input:ty, $logits:expr) => {
        /// The gradients are those of the loss divided by the batch's divisor; the loss for metrics is the mean over the tokens of the batch.
        impl$(<$mixer: TokenMixer>)? TrainStep for $of {
            type Input = $input;
            type Output = SequenceOutput;

            fn step(&self, mut $batch: $input) -> TrainOutput<SequenceOutput> {
                let ($model, targets) = (self, $batch.targets().clone());
                step(self, targets, || $logits)
            }
        }

        /// The loss is not smoothed.
        impl$(<$mixer: TokenMixer>)? InferenceStep for $of {
            type Input = $input;
            type Output = SequenceOutput;

            fn step(&self, mut $batch: $input) -> SequenceOutput {
                let ($model, targets) = (self, $batch.targets().clone());
                validation($logits, targets)
            }
        }
    };
}

steps!(<M> model: LanguageModel<M>, batch: LanguageModelBatch, model.forward(batch.input));
steps!(
    model: Seq2Seq,
    batch: Seq2SeqBatch,
    model.forward(batch.source, &batch.source_lengths, batch.input)
);
steps!(
    model: Vit,
    batch: ImageBatch,
    model.logits(batch.images).unsqueeze_dim(1)
);
// A pixel is a token.
steps!(
    model: Segformer,
    batch: ImageBatch,
    {
        let [.., height, width] = batch.images.dims();
        model.pixel_logits(batch.images, [height, width])
    }
);

fn step<M: Module>(
    model: &M,
    targets: Targets,
    logits: impl FnOnce() -> Tensor<3>,
) -> TrainOutput<SequenceOutput> {
    let logits = with_dropout_seed(targets.step_seed(), logits);
    targets.check(&logits);
    let Targets {
        tokens,
        weights,
        count,
        divisor,
        smoothing,
        ..
    } = targets;
    let loss = smoothed_cross_entropy(logits.clone(), tokens.clone(), weights, divisor, smoothing);
    let output = SequenceOutput::new(
        loss.value * (divisor as f64 / count.max(1) as f64),
        for_metrics(logits.inner()),
        None,
        tokens,
    );
    TrainOutput::new(model, loss.surrogate.backward(), output)
}

fn validation(logits: Tensor<3>, targets: Targets) -> SequenceOutput {
    targets.check(&logits);
    let Targets {
        tokens,
        weights,
        count,
        ..
    } = targets;
    let loss = validation_loss(logits.clone(), tokens.clone(), weights, count.max(1));
    SequenceOutput::new(loss, for_metrics(logits), None, tokens)
}

/// Burn's metrics compute in the type of the logits, and half precision has too few digits for a perplexity.
pub(super) fn for_metrics(logits: Tensor<3>) -> Tensor<3> {
    let dtype = wide(logits.dtype());
    logits.cast(dtype)
}
