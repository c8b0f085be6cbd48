//! The sub-word vocabulary that both languages share: byte-level BPE, so that any text can be written with it.

use burn_attn_models::text::labels;
use example_common::vocabulary::{BYTES, byte_level_bpe};
use tokenizers::Tokenizer;

use crate::error::Error;

/// Begins every translation.
pub const BOS: u32 = 1;
/// Ends every sentence.
pub const EOS: u32 = 2;

/// The special tokens, in the order of their ids.
const SPECIAL: [&str; 4] = ["<pad>", "<bos>", "<eos>", "<unk>"];

/// The smallest vocabulary: the special tokens and every byte.
pub const SMALLEST: usize = SPECIAL.len() + BYTES;

/// Why a vocabulary of this size cannot be.
pub fn too_small(size: usize) -> Error {
    Error::Option(format!(
        "--vocabulary must be at least {SMALLEST} ({} special tokens and 256 bytes), got {size}",
        SPECIAL.len()
    ))
}

/// Turns text into token ids and back.
pub struct Vocabulary(Tokenizer);

impl Vocabulary {
    /// Learns a vocabulary of at most `size` tokens from sentences of both languages.
    ///
    /// # Errors
    /// If `size` cannot hold the special tokens and every byte.
    pub fn train(sentences: &[&str], size: usize) -> Result<Self, Error> {
        if size < SMALLEST {
            return Err(too_small(size));
        }
        let tokenizer = byte_level_bpe(sentences.iter().copied(), size, &SPECIAL, true);
        Self::checked(tokenizer.map_err(failed)?)
    }

    /// Reads a vocabulary back.
    ///
    /// # Errors
    /// If the bytes are not a tokenizer, or one with other special tokens.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        Self::checked(Tokenizer::from_bytes(json).map_err(failed)?)
    }

    /// The vocabulary as the JSON of the crate `tokenizers`.
    pub fn to_json(&self) -> Result<String, Error> {
        self.0.to_string(false).map_err(failed)
    }

    /// Fixes what the tokenizer must guarantee: the ids of the special tokens, and that no text is mistaken for one.
    fn checked(mut tokenizer: Tokenizer) -> Result<Self, Error> {
        for (id, token) in (0..).zip(SPECIAL) {
            if tokenizer.token_to_id(token) != Some(id) {
                return Err(Error::Vocabulary(format!(
                    "{token} must have the id {id}, but has {:?}",
                    tokenizer.token_to_id(token)
                )));
            }
        }
        tokenizer.set_encode_special_tokens(true);
        Ok(Self(tokenizer))
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.0.get_vocab_size(true)
    }

    /// The ids of a text, without special tokens.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self
            .0
            .encode(text, false)
            .map_err(failed)?
            .get_ids()
            .to_vec())
    }

    /// The ids of many texts, on all cores.
    pub fn encode_all(&self, texts: Vec<&str>) -> Result<Vec<Vec<u32>>, Error> {
        let encodings = self.0.encode_batch(texts, false).map_err(failed)?;
        Ok(encodings
            .iter()
            .map(|encoding| encoding.get_ids().to_vec())
            .collect())
    }

    /// The text of ids; special tokens are left out.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        Ok(self
            .0
            .decode(tokens, true)
            .map_err(failed)?
            .trim()
            .to_string())
    }

    /// What to show for each token: its text, with `·` in front if it continues a word.
    pub fn labels(&self, tokens: &[u32]) -> Vec<String> {
        let texts = labels(&self.0, tokens).into_iter();
        let label = |(text, &token): (String, &u32)| match text.strip_prefix(' ') {
            _ if token < SPECIAL.len() as u32 => text,
            Some("") => "␠".into(),
            Some(word) => word.to_string(),
            None => format!("·{text}"),
        };
        texts.zip(tokens).map(label).collect()
    }
}

/// Wraps whatever the tokenizer reports.
fn failed(error: tokenizers::Error) -> Error {
    Error::Vocabulary(error.to_string())
}

#[cfg(test)]
mod tests;
