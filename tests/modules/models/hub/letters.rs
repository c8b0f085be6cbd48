//! The files that say what the tokens of a CTC model are, which a cache may lack although it has `vocab.json`.

use std::{fs, path::Path};

use super::{
    COMMIT, LETTERS, assert_downloaded, fill_with, load, offline,
    server::{Server, Serves},
    temporary,
};

#[test]
fn letters_come_with_what_says_which_are_special() {
    for (has_settings, text) in [(true, "ET"), (false, "E[UNK]T")] {
        let model = temporary();
        let write = |file: &str, text: &str| {
            fs::write(model.path().join(file), text).expect("written");
        };
        let mut files = vec!["vocab.json"];
        write("vocab.json", r#"{"E": 1, "[UNK]": 2, "T": 3}"#);
        if has_settings {
            files.push("tokenizer_config.json");
            write("tokenizer_config.json", r#"{"unk_token": "[UNK]"}"#);
        }
        let server = Server::start(COMMIT, model.path(), &files, Serves::Files);
        let letters = (LETTERS, Path::new(text));
        // An empty cache; one that has the vocabulary alone.
        let [empty, filled] = [temporary(), temporary()];
        fill_with(model.path(), &files[..1], filled.path(), "main");
        let refused = [("HF_HUB_CACHE", filled.path()), letters, offline()];
        let reason = load("organisation/tiny", &refused).expect_err("a file is missing");
        assert!(
            reason.contains("has no tokenizer_config.json of organisation/tiny"),
            "{reason}"
        );
        for cache in [&empty, &filled] {
            assert_downloaded(cache, letters, &server.url());
        }
    }
}
