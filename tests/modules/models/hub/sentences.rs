//! The files of sentence encoders, which lie in several folders.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::{
    COMMIT, SENTENCES, assert_downloaded, fill, lacks, load, offline, online,
    server::{Server, Serves},
    temporary,
};
use crate::models::sentences::assembled;

fn server(folder: &TempDir, files: &[String]) -> Server {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    Server::start(COMMIT, folder.path(), &files, Serves::Files)
}

/// One that takes the first token's state and has a Dense layer, one whose pooling lies in an odd folder, and one without modules.
#[test]
fn sentence_encoders_are_downloaded_whole() {
    for name in ["labse", "odd_folder", "plain"] {
        let (folder, mut files) = assembled(name);
        fs::create_dir_all(folder.path().join("onnx")).expect("made");
        fs::write(folder.path().join("onnx/model.onnx"), "large").expect("written");
        files.push("onnx/model.onnx".into());
        let server = server(&folder, &files);
        let url = server.url();
        let of_sentences = (SENTENCES, Path::new(name));
        // An empty cache; one that has configuration and weights, as any program may leave it.
        let [empty, filled] = [temporary(), temporary()];
        fill(filled.path(), "main");
        for cache in [&empty, &filled] {
            assert_downloaded(cache, of_sentences, &url);
        }
        // With the weights they come by themselves.
        let other = temporary();
        let [cache, endpoint] = online(&other, &url);
        assert_eq!(load("organisation/tiny", &[cache, endpoint]), Ok(()));
        let variables = [cache, of_sentences, offline()];
        assert_eq!(load("organisation/tiny", &variables), Ok(()), "{name}");
        let mut requests = server.requests().into_iter();
        assert!(!requests.any(|request| request.path.ends_with("onnx")));
    }
}

/// The folder of a module may be written with a slash at its end.
#[test]
fn folders_that_end_in_a_slash() {
    let (folder, files) = assembled("labse");
    let modules = folder.path().join("modules.json");
    let text = fs::read_to_string(&modules).expect("read");
    let with_slash = text.replace("_Pooling\"", "_Pooling/\"");
    let with_slash = with_slash.replace("_Dense\"", "_Dense//\"");
    assert_eq!(with_slash.len(), text.len() + 3, "{text}");
    fs::write(&modules, with_slash).expect("written");
    let server = server(&folder, &files);
    let of_sentences = (SENTENCES, Path::new("labse"));
    assert_downloaded(&temporary(), of_sentences, &server.url());
}

/// How such a model pools is not known.
#[test]
fn modules_that_are_not_in_the_cache_are_not_taken_for_none() {
    let cache = temporary();
    fill(cache.path(), "main");
    let of_sentences = (SENTENCES, Path::new("plain"));
    let variables = [("HF_HUB_CACHE", cache.path()), of_sentences, offline()];
    let expected = lacks(&cache, "modules.json");
    assert_eq!(load("organisation/tiny", &variables), expected);
}

/// Weights are not downloaded for a module that is not known, nor for a model whose texts cannot be read.
#[test]
fn other_modules_and_a_missing_tokenizer_are_refused_first() {
    let refused = |folder: &TempDir, files: Vec<String>, reason: &str| {
        let server = server(folder, &files);
        let (cache, endpoint) = (temporary(), server.url());
        let [cache, endpoint] = online(&cache, &endpoint);
        let variables = [cache, endpoint, (SENTENCES, Path::new("mean"))];
        let error = load("organisation/tiny", &variables).expect_err("refused");
        assert!(error.contains(reason), "{error}");
        let mut requests = server.requests().into_iter();
        assert!(!requests.any(|request| request.path.ends_with("model.safetensors")));
    };
    let (folder, mut files) = assembled("mean");
    files.retain(|file| file != "tokenizer.json");
    refused(&folder, files, "tokenizer.json");
    let (folder, files) = assembled("mean");
    let modules = folder.path().join("modules.json");
    let text = fs::read_to_string(&modules).expect("read");
    fs::write(&modules, text.replace("Normalize", "LSTM")).expect("written");
    refused(&folder, files, "sentence_transformers.models.LSTM");
}
