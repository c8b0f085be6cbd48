//! Questions about passages, and how good answers to them are.

use std::{collections::HashMap, ops::Range, path::Path};

use toy_corpus::Story;

use crate::{Error, input::lines};

/// A passage and a question that some of its words answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The passage.
    pub passage: String,
    /// The question.
    pub question: String,
    /// Which bytes of the passage answer it.
    pub answer: Range<usize>,
}

impl Example {
    /// The words that answer the question.
    pub fn answer(&self) -> &str {
        &self.passage[self.answer.clone()]
    }
}

/// The questions about stories that the toy corpus' grammar makes from a seed.
pub fn of_stories(seed: u64, stories: usize) -> Vec<Example> {
    let stories = Story::generate(seed, stories);
    let of_story = |Story { text, questions }: Story| -> Vec<Example> {
        let example = |question: toy_corpus::Question| Example {
            passage: text.clone(),
            question: question.text,
            answer: question.answer,
        };
        questions.into_iter().map(example).collect()
    };
    stories.into_iter().flat_map(of_story).collect()
}

/// Reads lines of a passage, a question and an answer, with tabs between them.
///
/// # Errors
/// If the file cannot be read, or a line is none of these, or its answer is not in its passage; names the first such lines, and says how
/// many there are.
pub fn read(path: &Path) -> Result<Vec<Example>, Error> {
    let what = "a passage, a question and an answer that is in the passage, with tabs between them";
    let examples = lines(path, example, what)?;
    match examples.is_empty() {
        true => Err(format!("there are no passages in {}", path.display()).into()),
        false => Ok(examples),
    }
}

fn example(line: &str) -> Option<Example> {
    let mut columns = line.split('\t').map(str::trim);
    let [passage, question, answer] = [columns.next()?, columns.next()?, columns.next()?];
    let start = passage.find(answer)?;
    let is_whole = columns.next().is_none() && !answer.is_empty() && !question.is_empty();
    is_whole.then(|| Example {
        passage: passage.into(),
        question: question.into(),
        answer: start..start + answer.len(),
    })
}

/// How good answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerScores {
    /// Number of questions.
    pub questions: usize,
    /// The fraction of answers that are right to the word.
    pub exact_match: f64,
    /// The mean F1 of the words of each answer.
    pub f1: f64,
}

impl AnswerScores {
    /// Compares answers with the right ones.
    ///
    /// The scores are those of SQuAD 1.1's script (Rajpurkar et al., arXiv:1606.05250), which compares lower-case words without punctuation and articles.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut scores = Self::default();
        for (found, right) in pairs {
            let (found, right) = (words(found), words(right));
            scores.questions += 1;
            scores.exact_match += f64::from(u8::from(found == right));
            scores.f1 += f1(&found, &right);
        }
        let questions = scores.questions.max(1) as f64;
        scores.exact_match /= questions;
        scores.f1 /= questions;
        scores
    }
}

fn f1(found: &[String], right: &[String]) -> f64 {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in right {
        *left.entry(word).or_default() += 1;
    }
    let is_common = |word: &&String| match left.get_mut(word.as_str()) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let common = found.iter().filter(is_common).count() as f64;
    match common {
        0.0 => 0.0,
        common => 2.0 * common / (found.len() + right.len()) as f64,
    }
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let letters: String = lower
        .chars()
        .filter(|c| !c.is_ascii_punctuation())
        .collect();
    letters
        .split_whitespace()
        .filter(|word| !["a", "an", "the"].contains(word))
        .map(String::from)
        .collect()
}

#[cfg(test)]
mod tests;
