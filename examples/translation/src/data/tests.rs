//! Reading pairs, and setting some aside.

use super::*;

fn pair(source: impl Into<String>, target: impl Into<String>) -> Pair {
    let (source, target) = (source.into(), target.into());
    Pair { source, target }
}

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
    assert_eq!(pairs, [pair("Go.", "Vete."), pair("Hi.", "Hola.")]);
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
    let pairs = (0..101).map(|i| pair(format!("s{}", i % 37), format!("t{i}")));
    let pairs: Vec<Pair> = pairs.collect();
    let split = split(pairs.clone(), 7, 3, "toy").unwrap();
    let held_out: HashSet<&str> = split.held_out.iter().map(|e| e.source.as_str()).collect();
    let validation: HashSet<&str> = split.validation.iter().map(|p| p.source.as_str()).collect();
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
    let refused = |count: usize, held_out: usize| {
        let pairs = (0..count).map(|i| pair(i.to_string(), "b")).collect();
        let error = split(pairs, held_out, 0, "pairs.tsv").unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused(1, 1),
        "pairs.tsv: it has 1 distinct sources, and at least 3 are needed"
    );
    assert_eq!(
        refused(10, 5),
        "pairs.tsv: --held-out must be between 1 and 4 (twice as many are set aside, of 10 distinct sources), got 5"
    );
}

#[test]
fn the_fingerprint_sees_where_a_word_ends() {
    let one = |source: &str, target: &str| Split {
        train: vec![pair(source, target)],
        ..Split::default()
    };
    assert_ne!(fingerprint(&one("ab", "c")), fingerprint(&one("a", "bc")));
}
