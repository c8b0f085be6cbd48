//! One sentence about what went wrong.

use std::{error, fmt::Display};

/// What a program prints when it fails; no program tells errors apart. An error of the tokenizer has to pass [`tokenizer_failed`] first.
pub type Error = Box<dyn error::Error>;

/// An error about a text, which is quoted as far as its first 60 characters.
pub fn about(text: &str, problem: &str) -> Error {
    const MOST: usize = 60;
    let quoted = match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    };
    format!("{quoted}: {problem}").into()
}

/// Says that the tokenizer failed; for `map_err`.
pub fn tokenizer_failed(error: impl Display) -> Error {
    format!("the tokenizer failed: {error}").into()
}
