//! How positive a text is: a score for it, by a head on the pooled first token of a BERT.

use burn::{
    tensor::{
        Device, Int, Tensor,
        activation::{log_sigmoid, sigmoid},
    },
    train::ClassificationOutput,
};
use burn_attn::dropout;
use burn_attn_models::bert::BertInput;
use tokenizers::Encoding;

use crate::{
    Error,
    batches::in_batches,
    encoder::{Encoder, Task, input},
    fine_tuning::{Model, Objective},
    reviews::Review,
    tokens::Tokenizer,
};

/// Texts that are scored together.
const BATCH: usize = 64;

/// A score for a text.
#[derive(Clone, Debug)]
pub struct Sentiment;

impl Model<Sentiment> {
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
        let of_batch = |batch: &[&Encoding]| {
            let scores = self.forward(input(batch, &device)).into_data();
            done(batch.len());
            scores.iter::<f32>().collect()
        };
        in_batches(texts, Encoding::len, BATCH, of_batch)
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
pub fn examples(reviews: &[Review], tokenizer: &Tokenizer) -> Result<Vec<Example>, Error> {
    let example = |review: &Review| {
        Ok(Example {
            text: tokenizer.encode_text(&review.text)?,
            score: review.score,
        })
    };
    reviews.iter().map(example).collect()
}

/// Examples as tensors.
#[derive(Clone, Debug)]
pub struct ReviewBatch {
    texts: BertInput,
    /// `[batch]`
    scores: Tensor<1>,
    /// `[batch]`: 1 for a score above 0.
    signs: Tensor<1, Int>,
}

impl Objective for Sentiment {
    const TASK: Task = Task {
        class: "SequenceClassification",
        head: "classifier",
        outputs: 1,
        pooled: true,
        program: "sentiment",
    };
    type Example = Example;
    type Batch = ReviewBatch;

    fn len(example: &Example) -> usize {
        example.text.len()
    }

    fn batch(examples: &[Example], device: &Device) -> ReviewBatch {
        let texts: Vec<&Encoding> = examples.iter().map(|example| &example.text).collect();
        let scores: Vec<f32> = examples.iter().map(|example| example.score).collect();
        let signs: Vec<i32> = scores.iter().map(|&score| i32::from(score > 0.0)).collect();
        ReviewBatch {
            texts: input(&texts, device),
            scores: Tensor::from_data(scores.as_slice(), device),
            signs: Tensor::from_data(signs.as_slice(), device),
        }
    }

    /// The binary cross-entropy, with `sigmoid(s)` as the probability that a text with the score `s` is positive.
    fn output(model: &Model<Self>, batch: ReviewBatch) -> ClassificationOutput {
        let scores = model.forward(batch.texts);
        let expected = sigmoid(batch.scores);
        let positive = log_sigmoid(scores.clone()) * expected.clone();
        let negative = log_sigmoid(scores.clone().neg()) * (expected.neg() + 1.0);
        let loss = (positive + negative).mean().neg();
        // The metrics expect a logit for each class; that of the negative one is 0.
        let logits = Tensor::stack(vec![scores.zeros_like(), scores], 1);
        ClassificationOutput::new(loss, logits, batch.signs)
    }
}
