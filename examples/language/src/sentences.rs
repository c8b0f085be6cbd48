//! A sentence encoder: a BERT that turns a text into a vector, so that texts of a similar meaning have vectors of a similar direction.

use std::path::Path;

use burn::tensor::Device;
use burn_attn_models::{
    bert::{Bert, BertInput},
    pretrained::{self, PretrainedError},
    tokens::padded,
};
use burn_attn_viz::AttentionMap;
use example_common::pictures::maps;
use tokenizers::{Encoding, Tokenizer};

use crate::Error;

/// Texts that are encoded together.
const BATCH: usize = 32;
/// Tokens of a text at most: MiniLM was trained on 128 and is published with this limit.
const LONGEST: usize = 256;

/// A BERT and its tokenizer.
#[derive(Debug)]
pub struct SentenceEncoder {
    bert: Bert,
    tokenizer: Tokenizer,
    device: Device,
}

impl SentenceEncoder {
    /// Loads the model of a folder or of a name on the Hub.
    ///
    /// # Errors
    /// If it is not a BERT or ALBERT with its tokenizer.
    pub fn load(source: &Path, device: Device) -> Result<Self, Error> {
        let bert = Bert::from_pretrained(source, &device)?;
        let mut tokenizer = pretrained::tokenizer(source)?;
        let [vocab_size, _] = bert.tokens.weight.dims();
        let largest = tokenizer.get_vocab(true).into_values().max();
        if let Some(token) = largest.filter(|&token| token as usize >= vocab_size) {
            return Err(PretrainedError::Tokenizer {
                path: source.into(),
                reason: format!("it has a token {token}, but the model knows {vocab_size}"),
            }
            .into());
        }
        // The file may cut texts, or fill them up.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None)?;
        Ok(Self {
            bert,
            tokenizer,
            device,
        })
    }

    /// Longest text (tokens), those at its ends included.
    pub fn max_len(&self) -> usize {
        self.bert.max_len().min(LONGEST)
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
        if self.words(text)?.is_empty() {
            return Err(Error::text(text, "this text has no tokens"));
        }
        let tokens = self.unlimited_tokens(text)?;
        if tokens.len() > self.max_len() {
            let (len, most) = (tokens.len(), self.max_len());
            let problem = format!("this text has {len} tokens, but the model reads at most {most}");
            return Err(Error::text(text, problem));
        }
        Ok(tokens)
    }

    /// As [`tokens`](Self::tokens), but of any length.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn unlimited_tokens(&self, text: &str) -> Result<Encoding, Error> {
        Ok(self.tokenizer.encode(text, true)?)
    }

    /// A vector of length 1 for each row of tokens, in the same order. `done` hears how many more there are.
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
        let (tokens, _) = padded(&[text.get_ids()], &self.device);
        let output = self.bert.forward_with_weights(BertInput::new(tokens));
        let labels = text.get_tokens();
        Ok(maps(output.self_weights, labels, labels)?)
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
