//! Texts, lines and numbers that a user gives, and progress bars.

use std::{
    fs,
    io::{self, BufRead, IsTerminal, Write},
    path::Path,
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{error::Error, exit, files::FileError};

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
            if is_typed {
                // The line after the last prompt.
                exit::warn("");
            }
            break;
        }
        let done = match utf8(&line).map(|line| without_mark(line).trim()) {
            Ok("") => continue,
            Ok(line) => each(line),
            Err(problem) => Err(problem.into()),
        };
        match done {
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

/// Bytes as a text.
///
/// # Errors
/// If they are not UTF-8; names the first byte that is not, counted from 1.
pub fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes)
        .map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to() + 1))
}

/// A text without a byte order mark in front of it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The lines of a file, each read by `parsed`.
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
    bar(len as u64, &style)
}

/// A progress bar of this style. It is hidden where standard error is no terminal.
pub fn bar(len: u64, style: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(len).with_style(style)
}

/// Refuses the first option whose value is not allowed. An option is its name, whether its value is allowed, what is allowed, and the value.
///
/// # Errors
/// If there is such an option.
pub fn check<'a>(
    options: impl IntoIterator<Item = (&'a str, bool, &'a str, f64)>,
) -> Result<(), String> {
    let mut options = options.into_iter();
    match options.find(|(_, is_allowed, ..)| !is_allowed) {
        Some((option, _, what, value)) => Err(format!("{option} must be {what}, got {value}")),
        None => Ok(()),
    }
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
mod tests;
