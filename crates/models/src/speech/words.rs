//! Words, and when they were said.

use burn::tensor::Tensor;
use tokenizers::Tokenizer;

use crate::text::TextStream;

/// A word of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word, with punctuation up to the next space. In a language without spaces, the text of a token, or of several tokens of one character.
    pub text: String,
    /// When it begins (seconds from the beginning of the window).
    pub start: f64,
    /// The place of its first token among those of the text.
    pub first_token: usize,
}

/// Which part of a window each token was read from.
#[derive(Clone, Debug)]
pub struct Alignment {
    /// When each token begins (seconds from the beginning of the window).
    pub token_starts: Vec<f64>,
    /// The words of the text.
    pub words: Vec<Word>,
    /// Attention of each token to each frame of 20 ms in the heads that follow the speech, `[heads, tokens, frames]`.
    pub weights: Tensor<3>,
}

/// Languages whose words have no spaces between them.
const WITHOUT_SPACES: [&str; 6] = ["zh", "ja", "th", "lo", "my", "yue"];

/// The words of tokens that begin at these times (seconds), of which some are `text`. A word begins with a space, or, in a language without
/// spaces, with each token that completes a character.
pub(super) fn words(
    tokenizer: &Tokenizer,
    (tokens, starts): (&[u32], &[f64]),
    is_text: impl Fn(&u32) -> bool,
    language: Option<&str>,
) -> tokenizers::Result<Vec<Word>> {
    let has_spaces = language.is_none_or(|language| !WITHOUT_SPACES.contains(&language));
    let mut words: Vec<Word> = Vec::new();
    let mut stream = TextStream::new(tokenizer, true);
    // The first token of a character that is not complete.
    let mut first = None;
    let texts = tokens.iter().zip(starts).enumerate();
    for (token, (&id, &start)) in texts.filter(|(_, (id, _))| is_text(id)) {
        let (first_token, start) = *first.get_or_insert((token, start));
        let text = stream.push(id)?;
        if text.is_empty() {
            continue;
        }
        first = None;
        match words.last_mut() {
            Some(word) if has_spaces && !text.starts_with(' ') => word.text.push_str(&text),
            _ => words.push(Word {
                text: text.trim_start().to_owned(),
                start,
                first_token,
            }),
        }
    }
    let rest = stream.finish()?;
    if let Some(word) = words.last_mut() {
        word.text.push_str(&rest);
    }
    words.retain(|word| !word.text.is_empty());
    Ok(words)
}
