//! The files of a conversation, which a cache may lack although it has the weights.

use std::{fs, path::Path};

use super::{
    CHAT, COMMIT, ENDS, assert_downloaded, fill_with, load, offline,
    server::{Server, Serves},
    temporary,
};
use crate::models::{folder, refused::copied, tokenizer::WORDS};

#[test]
fn a_chat_gets_template_and_end_tokens() {
    for has_template in [true, false] {
        let model = copied("llama", |_| {});
        let path = |file: &str| model.path().join(file);
        let mut files = vec![
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "generation_config.json",
        ];
        fs::write(path("tokenizer.json"), WORDS).expect("written");
        let ends = r#"{"eos_token_id": 3}"#;
        fs::write(path("generation_config.json"), ends).expect("written");
        if has_template {
            files.push("tokenizer_config.json");
            let config = r#"{"chat_template": "{{ messages[0].content }}"}"#;
            fs::write(path("tokenizer_config.json"), config).expect("written");
        }
        let server = Server::start(COMMIT, model.path(), &files, Serves::Files);
        let url = server.url();
        let endpoint = ("HF_ENDPOINT", Path::new(&url));
        let expected = has_template.to_string();
        let chat = (CHAT, Path::new(&expected));
        // An empty cache; one that has configuration and weights, as any program may leave it.
        let [empty, filled] = [temporary(), temporary()];
        fill_with(&folder("llama"), &files[..2], filled.path(), "main");
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
            assert_downloaded(cache, chat, &url);
        }
    }
}
