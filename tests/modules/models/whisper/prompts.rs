//! The tokens before a text, as files of several releases say them.

use burn_attn_models::speech::SpeechRecognizer;
use burn_attn_tests::devices;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    super::change_json,
    model, recording,
    speech::{recognizer, set, with_settings},
};

/// Sets the forced tokens of `config.json` of such a copy.
fn set_of_model(copy: &TempDir, ids: Value) {
    let path = copy.path().join("config.json");
    change_json(&path, set("forced_decoder_ids", ids));
}

/// The prompts of models for one language, and of those that were saved before files named languages.
#[test]
fn prompts_without_languages() {
    let english = |settings: &mut Value| settings["is_multilingual"] = json!(false);
    let forced = |settings: &mut Value| {
        english(settings);
        settings["forced_decoder_ids"] = json!([[1, 30], [2, 33], [3, 34]]);
    };
    let values = model().values();
    for (recognizer, name, prompt) in [
        (recognizer(english), "tokens.plain.0", 2),
        (recognizer(forced), "forced.plain.0", 0),
    ] {
        let recognizer = recognizer.unwrap();
        let transcript = recognizer.recognize(&recording(0)).unwrap();
        let tokens: Vec<u32> = values.data(name).iter().collect();
        assert_eq!(transcript.tokens, tokens[prompt..]);
        assert_eq!(transcript.language, None);
        let error = recognizer.with_language("en").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"the model knows one language only, so that none can be given, such as "en""#
        );
    }
}

/// Where files name languages, the tokens after the first one say which is spoken, unless a newer setting does.
#[test]
fn prompts_of_older_files_name_the_language() {
    let values = model().values();
    let forced = |forced: Value, newer: Option<(&'static str, &'static str)>| {
        recognizer(move |settings| {
            settings["forced_decoder_ids"] = forced;
            if let Some((field, value)) = newer {
                settings[field] = json!(value);
            }
        })
    };
    let spanish = || json!([[1, 31], [2, 33], [3, 34]]);
    let detected = values.data("tokens.heard.0").iter::<u32>().nth(1);
    assert_eq!(detected, Some(30));
    for (ids, newer, language, name) in [
        (spanish(), None, Some("es"), "forced.es.0"),
        (json!([[1, 31], [2, 33]]), None, Some("es"), "forced.es.0"),
        (json!([[1, null], [2, 33]]), None, None, "forced.heard.0"),
        (json!([]), None, None, "tokens.heard.0"),
        (
            spanish(),
            Some(("language", "en")),
            Some("en"),
            "tokens.en.0",
        ),
        (
            spanish(),
            Some(("task", "transcribe")),
            None,
            "tokens.heard.0",
        ),
        (
            json!([[1, 31], [2, 32]]),
            Some(("language", "es")),
            Some("es"),
            "tokens.es.0",
        ),
    ] {
        let recognizer = forced(ids, newer).unwrap();
        assert_eq!(recognizer.settings.language.as_deref(), language);
        let transcript = recognizer.recognize(&recording(0)).unwrap();
        let tokens: Vec<u32> = values.data(name).iter().collect();
        let prompt = if name.starts_with("forced") { 0 } else { 4 };
        assert_eq!(transcript.tokens, tokens[prompt..]);
    }
    // Forced tokens of `config.json` count where the other file has none.
    for (own, expected) in [
        (json!(null), "forced.of_config.0"),
        (json!([[1, null], [2, 33]]), "forced.heard.0"),
    ] {
        let copy = with_settings(set("forced_decoder_ids", own));
        set_of_model(&copy, spanish());
        let recognizer = SpeechRecognizer::from_pretrained(copy.path(), &devices::any()).unwrap();
        let transcript = recognizer.recognize(&recording(0)).unwrap();
        let tokens: Vec<u32> = values.data(expected).iter().collect();
        assert_eq!(transcript.tokens, tokens);
    }
    let copy = with_settings(|_| {});
    set_of_model(&copy, json!([[1, 31], [2, 32]]));
    let error = SpeechRecognizer::from_pretrained(copy.path(), &devices::any()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("/config.json: forced_decoder_ids is [[1,31],[2,32]]"),
        "{error}"
    );
    for ids in [
        // A translation, no task, no language, and a text with timestamps.
        json!([[1, 31], [2, 32]]),
        json!([[1, 31]]),
        json!([[1, 33]]),
        json!([[1, 31], [2, 33], [3, 5]]),
        json!([[1, 31], [2, 33], [3, 34], [4, 5]]),
    ] {
        let error = forced(ids.clone(), None).unwrap_err().to_string();
        let expected = format!(
            "forced_decoder_ids is {ids}, but Whisper supports null or a token of lang_to_id, then that of transcribing, and perhaps that of no timestamps"
        );
        assert!(error.ends_with(&expected), "{error}");
    }
}
