//! What is not in the cache is downloaded.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use super::{
    COMMIT, IMAGES, PROGRESS, TOKENIZER, assert_downloaded, fill, load, offline, online, printed,
    server::{Request, Server, Serves},
    temporary,
};
use crate::{
    models::{folder, refused::copied, tokenizer::WORDS},
    weights::{contents, write_as},
};

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
        Serves::Files,
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
            &format!("/api/models/organisation/tiny/tree/{COMMIT}"),
            &format!("{resolved}/config.json"),
            &format!("{resolved}/config.json"),
            "/elsewhere/config.json",
            // The configuration is supported: now the weights.
            &format!("{resolved}/model.safetensors"),
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

/// A model that is not supported costs no download of its weights.
#[test]
fn a_configuration_is_refused_before_its_weights_are_downloaded() {
    let other = copied("bert", |config| {
        config.insert("model_type".into(), json!("roberta"));
    });
    let files = ["config.json", "model.safetensors"];
    let server = Server::start(COMMIT, other.path(), &files, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    let variables = online(&cache, &endpoint);
    let refused = load("tiny", &variables).expect_err("it is not supported");
    let reason = r#"config.json: model_type is "roberta", but BERT supports bert, albert"#;
    assert!(refused.ends_with(reason), "{refused}");
    let requests = server.requests();
    let weights = |request: &Request| request.path.ends_with("model.safetensors");
    assert!(!requests.iter().any(weights), "{requests:?}");
}

/// The size of a file is known from its start on, and all of it has arrived at its end.
#[test]
fn how_far_a_download_has_come() {
    let files = ["config.json", "model.safetensors"];
    let server = Server::start(COMMIT, &folder("bert"), &files, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    let [of_cache, endpoint] = online(&cache, &endpoint);
    let variables = [of_cache, endpoint, (PROGRESS, Path::new("1"))];
    let shown = |text: String, file: &str| -> Vec<[u64; 2]> {
        let begins = format!("download {file} ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&begins));
        let numbers = lines.map(|line| {
            let mut numbers = line
                .split(' ')
                .map(|number| number.parse().expect("a number"));
            [(); 2].map(|()| numbers.next().expect("two numbers"))
        });
        numbers.collect()
    };
    let text = printed("tiny", &variables);
    for file in files {
        let size = fs::metadata(folder("bert").join(file))
            .expect("a file")
            .len();
        let shown = shown(text.clone(), file);
        assert_eq!(shown.first(), Some(&[0, size]), "{text}");
        assert_eq!(shown.last(), Some(&[size, size]), "{text}");
        assert!(shown.is_sorted(), "{text}");
    }
    // Nothing is downloaded, or nobody asked.
    assert!(!printed("tiny", &variables).contains("download "));
    let cache = temporary();
    let variables = [("HF_HUB_CACHE", cache.path()), endpoint];
    assert!(!printed("tiny", &variables).contains("download "));
}

/// Neither half a file nor the page of an error stays in the cache, where it would be taken for the file.
#[test]
fn what_is_not_the_file_is_not_kept() {
    let cache = temporary();
    let answer = |serves| {
        let server = Server::start(
            COMMIT,
            &folder("bert"),
            &["config.json", "model.safetensors"],
            serves,
        );
        load("tiny", &online(&cache, &server.url()))
    };
    let config = fs::metadata(folder("bert").join("config.json")).expect("a file");
    let refused = answer(Serves::Pages).expect_err("no model");
    let reason = format!(
        "cannot be downloaded: config.json has {} bytes, but the server sent 15",
        config.len()
    );
    assert!(refused.ends_with(&reason), "{refused}");
    let refused = answer(Serves::Half).expect_err("no model");
    assert!(refused.contains("cannot be downloaded: "), "{refused}");
    let snapshot = cache.path().join("models--tiny/snapshots").join(COMMIT);
    assert!(!snapshot.join("config.json").exists());
    assert_eq!(answer(Serves::Files), Ok(()));
    // Who makes room in a cache deletes the largest files, not the links to them.
    let link = snapshot.join("model.safetensors");
    fs::remove_file(link.canonicalize().expect("a file")).expect("removed");
    assert_eq!(answer(Serves::Files), Ok(()));
}

/// What a branch points to now matters only if the commit that it pointed to is gone, and changes the cache only for a whole model.
#[test]
fn a_cached_commit_is_completed() {
    let with_tokenizer = temporary();
    fs::write(with_tokenizer.path().join("tokenizer.json"), WORDS).expect("written");
    let other = COMMIT.replace('0', "f");
    for (there, asked) in [(COMMIT, false), (&other, true)] {
        let cache = temporary();
        fill(cache.path(), "main");
        let server = Server::start(
            there,
            with_tokenizer.path(),
            &["tokenizer.json"],
            Serves::Files,
        );
        let endpoint = server.url();
        let [of_cache, endpoint] = online(&cache, &endpoint);
        let variables = [of_cache, endpoint, (TOKENIZER, Path::new("1"))];
        assert_eq!(load("organisation/tiny", &variables), Ok(()));
        let of_branch = |request: &Request| request.path.ends_with("/revision/main");
        assert_eq!(server.requests().iter().any(of_branch), asked);
        let reference = cache.path().join("models--organisation--tiny/refs/main");
        assert_eq!(fs::read_to_string(reference).expect("a commit"), COMMIT);
    }
}

/// BERT's tensors in one shard, and one of a head, which is ignored, in another.
#[test]
fn shards_are_downloaded() {
    let sharded = copied("bert", |_| {});
    let names = [
        "first.safetensors",
        "second.safetensors",
        "model.safetensors.index.json",
        "config.json",
    ];
    let [first, second, index, _] = names.map(|name| sharded.path().join(name));
    fs::rename(sharded.path().join("model.safetensors"), &first).expect("renamed");
    write_as(&second, vec![("cls.bias", "F32", vec![1], vec![0; 4])]);
    let shards = contents(&first).into_keys();
    let shards = shards.map(|name| (name, json!(names[0])));
    let shards = shards.chain([("cls.bias".into(), json!(names[1]))]);
    let map: Map<String, Value> = shards.collect();
    fs::write(index, json!({ "weight_map": map }).to_string()).expect("written");
    let server = Server::start(COMMIT, sharded.path(), &names, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    assert_eq!(load("tiny", &online(&cache, &endpoint)), Ok(()));
}

/// A tokenizer comes without the weights, and from a cache that has all but it.
#[test]
fn a_tokenizer_is_downloaded_alone() {
    let with_tokenizer = copied("bert", |_| {});
    fs::write(with_tokenizer.path().join("tokenizer.json"), WORDS).expect("written");
    let files = ["config.json", "model.safetensors", "tokenizer.json"];
    let server = Server::start(COMMIT, with_tokenizer.path(), &files, Serves::Files);
    let endpoint = server.url();
    let [empty, filled] = [temporary(), temporary()];
    fill(filled.path(), "main");
    for cache in [&empty, &filled] {
        assert_downloaded(cache, (TOKENIZER, Path::new("1")), &endpoint);
    }
    let requests = server.requests();
    let weights = |request: &Request| request.path.ends_with("model.safetensors");
    assert!(!requests.iter().any(weights), "{requests:?}");
    // With the weights it comes by itself.
    let cache = temporary();
    let variables = online(&cache, &endpoint);
    assert_eq!(load("organisation/tiny", &variables), Ok(()));
    let variables = [variables[0], (TOKENIZER, Path::new("1")), offline()];
    assert_eq!(load("organisation/tiny", &variables), Ok(()));
}

/// The configuration of the model names it where the settings of images do not.
#[test]
fn the_kind_of_a_processor_is_downloaded() {
    let model = copied("clip", |_| {});
    let settings =
        json!({"size": 5, "crop_size": 4, "resample": 3, "image_mean": 0.5, "image_std": 0.5});
    let path = model.path().join("preprocessor_config.json");
    fs::write(path, settings.to_string()).expect("written");
    let files = ["config.json", "preprocessor_config.json"];
    let server = Server::start(COMMIT, model.path(), &files, Serves::Files);
    let (cache, endpoint) = (temporary(), server.url());
    let [cache, endpoint] = online(&cache, &endpoint);
    let variables = [cache, endpoint, (IMAGES, Path::new("Some(ShorterSide(5))"))];
    assert_eq!(load("tiny", &variables), Ok(()));
}

#[test]
fn one_sentence_says_what_failed() {
    let cache = temporary();
    let refused = |endpoint: &str, name: &str| {
        let refused = load(name, &online(&cache, endpoint)).expect_err("there is nothing");
        let refused = refused.replace(&cache.path().display().to_string(), "CACHE");
        refused.replace(endpoint, "SERVER")
    };
    let lacks = "tiny is not a folder, and the Hub's cache CACHE has no config.json of tiny at main, which cannot be downloaded: ";
    let server = Server::start(COMMIT, &folder("bert"), &["config.json"], Serves::Files);
    assert_eq!(
        refused(&server.url(), "tiny"),
        format!(
            "{lacks}the model has none of model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json"
        )
    );
    assert_eq!(
        refused(&server.url(), "private"),
        format!(
            "{}Authentication required (url=SERVER/api/models/private/revision/main); there is no such model, or it needs a token in HF_TOKEN",
            lacks.replace("tiny", "private")
        )
    );
    let nobody = "http://127.0.0.1:1";
    let offline = refused(nobody, "tiny");
    assert!(offline.starts_with(lacks), "{offline}");
    let ends = "Connection refused (os error 111)";
    assert!(
        !cfg!(target_os = "linux") || offline.ends_with(ends),
        "{offline}"
    );
}
