//! The command `translate`: one sentence, the lines of a pipe, or a prompt.

use std::io::{self, BufRead, IsTerminal, Write};

use example_common::exit::warn;

use crate::error::Error;
use crate::sentence::key;
use crate::translator::{BATCH, Translator};

/// Translates a sentence, or standard input if there is none; returns the exit code.
///
/// # Errors
/// If the sentence cannot be translated, or standard input not be read, or standard output not be written.
pub fn translate(translator: &Translator, text: Option<&str>) -> Result<u8, Error> {
    let (input, mut output) = (io::stdin(), io::stdout().lock());
    let translated = match text {
        Some(text) => {
            let translation = translator.translate_text(text)?;
            writeln!(output, "{translation}").map(|()| 0)
        }
        None if input.is_terminal() => prompt(translator, input.lock(), output),
        None => lines(translator, input.lock(), output),
    };
    match translated {
        // A reader that closes the pipe has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        translated => {
            translated.map_err(|error| Error::Stream(format!("stopped translating: {error}")))
        }
    }
}

/// Translates what is typed, until its end (Ctrl-D).
fn prompt(
    translator: &Translator,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<u8> {
    loop {
        // Without the end of a line, which `warn` adds. Where there can be no prompt, one can type nevertheless.
        let _ = write!(io::stderr(), "> ");
        let mut typed = Vec::new();
        if input.read_until(b'\n', &mut typed)? == 0 {
            warn("");
            return Ok(0);
        }
        let sentence = String::from_utf8_lossy(&typed);
        if key(&sentence).is_empty() {
            continue;
        }
        match translator.translate_text(&sentence) {
            Ok(translation) => writeln!(output, "{translation}")?,
            Err(error) => warn(&format!("error: {error}")),
        }
    }
}

/// Translates line by line, many at a time. A line that cannot be translated is reported, and becomes an empty one.
fn lines(translator: &Translator, input: impl BufRead, mut output: impl Write) -> io::Result<u8> {
    let mut code = 0;
    let mut lines = (1..).zip(input.split(b'\n')).peekable();
    while lines.peek().is_some() {
        let mut sentences = Vec::new();
        let mut translations = Vec::new();
        for (number, line) in lines.by_ref().take(BATCH) {
            let line = String::from_utf8_lossy(&line?).into_owned();
            translations.push(String::new());
            if key(&line).is_empty() {
                continue;
            }
            match translator.encode(&line) {
                Ok(tokens) => sentences.push(((translations.len() - 1, number), tokens)),
                Err(error) => {
                    warn(&format!("error: line {number}: {error}"));
                    code = 1;
                }
            }
        }
        let (places, sentences): (Vec<_>, Vec<_>) = sentences.into_iter().unzip();
        let found = translator.translate(&sentences);
        let found = found.map_err(io::Error::other)?;
        for ((place, number), tokens) in places.into_iter().zip(found) {
            match translator.text(&tokens) {
                Ok(text) => translations[place] = text,
                Err(error) => {
                    warn(&format!("error: line {number}: {error}"));
                    code = 1;
                }
            }
        }
        for translation in translations {
            writeln!(output, "{translation}")?;
        }
        output.flush()?;
    }
    Ok(code)
}
