//! Untrusted texts in a terminal, and answers that cannot be written.

use std::fs;

use serde_json::{Value, json};

use super::{printed, small};

#[test]
fn no_passage_reaches_the_terminal_as_a_command() {
    let folder = tempfile::tempdir().unwrap();
    small::bert(folder.path());
    fs::create_dir(folder.path().join("texts")).unwrap();
    let text = "\u{feff}The cat\r\n\u{1b}[31msleeps.\u{7}";
    fs::write(folder.path().join("texts/one.txt"), text).unwrap();
    let search = |args: &[&str]| {
        let args = [args, &["--model", "."]].concat();
        printed(env!("CARGO_BIN_EXE_search"), folder.path(), &args, "")
    };
    let text = search(&["find", "texts", "the cat"]);
    let passage = "\tone.txt:1\tThe cat \u{fffd}[31msleeps.\u{fffd}\n";
    assert!(text.ends_with(passage), "{text:?}");
    let text = search(&["compare", "the \u{1b}[31mcat", "a dog"]);
    assert!(text.ends_with("\tthe \u{fffd}[31mcat\ta dog\n"), "{text:?}");
}

#[test]
fn no_answer_reaches_the_terminal_as_a_command() {
    let folder = tempfile::tempdir().unwrap();
    small::gpt(folder.path());
    let path = folder.path().join("tokenizer.json");
    let mut fields: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    fields["decoder"] =
        json!({"type": "Replace", "pattern": {"Regex": ".+"}, "content": "\u{1b}[2Jcat\n\t"});
    fs::write(path, fields.to_string()).unwrap();
    let args = ["--model", ".", "--tokens", "2", "the cat"];
    let text = printed(env!("CARGO_BIN_EXE_chat"), folder.path(), &args, "");
    assert!(
        text.starts_with("> the cat\n\u{fffd}[2Jcat\n\t"),
        "{text:?}"
    );
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_nobody_reads_is_no_failure_unlike_one_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    small::gpt(folder.path());
    let chat = env!("CARGO_BIN_EXE_chat");
    let args = ["--model", ".", "--tokens", "2", "--html", "page.html"];
    for is_full in [true, false] {
        for args in [&args[..4], &args[..]] {
            let code = super::code_without_lines(chat, folder.path(), args, "the cat\n", is_full);
            assert_eq!(code, Some(i32::from(is_full)));
        }
        // Pictures are drawn without a reader of the lines.
        assert_eq!(folder.path().join("page.html").exists(), !is_full);
    }
}
