//! Sentence pairs: reading them, and setting aside some that training never sees.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::sentence::{LONGEST, composed, key};
use example_common::error::Error;
use example_common::files::FileError;
use example_common::fnv::Fnv;
use example_common::input;
use example_common::text::printable;
use toy_corpus::ToyCorpus;

pub use toy_corpus::Pair;

/// A sentence, as it is first written, with every translation of it that the corpus has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The sentence to translate.
    pub source: String,
    /// Its translations, at least one.
    pub references: Vec<String>,
}

/// A corpus, divided so that no source sentence is in two parts.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// What the model learns from.
    pub train: Vec<Pair>,
    /// What chooses the best checkpoint.
    pub validation: Vec<Pair>,
    /// Sentences never seen: what is reported.
    pub held_out: Vec<Example>,
    /// Sentences with combinations of words never seen; only the built-in corpus has them.
    pub combinations: Vec<Example>,
}

/// Bad lines of a corpus that are described one by one.
const LISTED: usize = 3;

/// Reads tab-separated source and target sentences; columns after the second are ignored.
///
/// # Errors
/// If the file cannot be read, is empty, has carriage returns alone as line ends, or has lines that are not UTF-8 or lack two non-empty columns: all of them are counted.
pub fn read_tsv(path: &Path) -> Result<Vec<Pair>, Error> {
    let bytes = std::fs::read(path).map_err(FileError::of("read", path))?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let refused = |problem: &str| Err(format!("{}: {problem}", path.display()).into());
    if bytes.contains(&b'\r') && !bytes.contains(&b'\n') {
        return refused("its lines end in a carriage return alone, and must end in a line feed");
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return refused("the file is empty");
    }
    let (mut pairs, mut bad, mut listed) = (Vec::new(), 0, Vec::new());
    for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        match parse_line(text) {
            Ok(pair) => pairs.push(pair),
            Err(problem) => {
                bad += 1;
                if bad <= LISTED {
                    listed.push(format!("line {line}: {problem}"));
                }
            }
        }
    }
    if bad == 0 {
        return Ok(pairs);
    }
    if bad > LISTED {
        listed.push(format!("and {} more", bad - LISTED));
    }
    let are = match bad {
        1 => "is not a sentence pair",
        _ => "are not sentence pairs",
    };
    let (lines, listed) = (pairs.len() + bad, listed.join("; "));
    refused(&format!("{bad} of {lines} lines {are}: {listed}"))
}

/// One line of the file, or what is wrong with it.
fn parse_line(line: &[u8]) -> Result<Pair, String> {
    let line = input::utf8(line)?;
    if key(line).is_empty() {
        return Err("the line is empty".into());
    }
    let mut columns = line.split('\t').map(composed);
    let source = columns.next().unwrap_or_default();
    let shown = printable(&source, LONGEST);
    let target = columns.next().ok_or_else(|| {
        format!("expected source and target separated by a tab, got one column {shown:?}")
    })?;
    match (key(&source).is_empty(), key(&target).is_empty()) {
        (true, _) => Err("the source, column 1, is empty".into()),
        (_, true) => Err(format!("the target, column 2, of {shown:?} is empty")),
        _ => Ok(Pair { source, target }),
    }
}

/// Groups pairs by source sentence, in the order of their first appearance. Sentences with the same [`key`] are one.
pub fn group_by_source<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut seen: HashSet<(usize, String)> = HashSet::new();
    for pair in pairs {
        let place = *places.entry(key(&pair.source)).or_insert(examples.len());
        if place == examples.len() {
            examples.push(Example {
                source: pair.source.clone(),
                references: Vec::new(),
            });
        }
        if seen.insert((place, key(&pair.target))) {
            examples[place].references.push(pair.target.clone());
        }
    }
    examples
}

/// Sets aside `held_out` distinct source sentences for the report and as many for validation, chosen by `seed`.
///
/// # Errors
/// If less than a fifth of the distinct sources would be left for training, or none would be held out.
pub fn split(pairs: Vec<Pair>, held_out: usize, seed: u64, corpus: &str) -> Result<Split, Error> {
    let examples = group_by_source(&pairs);
    let distinct = examples.len();
    // Training keeps at least a fifth of the sources.
    let most = 2 * distinct / 5;
    if !(1..=most).contains(&held_out) {
        let problem = match most {
            0 => format!("it has {distinct} distinct sources, and at least 3 are needed"),
            _ => format!(
                "--held-out must be between 1 and {most} (twice as many are set aside, of {distinct} distinct sources), got {held_out}"
            ),
        };
        return Err(format!("{corpus}: {problem}").into());
    }
    let mut order: Vec<usize> = (0..distinct).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut chosen: Vec<usize> = order[..held_out].to_vec();
    chosen.sort_unstable();
    let keys = |indices: &[usize]| -> HashSet<String> {
        let sources = indices.iter().map(|&index| key(&examples[index].source));
        sources.collect()
    };
    let validation = keys(&order[held_out..2 * held_out]);
    let held_out = keys(&chosen);
    let mut split = Split {
        held_out: chosen
            .iter()
            .map(|&index| examples[index].clone())
            .collect(),
        ..Split::default()
    };
    for pair in pairs {
        let source = key(&pair.source);
        if validation.contains(&source) {
            split.validation.push(pair);
        } else if !held_out.contains(&source) {
            split.train.push(pair);
        }
    }
    Ok(split)
}

/// The built-in corpus of a seed, with the last `validation` sentences of its training part as validation.
///
/// # Errors
/// If there would be none, or less than half would be left for training.
pub fn toy(validation: usize, seed: u64) -> Result<Split, Error> {
    let corpus = ToyCorpus::generate(seed);
    let mut train = corpus.train;
    let most = train.len() / 2;
    if !(1..=most).contains(&validation) {
        return Err(format!(
            "--held-out must be between 1 and {most} for the built-in corpus, got {validation}"
        )
        .into());
    }
    let validation = train.split_off(train.len() - validation);
    Ok(Split {
        train,
        validation,
        held_out: group_by_source(&corpus.held_out),
        combinations: group_by_source(&corpus.combinations),
    })
}

/// A number that tells two corpora apart: FNV-1a over every part of the split, in order.
pub fn fingerprint(split: &Split) -> String {
    let mut hash = Fnv::default();
    for pair in split.train.iter().chain(&split.validation) {
        hash.write_text(&pair.source);
        hash.write_text(&pair.target);
    }
    for example in split.held_out.iter().chain(&split.combinations) {
        hash.write_text(&example.source);
        example
            .references
            .iter()
            .for_each(|text| hash.write_text(text));
    }
    hash.to_hex()
}

#[cfg(test)]
mod tests;
