//! How positive a text is: a score for it, by a head on the pooled first token of a BERT.

use std::path::Path;

use burn::{
    data::dataloader::batcher::Batcher,
    module::Module,
    tensor::{
        Device, Int, Tensor,
        activation::{log_sigmoid, sigmoid},
    },
    train::{
        ClassificationOutput, InferenceStep, SupervisedTraining, TrainOutput, TrainStep,
        metric::{AccuracyMetric, LossMetric},
    },
};
use burn_attn::dropout;
use burn_attn_models::{
    bert::BertInput,
    train::{BatchSize, batches_by_length},
};
use tokenizers::Encoding;

use crate::{
    Error,
    encoder::{Encoder, Task, input},
    fine_tuning::{self, FineTuning},
    reviews::Review,
    tokens::{self, Tokenizer},
};

/// A score for a text.
pub const TASK: Task = Task {
    class: "SequenceClassification",
    head: "classifier",
    outputs: 1,
    pooled: true,
    program: "sentiment",
};
/// Texts that are scored together.
const BATCH: usize = 64;

/// An encoder with a head that scores texts.
#[derive(Module, Debug)]
pub struct SentimentModel {
    /// The encoder and the head.
    pub encoder: Encoder,
}

impl SentimentModel {
    /// The score of each text: below 0 is negative, above 0 positive.
    ///
    /// # Shapes
    /// - output: `[batch]`
    pub fn forward(&self, texts: BertInput) -> Tensor<1> {
        let Encoder {
            bert,
            head,
            dropout: layer,
        } = &self.encoder;
        let pooled = dropout(layer, bert.pool(bert.forward(texts)));
        head.forward(pooled).squeeze_dim(1)
    }

    /// The score of each text, in their order. `done` is called with the number of texts just scored.
    pub fn scores(&self, texts: &[Encoding], mut done: impl FnMut(usize)) -> Vec<f32> {
        let device = self.encoder.head.weight.device();
        let lengths: Vec<[usize; 1]> = texts.iter().map(|text| [text.len()]).collect();
        let mut scores = vec![0.0; texts.len()];
        for batch in batches_by_length(&lengths, BatchSize::Samples(BATCH), 0, 0) {
            let of_batch: Vec<&Encoding> = batch.iter().map(|&text| &texts[text]).collect();
            let found = self.forward(input(&of_batch, &device)).into_data();
            for (&text, score) in batch.iter().zip(found.iter::<f32>()) {
                scores[text] = score;
            }
            done(batch.len());
        }
        scores
    }
}

/// A text as tokens, and its score.
#[derive(Clone, Debug)]
pub struct Example {
    /// The text.
    pub text: Encoding,
    /// The score that people gave.
    pub score: f32,
}

/// Reviews as examples.
///
/// # Errors
/// If one has no tokens, or more than the model reads.
pub fn examples(
    reviews: &[Review],
    tokenizer: &Tokenizer,
    max_len: usize,
) -> Result<Vec<Example>, Error> {
    let example = |review: &Review| {
        Ok(Example {
            text: tokens::encoded(tokenizer, &review.text, max_len)?,
            score: review.score,
        })
    };
    reviews.iter().map(example).collect()
}

/// The fraction of scores whose sign is that of the people's: above 0, or not.
pub fn accuracy<'a>(scores: impl IntoIterator<Item = (f32, &'a Example)>) -> f64 {
    let (mut right, mut all) = (0, 0);
    for (score, example) in scores {
        right += usize::from((score > 0.0) == (example.score > 0.0));
        all += 1;
    }
    right as f64 / all as f64
}

/// Fine-tunes a model for scores; nothing if it was stopped.
///
/// # Errors
/// If training fails.
pub fn fine_tune(
    model: SentimentModel,
    [train, held_out]: [&[Example]; 2],
    options: &FineTuning,
    folder: &Path,
    device: &Device,
) -> Result<Option<SentimentModel>, Error> {
    let batches = |examples| options.batches(examples, |example: &Example| example.text.len());
    let metrics = |training: SupervisedTraining<_>| {
        training
            .metrics((LossMetric::new(),))
            .metric_valid_numeric(AccuracyMetric::new())
    };
    let data = [batches(train), batches(held_out)];
    options.run(model, ReviewBatcher, data, metrics, folder, device)
}

/// What the learner reads.
#[derive(Clone, Debug)]
pub struct ReviewBatch {
    texts: BertInput,
    /// `[batch]`
    scores: Tensor<1>,
    /// `[batch]`: 1 for a score above 0.
    signs: Tensor<1, Int>,
}

#[derive(Clone, Debug)]
struct ReviewBatcher;

impl Batcher<Vec<Example>, ReviewBatch> for ReviewBatcher {
    fn batch(&self, batches: Vec<Vec<Example>>, device: &Device) -> ReviewBatch {
        let examples: Vec<Example> = batches.into_iter().flatten().collect();
        let texts: Vec<&Encoding> = examples.iter().map(|example| &example.text).collect();
        let scores: Vec<f32> = examples.iter().map(|example| example.score).collect();
        let signs: Vec<i32> = scores.iter().map(|&score| i32::from(score > 0.0)).collect();
        ReviewBatch {
            texts: input(&texts, device),
            scores: Tensor::from_data(scores.as_slice(), device),
            signs: Tensor::from_data(signs.as_slice(), device),
        }
    }
}

impl SentimentModel {
    /// The binary cross-entropy, with `sigmoid(s)` as the probability that a text with the score `s` is positive.
    fn output(&self, scores: Tensor<1>, batch: ReviewBatch) -> ClassificationOutput {
        let expected = sigmoid(batch.scores);
        let positive = log_sigmoid(scores.clone()) * expected.clone();
        let negative = log_sigmoid(scores.clone().neg()) * (expected.neg() + 1.0);
        let loss = (positive + negative).mean().neg();
        // The metrics expect a logit for each class; that of the negative one is 0.
        let logits = Tensor::stack(vec![scores.zeros_like(), scores], 1);
        ClassificationOutput::new(loss, logits, batch.signs)
    }
}

impl TrainStep for SentimentModel {
    type Input = ReviewBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: ReviewBatch) -> TrainOutput<ClassificationOutput> {
        let output = self.output(self.forward(batch.texts.clone()), batch);
        fine_tuning::step(self, &output.loss.clone(), output)
    }
}

impl InferenceStep for SentimentModel {
    type Input = ReviewBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: ReviewBatch) -> ClassificationOutput {
        self.output(self.forward(batch.texts.clone()), batch)
    }
}
