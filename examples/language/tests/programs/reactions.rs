//! `reactions`, with a small BERT in the place of rxnmapper's model.

use std::{fs, path::Path};

use super::{printed, program, refused, small};

const REACTIONS: &str = env!("CARGO_BIN_EXE_reactions");

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    small::bert(folder.path());
    let tokens = [
        "[UNK]", "[CLS]", "[SEP]", "C", "O", "N", "(", ")", "=", ".", ">>", "Cl",
    ];
    fs::write(folder.path().join("vocab.txt"), tokens.join("\n")).unwrap();
    folder
}

const ARGS: [&str; 4] = ["--model", ".", "--head", "2:3"];

#[test]
fn atoms_are_numbered() {
    let folder = folder();
    let args = [&ARGS[..], &["NC.Cl>>ClN", "--text", "--draw", "2:3"]].concat();
    let text = printed(REACTIONS, folder.path(), &args, "");
    let (mapped, rest) = text.split_once('\t').unwrap();
    // One atom of nitrogen and chlorine on each side.
    assert!(
        mapped.starts_with("[NH2:2]C.[ClH:1]>>[Cl:1][NH2:2]"),
        "{text}"
    );
    let (confidence, picture) = rest.split_once('\n').unwrap();
    assert!((0.0..=1.0).contains(&confidence.parse::<f64>().unwrap()));
    assert!(picture.contains("layer 2, head 3 of 3"), "{text}");

    // Only the first one is drawn, also where another is the same.
    let args = [&ARGS[..], &["C>>C", "C>>C", "--text", "--draw", "2:3"]].concat();
    let text = printed(REACTIONS, folder.path(), &args, "");
    assert_eq!(text.matches("rows are queries").count(), 1, "{text}");
}

#[test]
fn atoms_without_a_partner_are_counted() {
    let folder = folder();
    let of = |reaction: &'static str| {
        let args = [&ARGS[..], &[reaction]].concat();
        let output = program(REACTIONS, folder.path(), &args, "");
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [text, warning] = of("N>>O");
    assert!(text.ends_with("\t-\n"), "{text}");
    assert_eq!(
        warning,
        "\"N>>O\": 1 of 1 atoms of the products have no partner\n"
    );
    let [text, warning] = of("CN>>CO");
    let (_, confidence) = text.trim_end().split_once('\t').unwrap();
    assert!(confidence.parse::<f64>().is_ok(), "{text}");
    assert_eq!(
        warning,
        "\"CN>>CO\": 1 of 2 atoms of the products have no partner\n"
    );
    assert_eq!(of("C>>C")[1], "");
}

#[test]
fn a_head_is_two_numbers() {
    let output = program(REACTIONS, Path::new("."), &["--head", "6", "C>>C"], "");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("two numbers from 1 on, as in 6:12"),
        "{error}"
    );
}

#[test]
fn a_bad_line_does_not_keep_the_others_waiting() {
    let folder = folder();
    let output = program(REACTIONS, folder.path(), &ARGS, "CO>>OC\n\nCX>>C\nN>>N\n");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "error: line 3: the reaction \"CX>>C\" cannot be read: 'X' at character 2 is not part of SMILES\n"
    );
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let folder = folder();
    let error = |args: &[&str]| refused(REACTIONS, folder.path(), args, "");
    assert_eq!(
        error(&["--model", ".", "--head", "3:1", "C>>C"]),
        "error: --head 3:1: the model has 2 layers of 3 heads\n"
    );
    assert_eq!(
        error(&["--model", ".", "--head", "2:3", "CCCCCC>>CCCC"]),
        "error: \"CCCCCC>>CCCC\": this reaction has 13 tokens, but the model reads at most 11\n"
    );
    assert!(error(&["C>>C"]).contains("`cargo xtask fetch rxnmapper`"));
    assert_eq!(
        error(&["--model", ".", "--head", "1:1", "--html", "page.html"]),
        "error: --html: there is no reaction on the command line to draw\n"
    );
    fs::write(folder.path().join("vocab.txt"), "[UNK]\n[CLS]").unwrap();
    assert_eq!(
        error(&[&ARGS[..], &["C>>C"]].concat()),
        "error: ./vocab.txt has no token [SEP]\n"
    );
    fs::write(
        folder.path().join("vocab.txt"),
        (0..30).map(|i| format!("{i}\n")).collect::<String>() + "[UNK]\n[CLS]\n[SEP]",
    )
    .unwrap();
    assert_eq!(
        error(&[&ARGS[..], &["C>>C"]].concat()),
        "error: ./vocab.txt has 33 tokens, but the model knows 17\n"
    );
}
