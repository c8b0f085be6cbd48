//! The sub-word vocabulary that both languages share: byte-level BPE, so that any text can be written with it.

use burn_attn_models::text::labels;
use example_common::error::{Error, tokenizer_failed};
use example_common::vocabulary::{BYTES, byte_level_bpe};
use tokenizers::Tokenizer;

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
    let special = SPECIAL.len();
    format!("--vocabulary must be at least {SMALLEST} ({special} special tokens and {BYTES} bytes), got {size}").into()
}

/// Turns text into token ids and back.
pub struct Vocabulary(Tokenizer);

impl Vocabulary {
    /// Learns a vocabulary of at most `size` tokens, which is [`SMALLEST`] or more, from sentences of both languages.
    ///
    /// # Errors
    /// If the tokenizer refuses the sentences.
    pub fn train(sentences: &[&str], size: usize) -> Result<Self, Error> {
        let tokenizer = byte_level_bpe(sentences.iter().copied(), size, &SPECIAL, true);
        Self::checked(tokenizer.map_err(tokenizer_failed)?)
    }

    /// Reads a vocabulary back.
    ///
    /// # Errors
    /// If the bytes are not a tokenizer, or one with other special tokens.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        Self::checked(Tokenizer::from_bytes(json).map_err(tokenizer_failed)?)
    }

    /// The vocabulary as the JSON of the crate `tokenizers`.
    pub fn to_json(&self) -> Result<String, Error> {
        self.0.to_string(false).map_err(tokenizer_failed)
    }

    /// Fixes what the tokenizer must guarantee: the ids of the special tokens, and that no text is mistaken for one.
    fn checked(mut tokenizer: Tokenizer) -> Result<Self, Error> {
        for (id, token) in (0..).zip(SPECIAL) {
            if tokenizer.token_to_id(token) != Some(id) {
                let found = tokenizer.token_to_id(token);
                return Err(format!("{token} must have the id {id}, but has {found:?}").into());
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
        Ok(self.encode_all(vec![text])?.remove(0))
    }

    /// The ids of many texts, on all cores.
    pub fn encode_all(&self, texts: Vec<&str>) -> Result<Vec<Vec<u32>>, Error> {
        let encodings = self.0.encode_batch(texts, false);
        let encodings = encodings.map_err(tokenizer_failed)?.into_iter();
        Ok(encodings.map(|tokens| tokens.get_ids().to_vec()).collect())
    }

    /// The text of ids; special tokens are left out.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        let text = self.0.decode(tokens, true).map_err(tokenizer_failed)?;
        Ok(text.trim().to_string())
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

#[cfg(test)]
mod tests;
