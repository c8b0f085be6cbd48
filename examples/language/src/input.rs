//! Texts, lines and numbers that a user gives, and progress bars.

use std::{
    fs,
    io::{self, BufRead, IsTerminal, Write},
    path::Path,
};

use example_common::{exit, files::FileError};
use indicatif::{ProgressBar, ProgressStyle};

use crate::Error;

/// Calls `each` with each of `texts` or, if there are none, with each line of standard input that is not blank, until its end (Ctrl-D); returns
/// the exit code. An error is printed and the next text is read all the same. For a pipe, the message names the line. The exit code is then 1,
/// except where lines are typed.
///
/// # Errors
/// If standard input cannot be read.
pub fn each(
    texts: &[String],
    mut each: impl FnMut(&str) -> Result<(), Error>,
) -> Result<u8, Error> {
    if texts.is_empty() {
        return each_line(each);
    }
    let mut code = 0;
    for text in texts {
        if let Err(error) = each(text) {
            exit::warn(&format!("error: {error}"));
            code = 1;
        }
    }
    Ok(code)
}

fn each_line(mut each: impl FnMut(&str) -> Result<(), Error>) -> Result<u8, Error> {
    let is_typed = io::stdin().is_terminal();
    let mut code = 0;
    for number in 1.. {
        if is_typed {
            let mut prompt = io::stderr();
            let _ = write!(prompt, "> ").and_then(|()| prompt.flush());
        }
        let mut line = Vec::new();
        let read = io::stdin().lock().read_until(b'\n', &mut line);
        if read.map_err(FileError::of("read", "standard input"))? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        let line = without_mark(&line).trim();
        if line.is_empty() {
            continue;
        }
        match each(line) {
            Ok(()) => {}
            Err(error) if is_typed => exit::warn(&format!("error: {error}")),
            Err(error) => {
                exit::warn(&format!("error: line {number}: {error}"));
                code = 1;
            }
        }
    }
    Ok(code)
}

/// The text of a file, without a byte order mark.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path) -> Result<String, Error> {
    let text = fs::read_to_string(path).map_err(FileError::of("read", path))?;
    Ok(without_mark(&text).to_string())
}

/// A text without a byte order mark in front of it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// What each line of a file says, which `parsed` knows.
///
/// # Errors
/// If the file cannot be read, or lines are not `what` they should be; names the first ones, and says how many there are.
pub fn lines<T>(
    path: &Path,
    parsed: impl Fn(&str) -> Option<T>,
    what: &str,
) -> Result<Vec<T>, Error> {
    const SHOWN: usize = 5;
    let text = read(path)?;
    let mut bad = Vec::new();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match parsed(line) {
            Some(line) => found.push(line),
            None => bad.push(number),
        }
    }
    let path = path.display();
    let numbers: Vec<String> = bad.iter().take(SHOWN).map(usize::to_string).collect();
    let numbers = numbers.join(", ");
    let problem = match bad.len() {
        0 => return Ok(found),
        1 => format!("{path}: line {numbers} is not {what}"),
        2..=SHOWN => format!("{path}: lines {numbers} are not {what}"),
        bad => format!("{path}: {bad} lines are not {what}: {numbers}, ..."),
    };
    Err(problem.into())
}

/// A progress bar for so many of something.
pub fn progress(len: usize, what: &str) -> ProgressBar {
    let style = format!("{{wide_bar}} {{pos}} of {{len}} {what}, {{eta}} left");
    ProgressBar::new(len as u64)
        .with_style(ProgressStyle::with_template(&style).unwrap_or(ProgressStyle::default_bar()))
}

/// Parses a number of the command line.
///
/// # Errors
/// If it is less than `LEAST`, or is no number.
pub fn at_least<const LEAST: usize>(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= LEAST => Ok(number),
        Ok(_) => Err(format!("it must be at least {LEAST}")),
        Err(error) => Err(format!("{error}")),
    }
}

/// Parses a learning rate of the command line.
///
/// # Errors
/// If it is not above 0 and at most 1.
pub fn learning_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1.0 => Ok(rate),
        Ok(_) => Err("it must be above 0 and at most 1".into()),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.tsv");
        fs::write(&path, "\u{feff}a\nb\u{feff}\n").unwrap();
        let lines = lines(&path, |line| Some(line.to_string()), "a line").unwrap();
        assert_eq!(lines, ["a", "b\u{feff}"]);
    }
}
