//! `summarize`.

use std::fs;

use super::{args, printed, program, refused, small};

const SUMMARIZE: &str = env!("CARGO_BIN_EXE_summarize");

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    small::t5(folder.path());
    fs::write(
        folder.path().join("text.txt"),
        "The cat eats two fish.\nA bird sleeps.",
    )
    .unwrap();
    folder
}

#[test]
fn a_file_and_a_pipe_give_the_same() {
    let folder = folder();
    let text = fs::read_to_string(folder.path().join("text.txt")).unwrap();
    let said = |words: &str, input: &str| {
        let words = format!("--model . --tokens 7{words}");
        printed(SUMMARIZE, folder.path(), &args(&words, &[]), input)
    };
    let of_file = said(" text.txt", "");
    assert_eq!(said("", &text), of_file);
    assert_eq!(of_file.lines().count(), 1);
    let beams = said(" text.txt --beam 3 --best 2", "");
    assert_eq!(beams.lines().count(), 2);
}

#[test]
fn the_attention_is_drawn() {
    let folder = folder();
    let words = "text.txt --model . --tokens 5 --html page.html --text --draw 2:1";
    let text = printed(SUMMARIZE, folder.path(), &args(words, &[]), "");
    assert!(
        text.contains("layer 2, head 1 of 3") && text.contains("fish"),
        "{text}"
    );
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("Cross-attention") && page.contains("Encoder self-attention"));
}

#[test]
fn what_does_not_fit_is_left_out_and_said() {
    let folder = folder();
    let args = args("--model . --longest 7 --tokens 3", &[]);
    let text = format!("\u{feff}{}", "the cat sleeps ".repeat(9));
    let output = program(SUMMARIZE, folder.path(), &args, &text);
    let error = String::from_utf8(output.stderr).unwrap();
    // Two of the prefix: a word, and a colon.
    assert_eq!(
        error,
        "standard input has 29 tokens with its prefix: only the first 6 are read (--longest)\n"
    );
    assert!(output.status.success());
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let folder = folder();
    let error = |args: &[&str]| refused(SUMMARIZE, folder.path(), args, " \n");
    assert_eq!(
        error(&["--model", "."]),
        "error: there is no text in standard input\n"
    );
    assert!(
        error(&["missing.txt", "--model", "."]).starts_with("error: cannot read missing.txt: ")
    );
    assert_eq!(
        error(&["text.txt", "--model", ".", "--beam", "2", "--best", "3"]),
        "error: --best 3 must be at most --beam 2\n"
    );
    // Two tokens of the prefix, and the end token.
    let longest = |longest| ["text.txt", "--model", ".", "--longest", longest];
    assert_eq!(
        error(&longest("3")),
        "error: --longest 3 has no room for the text: the prefix and the end token fill it\n"
    );
    printed(SUMMARIZE, folder.path(), &longest("4"), "");
    assert!(error(&["text.txt"]).contains("`cargo xtask fetch t5`"));
    small::gpt(folder.path());
    let family = error(&["text.txt", "--model", "."]);
    assert!(
        family.contains("model_type is \"gpt2\", but T5 supports \"t5\""),
        "{family}"
    );
}
