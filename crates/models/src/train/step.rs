//! The steps that Burn's learner takes with a model.

use burn::{
    module::Module,
    tensor::Tensor,
    train::{InferenceStep, SequenceOutput, TrainOutput, TrainStep},
};
use burn_attn::{TokenMixer, with_dropout_seed};

use super::{ImageBatch, LanguageModelBatch, Seq2SeqBatch, Targets};
use crate::{
    language_model::LanguageModel,
    loss::{smoothed_cross_entropy, validation_loss, wide},
    segformer::Segformer,
    seq2seq::Seq2Seq,
    vit::Vit,
};

/// The gradients are those of the loss divided by the batch's divisor; the loss that the metrics see is the mean over its own tokens.
impl<M: TokenMixer> TrainStep for LanguageModel<M> {
    type Input = LanguageModelBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: LanguageModelBatch) -> TrainOutput<SequenceOutput> {
        step(self, batch.targets, || self.forward(batch.input))
    }
}

/// The loss is not smoothed.
impl<M: TokenMixer> InferenceStep for LanguageModel<M> {
    type Input = LanguageModelBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: LanguageModelBatch) -> SequenceOutput {
        validation(self.forward(batch.input), batch.targets)
    }
}

/// As for [`LanguageModel`].
impl TrainStep for Seq2Seq {
    type Input = Seq2SeqBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: Seq2SeqBatch) -> TrainOutput<SequenceOutput> {
        step(self, batch.targets, || {
            self.forward(batch.source, batch.source_lengths, batch.input)
        })
    }
}

/// As for [`LanguageModel`].
impl InferenceStep for Seq2Seq {
    type Input = Seq2SeqBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: Seq2SeqBatch) -> SequenceOutput {
        let logits = self.forward(batch.source, batch.source_lengths, batch.input);
        validation(logits, batch.targets)
    }
}

/// As for [`LanguageModel`].
impl TrainStep for Vit {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> TrainOutput<SequenceOutput> {
        let (images, targets, largest) = batch.into_parts();
        step(self, targets, || of_image(self, images, largest))
    }
}

/// As for [`LanguageModel`].
impl InferenceStep for Vit {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> SequenceOutput {
        let (images, targets, largest) = batch.into_parts();
        validation(of_image(self, images, largest), targets)
    }
}

/// As for [`LanguageModel`]; a pixel is a token.
impl TrainStep for Segformer {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> TrainOutput<SequenceOutput> {
        let (images, targets, largest) = batch.into_parts();
        step(self, targets, || of_pixels(self, images, largest))
    }
}

/// As for [`LanguageModel`].
impl InferenceStep for Segformer {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> SequenceOutput {
        let (images, targets, largest) = batch.into_parts();
        validation(of_pixels(self, images, largest), targets)
    }
}

/// The logits of images, `[batch, 1, n_classes]`.
fn of_image(model: &Vit, images: Tensor<4>, largest: u32) -> Tensor<3> {
    let logits = model.logits(images).unsqueeze_dim(1);
    ImageBatch::check(largest, &logits);
    logits
}

/// The logits of all pixels, `[batch, height · width, n_classes]`.
fn of_pixels(model: &Segformer, images: Tensor<4>, largest: u32) -> Tensor<3> {
    let [.., height, width] = images.dims();
    let logits = model.pixel_logits(images, [height, width]);
    ImageBatch::check(largest, &logits);
    logits
}

fn step<M: Module>(
    model: &M,
    targets: Targets,
    logits: impl FnOnce() -> Tensor<3>,
) -> TrainOutput<SequenceOutput> {
    let logits = with_dropout_seed(targets.step_seed(), logits);
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
