//! Reads the answer to a question out of a passage: where it starts and where it ends (Devlin et al., arXiv:1810.04805, section 4.2).

use std::{ops::Range, path::Path};

use burn::{
    data::dataloader::batcher::Batcher,
    module::Module,
    tensor::{Device, Int, Tensor, TensorData, activation::log_softmax},
    train::{
        InferenceStep, SequenceOutput, SupervisedTraining, TrainOutput, TrainStep,
        metric::{AccuracyMetric, LossMetric},
    },
};
use burn_attn_models::{
    bert::BertInput,
    train::{BatchSize, batches_by_length},
};
use tokenizers::Encoding;

use crate::{
    Error,
    encoder::{Encoder, Task, input},
    fine_tuning::{self, FineTuning},
    questions::Example,
    tokens::Tokenizer,
};

/// Two numbers for each token: whether the answer starts there, and whether it ends there.
pub const TASK: Task = Task {
    class: "QuestionAnswering",
    head: "qa_outputs",
    outputs: 2,
    pooled: false,
    program: "answer",
};
/// Questions that are answered together.
const BATCH: usize = 32;
/// Tokens of an answer at most.
const LONGEST: usize = 30;
/// Added to the logits of tokens that no answer has.
const NEVER: f32 = -1e9;

/// An encoder with a head that finds answers.
#[derive(Module, Debug)]
pub struct QuestionAnswering {
    /// The encoder and the head.
    pub encoder: Encoder,
}

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
    /// If one of them has none, or both together more than `most`.
    pub fn new(
        tokenizer: &Tokenizer,
        question: &str,
        passage: &str,
        most: usize,
    ) -> Result<Self, Error> {
        let tokens = tokenizer.encode((question, passage), true)?;
        let sequences = tokens.get_sequence_ids();
        let of = |sequence: usize, text: &str| {
            let is_of = |id: &Option<usize>| *id == Some(sequence);
            let first = sequences.iter().position(is_of);
            let last = sequences.iter().rposition(is_of);
            let range = first.zip(last).map(|(first, last)| first..last + 1);
            range.ok_or_else(|| Error::text(text, "this text has no tokens"))
        };
        of(0, question)?;
        let passage = of(1, passage)?;
        if tokens.len() > most {
            let len = tokens.len();
            let problem = format!(
                "this question and its passage have {len} tokens, but this encoder reads at most {most}"
            );
            return Err(Error::text(question, problem));
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
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The bytes of the passage.
    pub bytes: Range<usize>,
    /// How probable the reader finds its start times how probable its end.
    pub probability: f32,
}

impl QuestionAnswering {
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
        let lengths: Vec<[usize; 1]> = readings
            .iter()
            .map(|reading| [reading.tokens.len()])
            .collect();
        let mut answers = vec![None; readings.len()];
        for batch in batches_by_length(&lengths, BatchSize::Samples(BATCH), 0, 0) {
            let of_batch: Vec<&Reading> = batch.iter().map(|&index| &readings[index]).collect();
            let (texts, passages) = model_input(&of_batch, &device);
            let probabilities = self.forward(texts, passages);
            let [_, _, len] = probabilities.dims();
            let probabilities = probabilities.into_data();
            let probabilities: Vec<f32> = probabilities.iter::<f32>().collect();
            for (&index, row) in batch.iter().zip(probabilities.chunks(2 * len)) {
                answers[index] = Some(best(&readings[index], row.split_at(len)));
            }
            done(batch.len());
        }
        answers.into_iter().flatten().collect()
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
pub fn spans(
    examples: &[Example],
    tokenizer: &Tokenizer,
    max_len: usize,
) -> Result<Vec<Span>, Error> {
    let span = |example: &Example| {
        let reading = Reading::new(tokenizer, &example.question, &example.passage, max_len)?;
        let answer = reading.tokens_of(&example.answer);
        let answer =
            answer.ok_or_else(|| Error::text(example.answer(), "this answer has no tokens"))?;
        Ok(Span { reading, answer })
    };
    examples.iter().map(span).collect()
}

/// Fine-tunes a model for answers; nothing if it was stopped.
///
/// # Errors
/// If training fails.
pub fn fine_tune(
    model: QuestionAnswering,
    [train, held_out]: [&[Span]; 2],
    options: &FineTuning,
    folder: &Path,
    device: &Device,
) -> Result<Option<QuestionAnswering>, Error> {
    let batches = |spans| options.batches(spans, |span: &Span| span.reading.tokens.len());
    let metrics = |training: SupervisedTraining<_>| {
        training
            .metrics((LossMetric::new(),))
            .metric_valid_numeric(AccuracyMetric::new())
    };
    let data = [batches(train), batches(held_out)];
    options.run(model, SpanBatcher, data, metrics, folder, device)
}

/// What the learner reads.
#[derive(Clone, Debug)]
pub struct SpanBatch {
    texts: BertInput,
    /// `[batch, len]`
    passages: Tensor<2>,
    /// `[batch, 2]`
    answers: Tensor<2, Int>,
}

#[derive(Clone, Debug)]
struct SpanBatcher;

impl Batcher<Vec<Span>, SpanBatch> for SpanBatcher {
    fn batch(&self, batches: Vec<Vec<Span>>, device: &Device) -> SpanBatch {
        let spans: Vec<Span> = batches.into_iter().flatten().collect();
        let readings: Vec<&Reading> = spans.iter().map(|span| &span.reading).collect();
        let (texts, passages) = model_input(&readings, device);
        let answers: Vec<i32> = (spans.iter())
            .flat_map(|span| span.answer.map(|token| token as i32))
            .collect();
        SpanBatch {
            texts,
            passages,
            answers: Tensor::from_data(TensorData::new(answers, [spans.len(), 2]), device),
        }
    }
}

impl QuestionAnswering {
    /// The cross-entropy of the two tokens; the metrics see them as a sequence of two.
    fn output(&self, batch: SpanBatch) -> SequenceOutput {
        let probabilities = self.forward(batch.texts, batch.passages);
        let answers = batch.answers.clone().unsqueeze_dim::<3>(2);
        let loss = probabilities.clone().gather(2, answers).mean().neg();
        SequenceOutput::new(loss, probabilities, None, batch.answers)
    }
}

impl TrainStep for QuestionAnswering {
    type Input = SpanBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: SpanBatch) -> TrainOutput<SequenceOutput> {
        let output = self.output(batch);
        fine_tuning::step(self, &output.loss.clone(), output)
    }
}

impl InferenceStep for QuestionAnswering {
    type Input = SpanBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: SpanBatch) -> SequenceOutput {
        self.output(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads "[CLS] question [SEP] passage [SEP]" in pieces of words.
    fn tokenizer() -> Tokenizer {
        let words = "[UNK] [CLS] [SEP] who où is a ##nna ##ï ##t ol ##d caf ##é café .";
        let vocabulary: serde_json::Map<_, _> = (words.split(' ').zip(0..))
            .map(|(word, id): (&str, u32)| (word.to_string(), id.into()))
            .collect();
        let vocab_size = vocabulary.len();
        let special = |token: &str, type_id: u32| serde_json::json!({"SpecialToken": {"id": token, "type_id": type_id}});
        let text = |id: &str, type_id: u32| serde_json::json!({"Sequence": {"id": id, "type_id": type_id}});
        let of_special =
            |token: &str, id: u32| serde_json::json!({"id": token, "ids": [id], "tokens": [token]});
        let fields = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": null,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [special("[CLS]", 0), text("A", 0), special("[SEP]", 0)],
                "pair": [special("[CLS]", 0), text("A", 0), special("[SEP]", 0), text("B", 1), special("[SEP]", 1)],
                "special_tokens": {"[CLS]": of_special("[CLS]", 1), "[SEP]": of_special("[SEP]", 2)}
            },
            "model": {
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocabulary
            }
        });
        Tokenizer::new(fields.to_string().parse().unwrap(), vocab_size)
    }

    #[test]
    fn tokens_and_bytes_of_an_answer_belong_together() {
        let passage = "old café. anna is old. naïf";
        let reading = Reading::new(&tokenizer(), "où is anna", passage, 30).unwrap();
        // [CLS] où is a ##nna [SEP], and then the passage.
        assert_eq!(reading.passage.start, 6);
        let tokens = reading.tokens.get_tokens();
        assert_eq!(
            tokens[reading.passage.clone()],
            [
                "ol", "##d", "café", ".", "a", "##nna", "is", "ol", "##d", ".", "[UNK]"
            ]
        );
        for answer in ["café", "old café", "anna", "anna is old", "naïf"] {
            let start = passage.find(answer).unwrap();
            let bytes = start..start + answer.len();
            let tokens = reading.tokens_of(&bytes).unwrap();
            assert_eq!(&passage[reading.bytes_of(tokens)], answer);
        }
        // A part of a word is the whole piece that has it.
        let tokens = reading.tokens_of(&(1..2)).unwrap();
        assert_eq!((tokens, reading.bytes_of(tokens)), ([6, 6], 0..2));
        assert_eq!(reading.tokens_of(&(3..3)), None);
    }

    #[test]
    fn the_best_answer_is_in_the_passage_and_ends_after_it_starts() {
        let reading = Reading::new(&tokenizer(), "who", "anna is old", 30).unwrap();
        // [CLS] who [SEP] a ##nna is ol ##d [SEP]
        let len = reading.tokens.len();
        let [mut starts, mut ends] = [vec![-9.0; len], vec![-9.0; len]];
        // Outside, and an end before its start.
        (starts[1], ends[8]) = (0.0, 0.0);
        (starts[6], ends[4]) = (-1.0, -1.0);
        (starts[3], ends[7]) = (-2.0, -3.0);
        let answer = best(&reading, (&starts, &ends));
        // From "ol" to "##d": -4 beside the -3 of "anna".
        assert_eq!(answer.bytes, 0..4);
        assert!((answer.probability - (-3.0_f32).exp()).abs() < 1e-6);

        let words = "old ".repeat(40);
        let reading = Reading::new(&tokenizer(), "who", &words, 100).unwrap();
        let [mut starts, mut ends] = [(); 2].map(|()| vec![-9.0; reading.tokens.len()]);
        (starts[3], ends[3 + LONGEST]) = (0.0, 0.0);
        let answer = best(&reading, (&starts, &ends));
        assert!(answer.bytes.len() < 4 * LONGEST / 2);
    }
}
