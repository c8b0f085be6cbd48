//! The files of sentence encoders, which lie in several folders.

use std::{fs, path::Path};

use super::{
    COMMIT, SENTENCES, fill, load, offline,
    server::{Server, Serves},
    temporary,
};
use crate::models::sentences::assembled;

/// One that takes the first token's state and has a Dense layer, one whose pooling lies in an odd folder, and one without modules.
#[test]
fn sentence_encoders_are_downloaded_whole() {
    for name in ["labse", "odd_folder", "plain"] {
        let (folder, mut files) = assembled(name);
        fs::create_dir_all(folder.path().join("onnx")).expect("made");
        fs::write(folder.path().join("onnx/model.onnx"), "large").expect("written");
        files.push("onnx/model.onnx".into());
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let server = Server::start(COMMIT, folder.path(), &files, Serves::Files);
        let endpoint = server.url();
        let endpoint = ("HF_ENDPOINT", Path::new(&endpoint));
        let of_sentences = (SENTENCES, Path::new(name));
        // An empty cache; one that has configuration and weights, as any program may leave it.
        let [empty, filled] = [temporary(), temporary()];
        fill(filled.path(), "main");
        for cache in [&empty, &filled] {
            let cache = ("HF_HUB_CACHE", cache.path());
            let load = |variables: &[_]| load("organisation/tiny", variables);
            assert_eq!(load(&[cache, of_sentences, endpoint]), Ok(()), "{name}");
            assert_eq!(load(&[cache, of_sentences, offline()]), Ok(()), "{name}");
        }
        // With the weights they come by themselves.
        let other = temporary();
        let cache = ("HF_HUB_CACHE", other.path());
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
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let server = Server::start(COMMIT, folder.path(), &files, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    let cache = ("HF_HUB_CACHE", cache.path());
    let of_sentences = (SENTENCES, Path::new("labse"));
    let online = [cache, of_sentences, ("HF_ENDPOINT", Path::new(&endpoint))];
    assert_eq!(load("organisation/tiny", &online), Ok(()));
    let offline = [cache, of_sentences, offline()];
    assert_eq!(load("organisation/tiny", &offline), Ok(()));
}

/// How such a model pools is not known.
#[test]
fn modules_that_are_not_in_the_cache_are_not_taken_for_none() {
    let cache = temporary();
    fill(cache.path(), "main");
    let of_sentences = (SENTENCES, Path::new("plain"));
    let variables = [("HF_HUB_CACHE", cache.path()), of_sentences, offline()];
    assert_eq!(
        load("organisation/tiny", &variables),
        Err(format!(
            "organisation/tiny is not a folder, and the Hub's cache {} has no modules.json of organisation/tiny at main, and HF_HUB_OFFLINE \
             forbids downloading it",
            cache.path().display()
        ))
    );
}

/// A module that is not known is refused before weights are downloaded.
#[test]
fn other_modules_are_refused_first() {
    let (folder, files) = assembled("mean");
    let modules = folder.path().join("modules.json");
    let text = fs::read_to_string(&modules).expect("read");
    fs::write(&modules, text.replace("Normalize", "LSTM")).expect("written");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let server = Server::start(COMMIT, folder.path(), &files, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    let variables = [
        ("HF_HUB_CACHE", cache.path()),
        ("HF_ENDPOINT", Path::new(&endpoint)),
        (SENTENCES, Path::new("mean")),
    ];
    let error = load("organisation/tiny", &variables).expect_err("refused");
    assert!(
        error.contains("sentence_transformers.models.LSTM"),
        "{error}"
    );
    let mut requests = server.requests().into_iter();
    assert!(!requests.any(|request| request.path.ends_with("model.safetensors")));
}

/// Nor are weights downloaded for a model whose texts cannot be read.
#[test]
fn a_missing_tokenizer_is_found_first() {
    let (folder, files) = assembled("mean");
    let files = files.iter().map(String::as_str);
    let files: Vec<&str> = files.filter(|file| *file != "tokenizer.json").collect();
    let server = Server::start(COMMIT, folder.path(), &files, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    let variables = [
        ("HF_HUB_CACHE", cache.path()),
        ("HF_ENDPOINT", Path::new(&endpoint)),
        (SENTENCES, Path::new("mean")),
    ];
    let error = load("organisation/tiny", &variables).expect_err("refused");
    assert!(error.contains("tokenizer.json"), "{error}");
    let mut requests = server.requests().into_iter();
    assert!(!requests.any(|request| request.path.ends_with("model.safetensors")));
}
