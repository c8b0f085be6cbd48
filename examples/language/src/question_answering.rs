//! Reads the answer to a question out of a passage: where it starts and where it ends (Devlin et al., arXiv:1810.04805, section 4.2).

use std::ops::Range;

use burn::{
    tensor::{Device, Int, Tensor, TensorData, activation::log_softmax},
    train::ClassificationOutput,
};
use burn_attn_models::bert::BertInput;
use tokenizers::Encoding;

use crate::{
    Error,
    batches::in_batches,
    encoder::{Encoder, Task, input},
    error::about,
    fine_tuning::{Model, Objective},
    questions::Example,
    tokens::Tokenizer,
};

/// Questions that are answered together.
const BATCH: usize = 32;
/// Tokens of an answer at most.
const LONGEST: usize = 30;
/// Added to the logits of tokens that no answer has.
const NEVER: f32 = -1e9;

/// Two numbers for each token: whether the answer starts there, and whether it ends there.
#[derive(Clone, Debug)]
pub struct QuestionAnswering;

/// A question and a passage as tokens.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Both, with tokens around them.
    pub tokens: Encoding,
    /// Which tokens are the passage's.
    pub passage: Range<usize>,
}

impl Reading {
    /// The tokens of a question and a passage.
    ///
    /// # Errors
    /// If one of them has none, or both together more than the model reads.
    pub fn new(tokenizer: &Tokenizer, question: &str, passage: &str) -> Result<Self, Error> {
        let tokens = tokenizer.encode((question, passage), true)?;
        let sequences = tokens.get_sequence_ids();
        let of = |sequence: usize, text: &str| {
            let is_of = |id: &Option<usize>| *id == Some(sequence);
            let first = sequences.iter().position(is_of);
            let last = sequences.iter().rposition(is_of);
            let range = first.zip(last).map(|(first, last)| first..last + 1);
            range.ok_or_else(|| about(text, "this text has no tokens"))
        };
        of(0, question)?;
        let passage = of(1, passage)?;
        let (len, most) = (tokens.len(), tokenizer.max_len);
        if len > most {
            let problem = format!(
                "this question and its passage have {len} tokens, but this encoder reads at most {most}"
            );
            return Err(about(question, &problem));
        }
        Ok(Self { tokens, passage })
    }

    /// The tokens that these bytes of the passage touch, the first and the last.
    fn tokens_of(&self, bytes: &Range<usize>) -> Option<[usize; 2]> {
        let offsets = self.tokens.get_offsets();
        let mut touched = self.passage.clone().filter(|&token| {
            let (start, end) = offsets[token];
            start < bytes.end && bytes.start < end
        });
        let first = touched.next()?;
        Some([first, touched.next_back().unwrap_or(first)])
    }

    /// The bytes of the passage from the first to the last of these tokens.
    fn bytes_of(&self, [first, last]: [usize; 2]) -> Range<usize> {
        let offsets = self.tokens.get_offsets();
        offsets[first].0..offsets[last].1
    }
}

/// What a reader found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The bytes of the passage.
    pub bytes: Range<usize>,
    /// How probable the reader finds its start times how probable its end.
    pub probability: f32,
}

impl Model<QuestionAnswering> {
    /// The logarithms of the probabilities that the answer starts and ends at each token.
    ///
    /// # Shapes
    /// - `passages`: `[batch, len]`, 0 for tokens of the passage, and a very low number for all others
    /// - output: `[batch, 2, len]`
    pub fn forward(&self, texts: BertInput, passages: Tensor<2>) -> Tensor<3> {
        let Encoder { bert, head, .. } = &self.encoder;
        let logits = head.forward(bert.forward(texts)).swap_dims(1, 2);
        log_softmax(logits + passages.unsqueeze_dim::<3>(1), 2)
    }

    /// The answer to each question, in their order. `done` is called with the number of questions just answered.
    pub fn answers(&self, readings: &[Reading], mut done: impl FnMut(usize)) -> Vec<Answer> {
        let device = self.encoder.head.weight.device();
        let of_batch = |batch: &[&Reading]| {
            let (texts, passages) = model_input(batch, &device);
            let probabilities = self.forward(texts, passages);
            let [_, _, len] = probabilities.dims();
            let probabilities = probabilities.into_data();
            let probabilities: Vec<f32> = probabilities.iter::<f32>().collect();
            done(batch.len());
            let rows = batch.iter().zip(probabilities.chunks(2 * len));
            rows.map(|(reading, row)| best(reading, row.split_at(len)))
                .collect()
        };
        let len = |reading: &Reading| reading.tokens.len();
        in_batches(readings, len, BATCH, of_batch)
    }
}

/// The most probable answer that ends where it starts or later, by the logarithms of the probabilities of its start and its end.
fn best(reading: &Reading, (starts, ends): (&[f32], &[f32])) -> Answer {
    let spans = reading.passage.clone().flat_map(|first| {
        let last = reading.passage.end.min(first + LONGEST);
        (first..last).map(move |last| [first, last])
    });
    let probability = |&[first, last]: &[usize; 2]| starts[first] + ends[last];
    let span = spans.max_by(|a, b| probability(a).total_cmp(&probability(b)));
    // A passage has at least one token.
    let span = span.unwrap_or([reading.passage.start; 2]);
    Answer {
        bytes: reading.bytes_of(span),
        probability: probability(&span).exp(),
    }
}

/// What the model reads: the tokens, and which of them no answer has.
fn model_input(readings: &[&Reading], device: &Device) -> (BertInput, Tensor<2>) {
    let texts: Vec<&Encoding> = readings.iter().map(|reading| &reading.tokens).collect();
    let len = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let mut passages = vec![NEVER; readings.len() * len];
    for (row, reading) in passages.chunks_mut(len.max(1)).zip(readings) {
        row[reading.passage.clone()].fill(0.0);
    }
    let passages = TensorData::new(passages, [readings.len(), len]);
    (input(&texts, device), Tensor::from_data(passages, device))
}

/// A question, its passage, and the first and last token of the answer.
#[derive(Clone, Debug)]
pub struct Span {
    /// What is read.
    pub reading: Reading,
    /// The first and the last token of the answer.
    pub answer: [usize; 2],
}

/// Questions as the model learns them.
///
/// # Errors
/// If one is too long, or its answer has no tokens.
pub fn spans(examples: &[Example], tokenizer: &Tokenizer) -> Result<Vec<Span>, Error> {
    let span = |example: &Example| {
        let reading = Reading::new(tokenizer, &example.question, &example.passage)?;
        let answer = reading.tokens_of(&example.answer);
        let answer = answer.ok_or_else(|| about(example.answer(), "this answer has no tokens"))?;
        Ok(Span { reading, answer })
    };
    examples.iter().map(span).collect()
}

/// Examples as tensors.
#[derive(Clone, Debug)]
pub struct SpanBatch {
    texts: BertInput,
    /// `[batch, len]`
    passages: Tensor<2>,
    /// `[batch, 2]`
    answers: Tensor<2, Int>,
}

impl Objective for QuestionAnswering {
    const TASK: Task = Task {
        class: "QuestionAnswering",
        head: "qa_outputs",
        outputs: 2,
        pooled: false,
        program: "answer",
    };
    type Example = Span;
    type Batch = SpanBatch;

    fn len(example: &Span) -> usize {
        example.reading.tokens.len()
    }

    fn batch(spans: &[Span], device: &Device) -> SpanBatch {
        let readings: Vec<&Reading> = spans.iter().map(|span| &span.reading).collect();
        let (texts, passages) = model_input(&readings, device);
        let answers = spans.iter().flat_map(|span| span.answer);
        let answers: Vec<i32> = answers.map(|token| token as i32).collect();
        SpanBatch {
            texts,
            passages,
            answers: Tensor::from_data(TensorData::new(answers, [spans.len(), 2]), device),
        }
    }

    /// The cross-entropy of the two tokens, each of which the metrics see as one of `len` classes.
    fn output(model: &Model<Self>, batch: SpanBatch) -> ClassificationOutput {
        let probabilities = model.forward(batch.texts, batch.passages);
        let answers = batch.answers.clone().unsqueeze_dim::<3>(2);
        let loss = probabilities.clone().gather(2, answers).mean().neg();
        let (logits, classes) = (probabilities.flatten(0, 1), batch.answers.flatten(0, 1));
        ClassificationOutput::new(loss, logits, classes)
    }
}

#[cfg(test)]
mod tests;
