//! The steps that Burn's learner takes with a model.

use burn::{
    module::Module,
    tensor::Tensor,
    train::{InferenceStep, SequenceOutput, TrainOutput, TrainStep},
};
use burn_attn::with_dropout_seed;

use super::{ImageBatch, LanguageModelBatch, Seq2SeqBatch, Targets};
use crate::{
    language_model::LanguageModel,
    loss::{smoothed_cross_entropy, validation_loss, wide},
    segformer::Segformer,
    seq2seq::Seq2Seq,
    vit::Vit,
};

/// The gradients are those of the loss divided by the batch's divisor; the loss that the metrics see is the mean over its own tokens.
impl TrainStep for LanguageModel {
    type Input = LanguageModelBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: LanguageModelBatch) -> TrainOutput<SequenceOutput> {
        step(self, batch.targets, || self.forward(batch.input))
    }
}

/// The loss is not smoothed.
impl InferenceStep for LanguageModel {
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
        step(self, batch.targets, || {
            self.logits(batch.images).unsqueeze_dim(1)
        })
    }
}

/// As for [`LanguageModel`].
impl InferenceStep for Vit {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> SequenceOutput {
        validation(self.logits(batch.images).unsqueeze_dim(1), batch.targets)
    }
}

/// As for [`LanguageModel`]; a pixel is a token.
impl TrainStep for Segformer {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> TrainOutput<SequenceOutput> {
        step(self, batch.targets, || of_pixels(self, batch.images))
    }
}

/// As for [`LanguageModel`].
impl InferenceStep for Segformer {
    type Input = ImageBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: ImageBatch) -> SequenceOutput {
        validation(of_pixels(self, batch.images), batch.targets)
    }
}

/// The logits of all pixels, `[batch, height · width, n_classes]`.
fn of_pixels(model: &Segformer, images: Tensor<4>) -> Tensor<3> {
    let [.., height, width] = images.dims();
    model.pixel_logits(images, [height, width])
}

fn step<M: Module>(
    model: &M,
    targets: Targets,
    logits: impl FnOnce() -> Tensor<3>,
) -> TrainOutput<SequenceOutput> {
    let Targets {
        tokens,
        weights,
        count,
        divisor,
        smoothing,
        dropout_seed,
    } = targets;
    // An odd factor keeps different seeds apart.
    let [of_tokens, seed] = dropout_seed;
    let seed = of_tokens ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let logits = with_dropout_seed(seed, logits);
    let loss = smoothed_cross_entropy(logits.clone(), tokens.clone(), weights, divisor, smoothing);
    let output = SequenceOutput::new(
        loss.value * (divisor as f64 / count as f64),
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
    let loss = validation_loss(logits.clone(), tokens.clone(), weights, count);
    SequenceOutput::new(loss, for_metrics(logits), None, tokens)
}

/// Burn's metrics compute in the type of the logits, and half precision has too few digits for a perplexity.
fn for_metrics(logits: Tensor<3>) -> Tensor<3> {
    let dtype = wide(logits.dtype());
    logits.cast(dtype)
}
