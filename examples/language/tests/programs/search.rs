//! `search`.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{args, printed, program, refused, small};

pub const SEARCH: &str = env!("CARGO_BIN_EXE_search");

/// A folder with a model and a folder for texts.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("model")).unwrap();
    fs::create_dir(folder.path().join("texts")).unwrap();
    small::bert(&folder.path().join("model"));
    folder
}

fn cosines(text: &str) -> Vec<f64> {
    let lines = text.lines().map(|line| line.split('\t').next().unwrap());
    lines.map(|number| number.parse().unwrap()).collect()
}

#[test]
fn texts_are_compared_in_pairs() {
    let folder = folder();
    let texts = ["the cat sleeps", "the  Cat sleeps", "two fish"];
    let args = args("compare --model model", &texts);
    let text = printed(SEARCH, folder.path(), &args, "");
    assert!(
        text.starts_with("1.000000\tthe cat sleeps\tthe  Cat sleeps\n"),
        "{text}"
    );
    let found = cosines(&text);
    assert_eq!(found.len(), 3);
    assert!(
        (found[1] - found[2]).abs() < 1e-6 && found[1] < 0.999,
        "{text}"
    );
}

#[test]
fn the_attention_is_drawn() {
    let folder = folder();
    let words = "compare --model model --html page.html --text --draw 2:3";
    let args = args(words, &["a dog eats", "the sun"]);
    let text = printed(SEARCH, folder.path(), &args, "");
    assert!(
        text.contains("layer 2, head 3 of 3: rows are queries"),
        "{text}"
    );
    assert!(text.contains("[CLS]") && text.contains("dog"), "{text}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("a dog eats"));
}

/// Pictures show the text of tokens, not the names that the tokenizer has for bytes.
#[test]
fn the_attention_is_drawn_with_the_text_of_tokens() {
    let folder = folder();
    let path = folder.path().join("model/tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    tokenizer["pre_tokenizer"] =
        json!({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, bytes]});
    tokenizer["decoder"] = bytes;
    let text = tokenizer
        .to_string()
        .replace("\"dog\"", "\"d\u{c3}\u{b6}g\"");
    fs::write(&path, text).unwrap();
    let words = "compare --model model --text --draw 2:3";
    let args = args(words, &["a dög eats", "the sun"]);
    let text = printed(SEARCH, folder.path(), &args, "");
    assert!(text.contains("dög") && !text.contains('\u{b6}'), "{text}");
}

/// The passages that a query finds, without their cosines.
fn found(folder: &Path, args: &[&str]) -> Vec<String> {
    let args = super::args("find texts --model model", args);
    let text = printed(SEARCH, folder, &args, "");
    let lines = text
        .lines()
        .map(|line| line.split_once('\t').unwrap().1.to_string());
    lines.collect()
}

#[test]
fn a_folder_is_searched_and_only_what_changed_is_read_again() {
    let folder = folder();
    let texts = folder.path().join("texts");
    fs::create_dir_all(texts.join("more")).unwrap();
    fs::write(texts.join("one.txt"), "The cat sleeps.\n\nTwo\nfish.\n").unwrap();
    fs::write(texts.join("more/two.md"), "A bird goes home in the sun").unwrap();
    fs::write(texts.join("more/no.rs"), "the dog eats").unwrap();
    fs::write(texts.join("bad.txt"), b"\xff\xfe").unwrap();
    fs::write(texts.join(".hidden.txt"), "the dog eats").unwrap();

    let query = args("find texts --model model --top 2", &["Two fish."]);
    let first = program(SEARCH, folder.path(), &query, "");
    let error = String::from_utf8(first.stderr).unwrap();
    assert!(
        error.contains("texts read: 2, kept: 0, skipped because they or their names are not UTF-8: 1; 3 passages in texts/.search-index.safetensors"),
        "{error}"
    );
    let text = String::from_utf8(first.stdout).unwrap();
    assert!(text.starts_with("1.0000\tone.txt:3\tTwo fish.\n"), "{text}");
    assert_eq!(text.lines().count(), 2);

    // A longer text, in pieces; another one is gone.
    fs::write(texts.join("more/two.md"), "The dog eats. ".repeat(5)).unwrap();
    fs::remove_file(texts.join("bad.txt")).unwrap();
    fs::write(texts.join("three.txt"), "a cat").unwrap();
    let again = program(SEARCH, folder.path(), &query, "");
    let error = String::from_utf8(again.stderr).unwrap();
    assert!(error.contains("texts read: 2, kept: 1, skipped"), "{error}");
    assert_eq!(found(folder.path(), &["a cat"])[0], "three.txt:1\ta cat");
    fs::remove_file(texts.join("three.txt")).unwrap();
    assert!(
        !found(folder.path(), &["a cat", "--top", "50"])
            .iter()
            .any(|line| line.contains("three"))
    );

    // Lines of a pipe.
    let lines = args("find texts --model model --top 1", &[]);
    let text = printed(
        SEARCH,
        folder.path(),
        &lines,
        "two fish\n\nthe cat sleeps\n",
    );
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn another_model_makes_another_index() {
    let folder = folder();
    fs::write(folder.path().join("texts/one.txt"), "the cat\n\ntwo dog").unwrap();
    let expected = found(folder.path(), &["the cat"]);
    // The same sizes, other numbers.
    let weights = folder.path().join("model/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    for number in bytes[middle..].chunks_exact_mut(4) {
        let value = f32::from_le_bytes(number.try_into().unwrap());
        number.copy_from_slice(&(-value).to_le_bytes());
    }
    fs::write(&weights, bytes).unwrap();
    let args = args("find texts --model model", &["the cat"]);
    let output = program(SEARCH, folder.path(), &args, "");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("texts read: 1, kept: 0"), "{error}");
    assert_eq!(found(folder.path(), &["the cat"])[0], expected[0]);
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let folder = folder();
    let here = folder.path();
    let compare = ["compare", "--model", "model"];
    let error = |args: &[&str]| refused(SEARCH, here, &[&compare[..], args].concat(), "");
    assert_eq!(
        error(&["the cat", ""]),
        "error: \"\": this text has no tokens\n"
    );
    let long = "cat ".repeat(10);
    assert_eq!(
        error(&["the cat", &long]),
        format!("error: {long:?}: this text has 12 tokens, but this encoder reads at most 11\n")
    );
    assert_eq!(
        error(&["the cat", "a dog", "--text", "--draw", "3:1"])
            .lines()
            .last()
            .unwrap(),
        "error: --draw 3:1: Self-attention has 2 maps of 3 heads"
    );
    assert!(
        error(&["a", "b", "--html", "missing/page.html"])
            .starts_with("error: cannot write missing/page.html: ")
    );

    let error = |args: &[&str]| refused(SEARCH, here, args, "");
    let missing = error(&["compare", "the cat", "a dog"]);
    assert!(
        missing.contains("target/weights/minilm") && missing.contains("`cargo xtask fetch minilm`"),
        "{missing}"
    );
    fs::create_dir(here.join("empty")).unwrap();
    let nothing = error(&["find", "empty", "cat", "--model", "model"]);
    assert!(
        nothing.contains("there is no text in empty: no file with the extension txt or md has any"),
        "{nothing}"
    );
    fs::remove_file(here.join("empty/.search-index.safetensors")).unwrap();
    fs::write(here.join("empty/.search-index.safetensors"), "no").unwrap();
    let broken = error(&["find", "empty", "cat", "--model", "model"]);
    assert!(
        broken.contains("is not an index of this program") && broken.contains("remove it"),
        "{broken}"
    );
    let other = error(&["find", "missing", "cat", "--model", "model"]);
    assert_eq!(other, "error: missing is not a folder\n");

    small::gpt(&here.join("model"));
    let family = error(&["compare", "a", "b", "--model", "model"]);
    assert!(
        family.contains("model_type is \"gpt2\", but BERT supports bert, albert"),
        "{family}"
    );
}

#[test]
fn texts_of_other_extensions_are_kept() {
    let folder = folder();
    let texts = folder.path().join("texts");
    fs::write(texts.join("one.txt"), "the cat").unwrap();
    fs::write(texts.join("two.md"), "two dog").unwrap();
    let said = |extensions: &str| {
        let args = args("find texts cat --model model --extensions", &[extensions]);
        let output = program(SEARCH, folder.path(), &args, "");
        let text = String::from_utf8(output.stdout).unwrap();
        (
            text.lines().count(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert!(said("txt").1.contains("texts read: 1, kept: 0"));
    assert!(said(".md").1.contains("texts read: 1, kept: 0"));
    // No file is read, so that nothing is printed.
    assert_eq!(said("txt"), (1, String::new()));
    assert_eq!(said("txt,md"), (2, String::new()));
}

/// On a GPU the cosines are those of the CPU.
#[cfg(feature = "wgpu")]
mod on_wgpu {
    use super::*;
    use crate::devices;

    #[test]
    fn texts_are_compared_on_wgpu() {
        if devices::wgpu().is_none() {
            println!("skipped: no adapter");
            return;
        }
        let folder = folder();
        let texts = ["the cat sleeps", "a bird goes home", "two fish"];
        let on = |device: &str| {
            let words = format!("compare --model model --device {device}");
            let args = args(&words, &texts);
            cosines(&printed(SEARCH, folder.path(), &args, ""))
        };
        let (cpu, gpu) = (on("flex"), on("wgpu"));
        assert_eq!([cpu.len(), gpu.len()], [3, 3]);
        for (cpu, gpu) in cpu.iter().zip(gpu) {
            assert!((cpu - gpu).abs() < 1e-4, "{cpu} on the CPU, {gpu} on wgpu");
        }
    }
}
