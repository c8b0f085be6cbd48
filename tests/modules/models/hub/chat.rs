//! The files of a conversation, which a cache may lack although it has the weights.

use std::{fs, path::Path};

use super::{
    CHAT, COMMIT, ENDS, fill_with, load, offline,
    server::{Server, Serves},
    temporary,
};
use crate::models::{folder, tokenizer::WORDS};

#[test]
fn a_chat_gets_template_and_end_tokens() {
    for has_template in [true, false] {
        let model = temporary();
        let path = |file: &str| model.path().join(file);
        let mut files = vec![
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "generation_config.json",
        ];
        for file in &files[..2] {
            fs::copy(folder("llama").join(file), path(file)).expect("copied");
        }
        fs::write(path("tokenizer.json"), WORDS).expect("written");
        let ends = r#"{"eos_token_id": 3}"#;
        fs::write(path("generation_config.json"), ends).expect("written");
        if has_template {
            files.push("tokenizer_config.json");
            let config = r#"{"chat_template": "{{ messages[0].content }}"}"#;
            fs::write(path("tokenizer_config.json"), config).expect("written");
        }
        let server = Server::start(COMMIT, model.path(), &files, Serves::Files);
        let endpoint = server.url();
        let endpoint = ("HF_ENDPOINT", Path::new(&endpoint));
        let expected = has_template.to_string();
        let chat = (CHAT, Path::new(&expected));
        // An empty cache; one that has configuration and weights, as any program may leave it.
        let [empty, filled] = [temporary(), temporary()];
        fill_with("llama", filled.path(), "main");
        let refused = [("HF_HUB_CACHE", filled.path()), chat, offline()];
        let reason = load("organisation/tiny", &refused).expect_err("a file is missing");
        assert!(
            reason.contains("has no tokenizer.json of organisation/tiny"),
            "{reason}"
        );
        // Beside a tokenizer alone, the files that name end tokens.
        let alone = temporary();
        let alone = ("HF_HUB_CACHE", alone.path());
        let ends = (ENDS, Path::new("[2, 3]"));
        assert_eq!(load("organisation/tiny", &[alone, ends, endpoint]), Ok(()));
        for cache in [&empty, &filled] {
            let cache = ("HF_HUB_CACHE", cache.path());
            let load = |variables: &[_]| load("organisation/tiny", variables);
            assert_eq!(load(&[cache, chat, endpoint]), Ok(()));
            assert_eq!(load(&[cache, chat, offline()]), Ok(()));
        }
    }
}
