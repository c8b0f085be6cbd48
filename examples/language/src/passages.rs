//! The passages of a text: pieces that a sentence encoder can read.

use burn_attn_models::sentences::{Prompt, SentenceEncoder};
use serde::{Deserialize, Serialize};

use crate::{Error, error::tokenizer_failed};

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The line that it begins in, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
}

/// The paragraphs of a text, those that are too long for the encoder in several pieces, and the tokens of each. What has no tokens is left out.
///
/// # Errors
/// If the tokenizer fails.
pub fn passages(text: &str, encoder: &SentenceEncoder) -> Result<Vec<(Passage, Vec<u32>)>, Error> {
    let mut found = Vec::new();
    // The prompt, and what stands at the ends.
    let around = encoder.tokens("", Prompt::Document)?.len();
    let most = encoder.max_len().saturating_sub(around).max(1);
    for (mut line, paragraph) in paragraphs(text) {
        // Where lines have been counted to.
        let mut counted = 0;
        let words = encoder.tokenizer().encode(paragraph, false);
        let words = words.map_err(tokenizer_failed)?;
        let beginnings = beginnings(words.get_word_ids(), most);
        let ends = beginnings.iter().copied().skip(1).chain([words.len()]);
        for (first, end) in beginnings.iter().copied().zip(ends) {
            let offsets = &words.get_offsets()[first..end];
            let (Some((start, _)), Some((_, stop))) = (offsets.first(), offsets.last()) else {
                continue;
            };
            let piece = &paragraph[*start..*stop];
            // A piece by itself may be divided in another way; then its last tokens are cut off.
            let tokens = encoder.tokens(piece, Prompt::Document)?.get_ids().to_vec();
            line += paragraph[counted..*start].matches('\n').count();
            counted = *start;
            let text = piece.to_string();
            found.push((Passage { line, text }, tokens));
        }
    }
    Ok(found)
}

/// What blank lines divide, with the line that each begins in, from 1.
fn paragraphs(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut begun: Option<(usize, usize)> = None;
    let mut at = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        match (line.trim().is_empty(), begun) {
            (true, Some((first, start))) => {
                found.push((first, text[start..at].trim_end()));
                begun = None;
            }
            (false, None) => begun = Some((number, at)),
            _ => {}
        }
        at += line.len();
    }
    if let Some((first, start)) = begun {
        found.push((first, text[start..].trim_end()));
    }
    found
}

/// Where pieces of at most `most` tokens begin, so that few words are divided.
fn beginnings(words: &[Option<u32>], most: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < words.len() {
        found.push(first);
        let end = (first + most).min(words.len());
        // Back to the beginning of a word, unless it began before the piece.
        let is_inside =
            |at: usize| at < words.len() && words[at].is_some() && words[at] == words[at - 1];
        let word = (first + 1..=end).rev().find(|&at| !is_inside(at));
        first = word.unwrap_or(end);
    }
    found
}

#[cfg(test)]
mod tests;
