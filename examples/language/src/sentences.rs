//! A sentence encoder: a BERT that turns a text into a vector, so that texts of a similar meaning have vectors of a similar direction.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::{
    bert::{Bert, BertInput},
    pretrained,
    tokens::padded,
};
use burn_attn_viz::AttentionMap;
use serde_json::Value;
use tokenizers::{Encoding, Tokenizer};

use crate::{Error, encoder, template::fields_if_any, tokens};

/// Texts that are encoded together.
const BATCH: usize = 32;
/// Tokens of a text at most, if nothing else is said: MiniLM's limit.
const LONGEST: usize = 256;

/// A BERT and its tokenizer.
#[derive(Debug)]
pub struct SentenceEncoder {
    bert: Bert,
    tokenizer: Tokenizer,
    device: Device,
    longest: usize,
    pooling: Pooling,
}

/// How the states of a text become its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pooling {
    /// Their mean, as in MiniLM.
    Mean,
    /// The first one.
    First,
}

impl Pooling {
    /// By the file of `sentence-transformers`; the mean if there is none.
    fn of(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("1_Pooling/config.json");
        let Some(fields) = fields_if_any(&path)? else {
            return Ok(Self::Mean);
        };
        let modes: Vec<&String> = fields
            .iter()
            .filter(|(name, value)| name.starts_with("pooling_mode_") && **value == true)
            .map(|(name, _)| name)
            .collect();
        match modes[..] {
            [mode] if mode == "pooling_mode_mean_tokens" => Ok(Self::Mean),
            [mode] if mode == "pooling_mode_cls_token" => Ok(Self::First),
            _ => Err(Error::Option(format!(
                "{} asks for {modes:?}, and this program knows pooling_mode_mean_tokens or pooling_mode_cls_token alone",
                path.display()
            ))),
        }
    }
}

/// Tokens of a text at most, by the file of `sentence-transformers`.
fn longest(folder: &Path) -> Result<usize, Error> {
    let fields = fields_if_any(&folder.join("sentence_bert_config.json"))?.unwrap_or_default();
    let longest = fields.get("max_seq_length").and_then(Value::as_u64);
    Ok(longest.map_or(LONGEST, |longest| longest as usize).max(3))
}

impl SentenceEncoder {
    /// Loads the model of a folder or of a name on the Hub.
    ///
    /// # Errors
    /// If it is not a BERT or ALBERT with its tokenizer.
    pub fn load(source: &Path, device: Device) -> Result<Self, Error> {
        let bert = Bert::from_pretrained(source, &device)?;
        let [vocab_size, _] = bert.tokens.weight.dims();
        let tokenizer = tokens::tokenizer(source, vocab_size)?;
        let folder = pretrained::folder(source)?;
        let longest = longest(&folder)?.min(bert.max_len());
        let pooling = Pooling::of(&folder)?;
        Ok(Self {
            bert,
            tokenizer,
            device,
            longest,
            pooling,
        })
    }

    /// Longest text (tokens), those at its ends included.
    pub fn max_len(&self) -> usize {
        self.longest
    }

    /// The tokens of a text, without those at its ends.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn words(&self, text: &str) -> Result<Encoding, Error> {
        Ok(self.tokenizer.encode(text, false)?)
    }

    /// The tokens of a text as the model reads them.
    ///
    /// # Errors
    /// If it has none, or too many.
    pub fn tokens(&self, text: &str) -> Result<Encoding, Error> {
        tokens::encoded(&self.tokenizer, text, self.max_len())
    }

    /// As [`tokens`](Self::tokens), but of any length.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn unlimited_tokens(&self, text: &str) -> Result<Encoding, Error> {
        Ok(self.tokenizer.encode(text, true)?)
    }

    /// A vector of length 1 for each row of tokens, in the same order. `done` is called with the number of rows just encoded.
    ///
    /// # Shapes
    /// `[rows][d_model]`
    pub fn vectors(&self, rows: &[Vec<u32>], mut done: impl FnMut(usize)) -> Vec<Vec<f32>> {
        // Rows of similar lengths have little padding.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&row| rows[row].len());
        let mut vectors = vec![Vec::new(); rows.len()];
        for batch in order.chunks(BATCH) {
            let tokens: Vec<&Vec<u32>> = batch.iter().map(|&row| &rows[row]).collect();
            let lengths: Vec<usize> = tokens.iter().map(|row| row.len()).collect();
            let (tokens, _) = padded(&tokens, &self.device);
            let states = self.bert.forward(BertInput::new(tokens).lengths(&lengths));
            let states = match self.pooling {
                Pooling::Mean => states,
                Pooling::First => states.narrow(1, 0, 1),
            };
            let lengths = match self.pooling {
                Pooling::Mean => lengths,
                Pooling::First => vec![1; batch.len()],
            };
            let found = self.bert.sentence_vectors(states, &lengths).into_data();
            let found: Vec<f32> = found.iter::<f32>().collect();
            for (&row, vector) in batch.iter().zip(found.chunks(found.len() / batch.len())) {
                vectors[row] = vector.to_vec();
            }
            done(batch.len());
        }
        vectors
    }

    /// The attention of every layer and head while the model reads a text.
    ///
    /// # Errors
    /// If a weight is not a number.
    pub fn attention(&self, text: &Encoding) -> Result<Vec<AttentionMap>, Error> {
        encoder::attention(&self.bert, text)
    }
}

/// The cosine of the angle between two vectors of length 1.
///
/// # Panics
/// If they are not of one width.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "two vectors of one model");
    let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
    products.sum::<f64>() as f32
}
