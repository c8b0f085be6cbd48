//! What is in the cache needs no network.

use std::{fs, path::Path};

use super::{COMMIT, fill, lacks, load, offline, temporary};
use crate::models::folder;

#[test]
fn a_name_is_looked_up_where_the_variables_say() {
    let places = [
        ("HF_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
        #[cfg(unix)]
        ("HOME", ".cache/huggingface/hub"),
    ];
    for (variable, below) in places {
        let root = temporary();
        fill(&root.path().join(below), "main");
        let nowhere = ("HF_ENDPOINT", Path::new("nonsense"));
        let loaded = load(
            "organisation/tiny",
            &[(variable, root.path()), offline(), nowhere],
        );
        assert_eq!(loaded, Ok(()), "{variable}");
    }
}

#[cfg(unix)]
#[test]
fn a_tilde_is_the_home_folder() {
    let home = temporary();
    fill(&home.path().join("models/hub"), "main");
    let variables = [
        ("HOME", home.path()),
        ("HF_HOME", Path::new("~/models")),
        offline(),
    ];
    assert_eq!(load("organisation/tiny", &variables), Ok(()));
}

#[test]
fn a_revision_is_a_reference_or_a_commit() {
    let cache = temporary();
    fill(cache.path(), "v1.0");
    let variables = [("HF_HUB_CACHE", cache.path()), offline()];
    for revision in ["v1.0", COMMIT] {
        let name = format!("organisation/tiny@{revision}");
        assert_eq!(load(&name, &variables), Ok(()));
    }
    let expected = lacks(&cache, "config.json");
    assert_eq!(load("organisation/tiny", &variables), expected);
}

#[test]
fn a_folder_comes_before_a_name() {
    let root = temporary();
    let variables = [("HF_HUB_CACHE", root.path()), offline()];
    assert_eq!(
        load(folder("bert").to_str().expect("UTF-8"), &variables),
        Ok(())
    );
    // None of these can be a name.
    for path in [
        "../tiny",
        "/tiny",
        "a/b/c",
        "organisation/",
        "tiny@../../main",
        "ti ny",
        "tiny@",
    ] {
        let refused = load(path, &variables).expect_err("there is none");
        assert!(
            refused.contains("config.json cannot be read as the configuration of a model"),
            "{path}: {refused}"
        );
    }
}

/// A cache from which weights, or one of their shards, are missing, is not taken for a model.
#[test]
fn half_a_model_is_not_enough() {
    let cache = temporary();
    fill(cache.path(), "main");
    let snapshot = cache
        .path()
        .join("models--organisation--tiny/snapshots")
        .join(COMMIT);
    let weights = snapshot.join("model.safetensors");
    fs::remove_file(&weights).expect("removed");
    let variables = [("HF_HUB_CACHE", cache.path()), offline()];
    let expected = lacks(&cache, "model.safetensors");
    assert_eq!(load("organisation/tiny", &variables), expected);
    let index = r#"{"weight_map": {"a": "first.safetensors"}}"#;
    fs::write(snapshot.join("model.safetensors.index.json"), index).expect("written");
    let expected = lacks(&cache, "first.safetensors");
    assert_eq!(load("organisation/tiny", &variables), expected);
}
