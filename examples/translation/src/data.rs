//! Sentence pairs: reading them, and setting aside some that training never sees.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::error::Error;
use crate::sentence::{LONGEST, composed, key};
use example_common::files::FileError;
use example_common::fnv::Fnv;
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
    let refused = |problem: &str| Error::Corpus {
        corpus: path.display().to_string(),
        problem: problem.into(),
    };
    if bytes.contains(&b'\r') && !bytes.contains(&b'\n') {
        return Err(refused(
            "its lines end in a carriage return alone, and must end in a line feed",
        ));
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Err(refused("the file is empty"));
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
    Err(Error::Lines {
        path: path.to_path_buf(),
        bad,
        lines: pairs.len() + bad,
        listed: listed.join("; "),
    })
}

/// One line of the file, or what is wrong with it.
fn parse_line(line: &[u8]) -> Result<Pair, String> {
    let line = std::str::from_utf8(line)
        .map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to() + 1))?;
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
        return Err(Error::Corpus {
            corpus: corpus.into(),
            problem: match most {
                0 => format!("it has {distinct} distinct sources, and at least 3 are needed"),
                _ => format!(
                    "--held-out must be between 1 and {most} (twice as many are set aside, of {distinct} distinct \
                     sources), got {held_out}"
                ),
            },
        });
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
        return Err(Error::Option(format!(
            "--held-out must be between 1 and {most} for the built-in corpus, got {validation}"
        )));
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
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Pair>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("corpus.tsv");
        std::fs::write(&path, bytes).unwrap();
        read_tsv(&path).map_err(|error| {
            error
                .to_string()
                .replace(&folder.path().display().to_string(), "")
        })
    }

    #[test]
    fn columns_after_the_second_are_ignored() {
        let pairs = read("\u{feff}Go.\tVete.\tCC-BY\r\nHi.\tHola.\n".as_bytes()).unwrap();
        assert_eq!(pairs.len(), 2);
        assert_eq!(
            pairs[0],
            Pair {
                source: "Go.".into(),
                target: "Vete.".into()
            }
        );
        assert_eq!(pairs[1].target, "Hola.");
    }

    #[test]
    fn all_bad_lines_are_counted_and_named_together() {
        assert_eq!(read(b"").unwrap_err(), "/corpus.tsv: the file is empty");
        assert_eq!(
            read("a\tb\n\nlonely\n\u{200b}\tb\n".as_bytes()).unwrap_err(),
            "/corpus.tsv: 3 of 4 lines are not sentence pairs: line 2: the line is empty; line 3: expected source and target \
             separated by a tab, got one column \"lonely\"; line 4: the source, column 1, is empty"
        );
        assert_eq!(
            read(b"a\x1b\t \nc\t\xff\n").unwrap_err(),
            "/corpus.tsv: 2 of 2 lines are not sentence pairs: line 1: the target, column 2, of \"a\u{fffd}\" is empty; line 2: \
             byte 3 is not UTF-8"
        );
        assert_eq!(
            read(b"a\tb\nc").unwrap_err(),
            "/corpus.tsv: 1 of 2 lines is not a sentence pair: line 2: expected source and target separated by a tab, got one \
             column \"c\""
        );
        let many = read("x".repeat(999).as_bytes().repeat(2).as_slice()).unwrap_err();
        assert!(
            many.chars().count() < 400 && many.ends_with("x…\""),
            "{many}"
        );
        assert_eq!(
            read(&b"\n".repeat(1000)).unwrap_err(),
            "/corpus.tsv: 1000 of 1000 lines are not sentence pairs: line 1: the line is empty; line 2: the line is empty; line 3: the \
             line is empty; and 997 more"
        );
    }

    #[test]
    fn carriage_returns_alone_end_no_lines() {
        assert_eq!(
            read(b"a\tb\rc\td\re\tf\r").unwrap_err(),
            "/corpus.tsv: its lines end in a carriage return alone, and must end in a line feed"
        );
        for bytes in [&b"a\tb\r\n"[..], b"a\rx\tb\n", b"a\tb"] {
            assert_eq!(read(bytes).unwrap().len(), 1, "{bytes:?}");
        }
    }

    #[test]
    fn sentences_that_look_the_same_are_in_one_part() {
        let looks = [
            "s\u{ed}, ya",
            "si\u{301}, ya",
            "\u{feff}s\u{ed}, ya",
            "s\u{ed},\u{a0}ya",
            "s\u{ad}\u{ed}, ya",
        ];
        let others: Vec<String> = (0..7).map(|i| i.to_string()).collect();
        let sources = looks.into_iter().chain(others.iter().map(String::as_str));
        let lines: String = sources.map(|source| format!("{source}\tyes\n")).collect();
        let pairs = read(lines.as_bytes()).unwrap();
        let examples = group_by_source(&pairs);
        assert_eq!(examples.len(), 8);
        assert_eq!(
            (examples[0].source.as_str(), examples[0].references.len()),
            (looks[0], 1)
        );
        for seed in 0..23 {
            let split = split(pairs.clone(), 2, seed, "toy").unwrap();
            let count = |pairs: &[Pair]| pairs.iter().filter(|pair| pair.source.len() > 1).count();
            let held_out = split
                .held_out
                .iter()
                .filter(|example| example.source.len() > 1);
            let parts = [
                count(&split.train),
                count(&split.validation),
                5 * held_out.count(),
            ];
            assert_eq!(
                (parts.iter().max(), parts.iter().sum()),
                (Some(&5), 5),
                "{parts:?}"
            );
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let missing = read_tsv(Path::new("/no/such.tsv")).unwrap_err().to_string();
        assert!(
            missing.starts_with("cannot read /no/such.tsv: "),
            "{missing}"
        );
    }

    #[test]
    fn no_source_is_in_two_parts_and_nothing_is_lost() {
        let pairs: Vec<Pair> = (0..101)
            .map(|i| Pair {
                source: format!("s{}", i % 37),
                target: format!("t{i}"),
            })
            .collect();
        let split = split(pairs.clone(), 7, 3, "toy").unwrap();
        let held_out: HashSet<&str> = split.held_out.iter().map(|e| e.source.as_str()).collect();
        let validation: HashSet<&str> =
            split.validation.iter().map(|p| p.source.as_str()).collect();
        let train: HashSet<&str> = split.train.iter().map(|p| p.source.as_str()).collect();
        assert_eq!((held_out.len(), validation.len(), train.len()), (7, 7, 23));
        assert!(
            held_out.is_disjoint(&validation)
                && held_out.is_disjoint(&train)
                && validation.is_disjoint(&train)
        );
        let references: usize = split.held_out.iter().map(|e| e.references.len()).sum();
        assert_eq!(
            references + split.validation.len() + split.train.len(),
            pairs.len()
        );
    }

    #[test]
    fn too_small_a_corpus_is_refused() {
        let pairs = vec![Pair {
            source: "a".into(),
            target: "b".into(),
        }];
        let error = split(pairs, 1, 0, "tiny.tsv").unwrap_err().to_string();
        assert_eq!(
            error,
            "tiny.tsv: it has 1 distinct sources, and at least 3 are needed"
        );
        let pairs = (0..10).map(|i| Pair {
            source: i.to_string(),
            target: "b".into(),
        });
        let error = split(pairs.collect(), 5, 0, "small.tsv")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "small.tsv: --held-out must be between 1 and 4 (twice as many are set aside, of 10 distinct sources), got 5"
        );
    }

    #[test]
    fn the_fingerprint_sees_where_a_word_ends() {
        let one = |source: &str, target: &str| Split {
            train: vec![Pair {
                source: source.into(),
                target: target.into(),
            }],
            ..Split::default()
        };
        assert_ne!(fingerprint(&one("ab", "c")), fingerprint(&one("a", "bc")));
    }
}
