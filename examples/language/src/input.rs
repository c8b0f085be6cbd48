//! What a user gives: lines of standard input, and numbers.

use std::io::{self, BufRead, IsTerminal, Write};

use example_common::exit;

use crate::Error;

/// Calls `each` with the number of each line that is not blank, and the line, until the end (Ctrl-D); returns the exit code. An error is printed and
/// does not keep the other lines waiting; of a pipe, it makes the exit code 1.
///
/// # Errors
/// If standard input cannot be read.
pub fn each_line(mut each: impl FnMut(&str) -> Result<(), Error>) -> Result<u8, Error> {
    let is_typed = io::stdin().is_terminal();
    let mut code = 0;
    for number in 1.. {
        if is_typed {
            let mut prompt = io::stderr();
            let _ = write!(prompt, "> ").and_then(|()| prompt.flush());
        }
        let mut line = Vec::new();
        let read = io::stdin().lock().read_until(b'\n', &mut line);
        if read.map_err(Error::file("read", "standard input"))? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            continue;
        }
        match each(line.trim()) {
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

/// Parses a number of the command line that cannot be 0.
///
/// # Errors
/// If it is, or is no number.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    at_least(1, text)
}

/// Parses a number of the command line that cannot be 0 or 1.
///
/// # Errors
/// If it is, or is no number.
pub fn at_least_two(text: &str) -> Result<usize, String> {
    at_least(2, text)
}

fn at_least(least: usize, text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(number) if number >= least => Ok(number),
        Ok(_) => Err(format!("it must be at least {least}")),
        Err(error) => Err(format!("{error}")),
    }
}
