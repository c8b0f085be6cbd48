//! Names on the Hub: its cache as the Python library keeps it, and downloads from a server on the loopback interface.

mod cache;
mod chat;
mod downloads;
mod letters;
mod sentences;
mod server;

use std::{env, error::Error, fs, path::Path, process::Command};

use burn::tensor::{Int, Tensor};
use burn_attn_models::{
    bert::{Bert, BertInput},
    chat::ChatModel,
    pretrained::{self, Download},
    sentences::SentenceEncoder,
    speech::CtcVocabulary,
    vision::ImageProcessor,
};
use burn_attn_tests::devices;
use tempfile::TempDir;

use super::{assert_states, folder, sentences::assert_vectors, values};

/// What is the name, in the process that looks it up.
const NAME: &str = "BURN_ATTN_TEST_NAME";
/// Set where the tokenizer alone is looked up.
const TOKENIZER: &str = "BURN_ATTN_TEST_TOKENIZER";
/// Set where a tokenizer and end tokens are looked up, to these tokens.
const ENDS: &str = "BURN_ATTN_TEST_ENDS";
/// Set where the processor of images is looked up, to the size that it has to give them.
const IMAGES: &str = "BURN_ATTN_TEST_IMAGES";
/// Set to the golden model that a sentence encoder has to be.
const SENTENCES: &str = "BURN_ATTN_TEST_SENTENCES";
/// Set where a chat is looked up, to whether the model has a template.
const CHAT: &str = "BURN_ATTN_TEST_CHAT";
/// Set where letters are looked up, to what those of three tokens have to be.
const LETTERS: &str = "BURN_ATTN_TEST_LETTERS";
/// Set where downloads are shown.
const PROGRESS: &str = "BURN_ATTN_TEST_PROGRESS";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const LOADED: &str = "the model is loaded";

/// Loads a model in a process with these variables, and no others that concern it: the variables of this one are those of all tests.
fn load(name: &str, variables: &[(&str, &Path)]) -> Result<(), String> {
    let text = printed(name, variables);
    match text.contains(LOADED) {
        true => Ok(()),
        false => {
            let refused = text.lines().find_map(|line| line.strip_prefix("refused: "));
            Err(refused.expect("what happened").to_owned())
        }
    }
}

/// What the process prints.
fn printed(name: &str, variables: &[(&str, &Path)]) -> String {
    // Not `current_exe`, which is the loader where cargo's runner is one.
    let program = env::args_os().next().expect("a program");
    let mut process = Command::new(program);
    process.args(["--exact", "models::hub::another_process", "--nocapture"]);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy().to_uppercase();
        if text.starts_with("HF_") || text.starts_with("XDG_") || text.ends_with("_PROXY") {
            process.env_remove(name);
        }
    }
    process.env(NAME, name).envs(variables.iter().copied());
    let output = process.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{output:?}");
    text
}

/// What [`load`] runs.
#[test]
fn another_process() {
    let Ok(name) = env::var(NAME) else {
        return;
    };
    if env::var_os(PROGRESS).is_some() {
        pretrained::on_download(
            |Download {
                 file,
                 received,
                 size,
                 ..
             }| {
                println!("\ndownload {file} {received} {size}");
            },
        );
    }
    match looked_up(&name) {
        Ok(()) => println!("\n{LOADED}"),
        Err(error) => println!("\nrefused: {error}"),
    }
}

/// Loads what the variables ask for, and checks it.
fn looked_up(name: &str) -> Result<(), Box<dyn Error>> {
    let device = devices::any();
    if env::var_os(TOKENIZER).is_some() {
        pretrained::tokenizer(name)?;
    } else if let Ok(ends) = env::var(ENDS) {
        let tokenizer = pretrained::tokenizer(name)?;
        let found = pretrained::end_tokens(name, &tokenizer)?;
        assert_eq!(format!("{found:?}"), ends);
    } else if let Ok(size) = env::var(IMAGES) {
        let processor = ImageProcessor::from_pretrained(name)?;
        assert_eq!(format!("{:?}", processor.size), size);
    } else if let Ok(model) = env::var(SENTENCES) {
        let encoder = SentenceEncoder::from_pretrained(name, &device)?;
        assert_vectors(&encoder, &model);
    } else if let Ok(has_template) = env::var(CHAT) {
        let model = ChatModel::from_pretrained(name, &device)?;
        assert_eq!(model.template.is_some().to_string(), has_template);
    } else if let Ok(text) = env::var(LETTERS) {
        let letters = CtcVocabulary::from_pretrained(name)?;
        assert_eq!(letters.text(&[1, 2, 3]), text);
    } else {
        let bert = Bert::from_pretrained(name, &device)?;
        let values = values();
        let ints = |name: &str| Tensor::<2, Int>::from_data(values.data(name), &device);
        let input = BertInput::new(ints("bert.tokens"));
        let input = input.segments(ints("bert.segments")).lengths(&[7, 4]);
        let expected = values.tensor("bert.states.1", &device);
        assert_states(name, bert.forward(input), expected);
    }
    Ok(())
}

/// Puts a model into a cache as the Python library does: files are links to what is named by its content.
fn fill(cache: &Path, reference: &str) {
    let files = ["config.json", "model.safetensors"];
    fill_with(&folder("bert"), &files, cache, reference);
}

/// The same with these files of another folder.
fn fill_with(from: &Path, files: &[&str], cache: &Path, reference: &str) {
    let repository = cache.join("models--organisation--tiny");
    let snapshot = repository.join("snapshots").join(COMMIT);
    for folder in ["blobs", "refs"] {
        fs::create_dir_all(repository.join(folder)).expect("a folder");
    }
    fs::create_dir_all(&snapshot).expect("a folder");
    fs::write(repository.join("refs").join(reference), COMMIT).expect("written");
    for (number, file) in files.iter().enumerate() {
        let blob = format!("blob{number}");
        fs::copy(from.join(file), repository.join("blobs").join(&blob)).expect("copied");
        let blob = Path::new("../../blobs").join(blob);
        #[cfg(unix)]
        std::os::unix::fs::symlink(blob, snapshot.join(file)).expect("a link");
        #[cfg(not(unix))]
        fs::copy(snapshot.join(blob), snapshot.join(file)).expect("copied");
    }
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn offline() -> (&'static str, &'static Path) {
    ("HF_HUB_OFFLINE", Path::new("1"))
}

/// A cache, and a server to fill it from.
fn online<'a>(cache: &'a TempDir, endpoint: &'a str) -> [(&'static str, &'a Path); 2] {
    [
        ("HF_HUB_CACHE", cache.path()),
        ("HF_ENDPOINT", Path::new(endpoint)),
    ]
}

/// What is wanted comes from a server, and is in the cache from then on.
#[track_caller]
fn assert_downloaded(cache: &TempDir, wanted: (&str, &Path), endpoint: &str) {
    for network in [("HF_ENDPOINT", Path::new(endpoint)), offline()] {
        let variables = [("HF_HUB_CACHE", cache.path()), wanted, network];
        assert_eq!(load("organisation/tiny", &variables), Ok(()), "{wanted:?}");
    }
}

/// The error where a cache has no such file of the model and nothing may be downloaded.
fn lacks(cache: &TempDir, file: &str) -> Result<(), String> {
    Err(format!(
        "organisation/tiny is not a folder, and the Hub's cache {} has no {file} of organisation/tiny at main, and HF_HUB_OFFLINE \
         forbids downloading it",
        cache.path().display()
    ))
}
