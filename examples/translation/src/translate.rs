//! The command `translate`: a sentence, the lines of a pipe, or what is typed.

use std::io::{self, BufRead, IsTerminal};

use example_common::error::Error;
use example_common::exit::warn;
use example_common::files::FileError;
use example_common::input;

use crate::sentence::key;
use crate::translator::{BATCH, Translator};

/// Translates a sentence, or standard input if there is none; returns the exit code.
///
/// # Errors
/// If standard input cannot be read, or the model's logits are not numbers.
pub fn translate(translator: &Translator, sentence: Option<String>) -> Result<u8, Error> {
    if sentence.is_none() && !io::stdin().is_terminal() {
        return lines(translator);
    }
    input::each(sentence.as_slice(), |sentence| {
        println!("{}", translator.translate_text(sentence)?);
        Ok(())
    })
}

/// Translates line by line, many at a time. A line that cannot be translated is reported, and becomes an empty one.
fn lines(translator: &Translator) -> Result<u8, Error> {
    let mut code = 0;
    let mut lines = (1..).zip(io::stdin().lock().split(b'\n')).peekable();
    while lines.peek().is_some() {
        let (mut places, mut sentences) = (Vec::new(), Vec::new());
        let mut translations = Vec::new();
        for (number, line) in lines.by_ref().take(BATCH) {
            let line = line.map_err(FileError::of("read", "standard input"))?;
            translations.push(String::new());
            let tokens = match input::utf8(&line) {
                Ok(line) if key(line).is_empty() => continue,
                Ok(line) => translator.encode(line),
                Err(problem) => Err(problem.into()),
            };
            match tokens {
                Ok(tokens) => {
                    places.push(translations.len() - 1);
                    sentences.push(tokens);
                }
                Err(error) => {
                    warn(&format!("error: line {number}: {error}"));
                    code = 1;
                }
            }
        }
        for (place, tokens) in places.into_iter().zip(translator.translate(&sentences)?) {
            translations[place] = translator.text(&tokens)?;
        }
        for translation in translations {
            println!("{translation}");
        }
    }
    Ok(code)
}
