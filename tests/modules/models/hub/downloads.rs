//! What is not in the cache is downloaded.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use super::{
    COMMIT, TOKENIZER, fill, load, offline,
    server::{Request, Server},
    temporary,
};
use crate::models::{folder, tokenizer::WORDS};

#[test]
fn what_is_missing_is_downloaded() {
    let home = temporary();
    downloaded(home.path(), &[("HF_TOKEN", Path::new("secret"))]);
    // Where the Python library keeps it.
    let home = temporary();
    fs::write(home.path().join("token"), "secret\n").expect("written");
    downloaded(home.path(), &[]);
}

/// The token is for the server that was asked, not for those that it sends elsewhere.
fn downloaded(home: &Path, token: &[(&str, &Path)]) {
    let server = Server::start(
        COMMIT,
        &folder("bert"),
        &["config.json", "model.safetensors"],
    );
    let endpoint = server.url();
    let variables = [("HF_HOME", home), ("HF_ENDPOINT", Path::new(&endpoint))];
    let variables = [&variables[..], token].concat();
    assert_eq!(load("organisation/tiny@refs/pr/1", &variables), Ok(()));
    let requests = server.requests();
    let paths: Vec<&str> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    let resolved = format!("/organisation/tiny/resolve/{COMMIT}");
    assert_eq!(
        paths,
        [
            "/api/models/organisation/tiny/revision/refs%2Fpr%2F1",
            &format!("{resolved}/config.json"),
            "/elsewhere/config.json",
            &format!("{resolved}/model.safetensors"),
            "/elsewhere/model.safetensors",
        ]
    );
    for request in requests {
        let expected = (!request.path.starts_with("/elsewhere")).then_some("Bearer secret");
        assert_eq!(
            request.header("authorization"),
            expected,
            "{}",
            request.path
        );
    }
    // And is there from now on.
    let variables = [("HF_HOME", home), offline()];
    assert_eq!(load("organisation/tiny@refs/pr/1", &variables), Ok(()));
    assert_eq!(
        load(&format!("organisation/tiny@{COMMIT}"), &variables),
        Ok(())
    );
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let server = Server::start(
        COMMIT,
        &folder("bert"),
        &["config.json", "model.safetensors"],
    );
    let (cache, endpoint) = (temporary(), server.url());
    let snapshot = cache.path().join("models--tiny/snapshots").join(COMMIT);
    fs::create_dir_all(&snapshot).expect("a folder");
    let weights = fs::read(folder("bert").join("model.safetensors")).expect("read");
    let config = fs::read(folder("bert").join("config.json")).expect("read");
    fs::write(
        snapshot.join("model.safetensors.incomplete"),
        &weights[..1001],
    )
    .expect("written");
    // All of it has come, and only its name was not changed: there is no more to ask for.
    fs::write(snapshot.join("config.json.incomplete"), &config).expect("written");
    let variables = [
        ("HF_HUB_CACHE", cache.path()),
        ("HF_ENDPOINT", Path::new(&endpoint)),
    ];
    assert_eq!(load("tiny", &variables), Ok(()));
    let requests = server.requests();
    let of_weights = requests
        .iter()
        .find(|request| request.path == "/elsewhere/model.safetensors");
    assert_eq!(
        of_weights.expect("asked for").header("range"),
        Some("bytes=1001-")
    );
    assert_eq!(
        fs::read(snapshot.join("model.safetensors")).expect("read"),
        weights
    );
    assert_eq!(
        fs::read(snapshot.join("config.json")).expect("read"),
        config
    );
}

/// BERT's tensors in one shard, and one of a head, which is ignored, in another.
#[test]
fn shards_are_downloaded() {
    let sharded = temporary();
    let original = folder("bert");
    fs::copy(
        original.join("config.json"),
        sharded.path().join("config.json"),
    )
    .expect("copied");
    let first = fs::read(original.join("model.safetensors")).expect("read");
    let len = u64::from_le_bytes(first[..8].try_into().expect("8 bytes"));
    let header: Map<String, Value> =
        serde_json::from_slice(&first[8..8 + len as usize]).expect("JSON");
    let names = header.keys().filter(|name| *name != "__metadata__");
    let mut files: Map<String, Value> = names
        .map(|name| (name.clone(), json!("first.safetensors")))
        .collect();
    files.insert("cls.bias".into(), json!("second.safetensors"));
    let header = r#"{"cls.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let len = (header.len() as u64).to_le_bytes();
    let second = [&len[..], header.as_bytes(), &[0; 4]].concat();
    let index = json!({ "weight_map": files }).to_string().into_bytes();
    let files = [
        ("first.safetensors", first),
        ("second.safetensors", second),
        ("model.safetensors.index.json", index),
    ];
    for (file, content) in &files {
        fs::write(sharded.path().join(file), content).expect("written");
    }
    let names: Vec<&str> = files
        .iter()
        .map(|(file, _)| *file)
        .chain(["config.json"])
        .collect();
    let server = Server::start(COMMIT, sharded.path(), &names);
    let (cache, endpoint) = (temporary(), server.url());
    let variables = [
        ("HF_HUB_CACHE", cache.path()),
        ("HF_ENDPOINT", Path::new(&endpoint)),
    ];
    assert_eq!(load("tiny", &variables), Ok(()));
}

/// A tokenizer comes without the weights, and from a cache that has all but it.
#[test]
fn a_tokenizer_is_downloaded_alone() {
    let with_tokenizer = temporary();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(folder("bert").join(file), with_tokenizer.path().join(file)).expect("copied");
    }
    fs::write(with_tokenizer.path().join("tokenizer.json"), WORDS).expect("written");
    let files = ["config.json", "model.safetensors", "tokenizer.json"];
    let server = Server::start(COMMIT, with_tokenizer.path(), &files);
    let endpoint = server.url();
    let [empty, filled] = [temporary(), temporary()];
    fill(filled.path(), "main");
    for cache in [&empty, &filled] {
        let variables = [
            ("HF_HUB_CACHE", cache.path()),
            ("HF_ENDPOINT", Path::new(&endpoint)),
            (TOKENIZER, Path::new("1")),
        ];
        assert_eq!(load("organisation/tiny", &variables), Ok(()));
        let variables = [variables[0], variables[2], offline()];
        assert_eq!(load("organisation/tiny", &variables), Ok(()));
    }
    let requests = server.requests();
    let weights = |request: &Request| request.path.ends_with("model.safetensors");
    assert!(!requests.iter().any(weights), "{requests:?}");
    // With the weights it comes by itself.
    let cache = temporary();
    let variables = [
        ("HF_HUB_CACHE", cache.path()),
        ("HF_ENDPOINT", Path::new(&endpoint)),
    ];
    assert_eq!(load("organisation/tiny", &variables), Ok(()));
    let variables = [variables[0], (TOKENIZER, Path::new("1")), offline()];
    assert_eq!(load("organisation/tiny", &variables), Ok(()));
}

#[test]
fn one_sentence_says_what_failed() {
    let cache = temporary();
    let refused = |endpoint: &str, name: &str| {
        let variables = [
            ("HF_HUB_CACHE", cache.path()),
            ("HF_ENDPOINT", Path::new(endpoint)),
        ];
        let refused = load(name, &variables).expect_err("there is nothing");
        let refused = refused.replace(&cache.path().display().to_string(), "CACHE");
        refused.replace(endpoint, "SERVER")
    };
    let lacks = "tiny is not a folder, and the Hub's cache CACHE has no config.json of tiny at main, which cannot be downloaded: ";
    let server = Server::start(COMMIT, &folder("bert"), &["config.json"]);
    assert_eq!(
        refused(&server.url(), "tiny"),
        format!(
            "{lacks}it has none of model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json"
        )
    );
    assert_eq!(
        refused(&server.url(), "private"),
        format!(
            "{}SERVER/api/models/private/revision/main: http status: 401 (there is no such model, or it needs a token in HF_TOKEN)",
            lacks.replace("tiny", "private")
        )
    );
    let nobody = "http://127.0.0.1:1";
    let offline = refused(nobody, "tiny");
    let begins = format!("{lacks}SERVER/api/models/tiny/revision/main: ");
    assert!(offline.starts_with(&begins), "{offline}");
}
