//! Speech recognition against `transformers`.

use std::fs;

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn_models::speech::{LogMel, SpeechError, SpeechRecognizer};
use burn_attn_tests::{compare::assert_close, devices, sentence};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    super::{change_json, folder, refused::copied},
    FRAMES, LENGTHS, model, recording,
};

#[test]
fn spectrograms_are_the_references() {
    let values = model().values();
    let device = devices::any();
    for row in 0..2 {
        let heard = LogMel::new(8).forward(&recording(row), FRAMES, &device);
        let name = format!("spectrogram.{row}");
        assert_close(&name, &heard.into_data(), &values.data(&name), 1e-4);
        let fine = LogMel::new(80).forward(&recording(row), FRAMES, &device);
        let every: Vec<i32> = (0..FRAMES as i32).step_by(7).collect();
        let every = Tensor::<1, Int>::from_data(every.as_slice(), &device);
        let name = format!("fine.{row}");
        let fine = fine.select(2, every).into_data();
        assert_close(&name, &fine, &values.data(&name), 1e-4);
    }
}

#[test]
fn what_is_no_sound_is_refused() {
    let device = devices::any();
    assert_eq!(
        sentence(|| LogMel::new(0)),
        "LogMel: n_mels must be positive, got 0"
    );
    assert_eq!(
        sentence(|| LogMel::new(8).forward(&[0.0, f32::NAN], 3, &device)),
        "LogMel: sample 1 is NaN"
    );
    let silence = LogMel::new(8).forward(&[], 3, &device);
    // All of 10⁻¹⁰.
    assert_close(
        "silence",
        &silence.into_data(),
        &TensorData::new(vec![-1.5f32; 24], [1, 8, 3]),
        1e-6,
    );
}

#[test]
fn texts_and_times_are_the_references() {
    let values = model().values();
    for (_, device) in devices::cpu() {
        let recognizer = || SpeechRecognizer::from_pretrained(folder("whisper"), &device).unwrap();
        assert_eq!(recognizer().window(), LogMel::SAMPLE_RATE);
        for (language, row) in [("en", 0), ("es", 0), ("heard", 0), ("heard", 1)] {
            let recognizer = match language {
                "heard" => recognizer(),
                language => recognizer().with_language(language).unwrap(),
            };
            let transcript = recognizer.recognize(&recording(row)).unwrap();
            let name = format!("{language}.{row}");
            let tokens: Vec<u32> = values.data(&format!("tokens.{name}")).iter().collect();
            // The prompt: begin, language, task, no timestamps.
            assert_eq!(transcript.tokens, tokens[4..]);
            let heard = if tokens[1] == 30 { "en" } else { "es" };
            assert_eq!(transcript.language.as_deref(), Some(heard));

            let times: Vec<f64> = values.data(&format!("times.{name}")).iter().collect();
            let alignment = recognizer.align(&transcript).unwrap();
            let frames = LENGTHS[row].div_ceil(160) / 2;
            assert_eq!(alignment.weights.dims(), [3, tokens.len() - 4, frames]);
            for (start, expected) in alignment.token_starts.iter().zip(&times[4..]) {
                assert!((start - expected).abs() < 1e-6, "{start} {expected}");
            }
            let mut text = String::new();
            for word in &alignment.words {
                assert_eq!(word.start, alignment.token_starts[word.first_token]);
                text.push_str(&format!(" {}", word.text));
            }
            assert_eq!(text.trim(), transcript.text);
            // Every fourth token continues a word.
            let begins = tokens[5..].iter().filter(|&&token| token % 4 != 3).count();
            assert_eq!(alignment.words.len(), 1 + begins);
        }
    }
}

#[test]
fn a_recording_is_cut_into_windows() {
    let device = devices::any();
    let recognizer = SpeechRecognizer::from_pretrained(folder("whisper"), &device).unwrap();
    let samples = [recording(0), recording(1)].concat();
    let windows: Vec<&[f32]> = recognizer.windows(&samples).collect();
    assert_eq!(windows, [recording(0), recording(1)]);
    // A rest of less than a frame is no window, unless it is all.
    for (len, expected) in [
        (16_319, &[16_000][..]),
        (16_320, &[16_000, 320]),
        (319, &[319]),
    ] {
        let lengths: Vec<usize> = recognizer
            .windows(&samples[..len])
            .map(<[f32]>::len)
            .collect();
        assert_eq!(lengths, expected);
    }
    let error = recognizer.recognize(&samples).unwrap_err();
    assert_eq!(
        error.to_string(),
        "25111 samples were given, but the model reads at most 16000 at once"
    );
    let mut broken = recording(0);
    broken[1] = f32::INFINITY;
    let error = recognizer.recognize(&broken).unwrap_err();
    assert_eq!(error.to_string(), "sample 1 is inf");
    let error = recognizer.recognize(&samples[..319]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "319 samples were given, but a frame has 320"
    );
    let mut nothing = recognizer.recognize(&samples[..320]).unwrap();
    assert_eq!(nothing.n_frames, 1);
    nothing.tokens.clear();
    let error = recognizer.align(&nothing).unwrap_err();
    assert!(
        matches!(error, SpeechError::NothingToAlign { tokens: 0, .. }),
        "{error}"
    );
    let error = recognizer.with_language("fr").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the model does not know the language "fr"; it knows en, es"#
    );
}

/// As in `transformers`.
#[test]
fn languages_have_codes_tokens_and_names() {
    for (language, code) in [
        ("es", Some("es")),
        ("ES", Some("es")),
        ("<|es|>", Some("es")),
        ("Spanish", Some("es")),
        ("castilian", Some("es")),
        ("ENGLISH", Some("en")),
        ("hindi", Some("hi")),
        ("Haitian Creole", Some("ht")),
        ("French", None),
        ("creole", None),
        ("", None),
    ] {
        let mut recognizer = recognizer(|_| {}).unwrap();
        let languages = &mut recognizer.settings.languages;
        languages.extend([("hi".into(), 3), ("ht".into(), 4)]);
        match (recognizer.with_language(language), code) {
            (Ok(found), Some(_)) => assert_eq!(found.settings.language.as_deref(), code),
            (Err(error), None) => assert!(error.to_string().contains("it knows en, es, hi, ht")),
            (found, _) => panic!("{language}: {found:?}"),
        }
        if ["es", "en"].map(Some).contains(&code) {
            let given = self::recognizer(set("language", json!(language))).unwrap();
            assert_eq!(given.settings.language.as_deref(), code);
        }
    }
}

/// A copy of the folder of the small model with other settings.
pub(in crate::models) fn with_settings(change: impl FnOnce(&mut Value)) -> TempDir {
    let copy = copied("whisper", |_| {});
    for file in ["tokenizer.json", "generation_config.json"] {
        fs::copy(folder("whisper").join(file), copy.path().join(file)).unwrap();
    }
    change_json(&copy.path().join("generation_config.json"), change);
    copy
}

pub(super) fn set(field: &'static str, value: Value) -> impl FnOnce(&mut Value) {
    move |settings| settings[field] = value
}

pub(super) fn recognizer(change: impl FnOnce(&mut Value)) -> Result<SpeechRecognizer, SpeechError> {
    SpeechRecognizer::from_pretrained(with_settings(change).path(), &devices::any())
}

#[test]
fn a_text_has_as_many_tokens_as_its_settings_say() {
    let whole = recognizer(|_| {})
        .unwrap()
        .recognize(&recording(0))
        .unwrap();
    assert!(whole.tokens.len() > 3);
    for field in ["max_length", "max_new_tokens"] {
        let recognizer = recognizer(set(field, json!(3))).unwrap();
        let cut = recognizer.recognize(&recording(0)).unwrap();
        assert_eq!(cut.tokens, whole.tokens[..3]);
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    for (field, value, supported) in [
        ("no_timestamps_token_id", json!(35), "a token below 35"),
        ("no_speech_threshold", json!(0.6), "null"),
        ("stop_strings", json!(["w3"]), "null"),
        ("max_time", json!(1.5), "null"),
        ("watermarking_config", json!({"bias": 2.5}), "null"),
        ("lang_to_id", json!([1]), "the tokens of languages"),
        ("task", json!("translate"), "\"transcribe\""),
        ("num_beams", json!(5), "1"),
        (
            "language",
            json!("german"),
            "a language of lang_to_id, by its code or its English name",
        ),
    ] {
        let expected = format!("{field} is {value}, but Whisper supports {supported}");
        let error = recognizer(set(field, value)).unwrap_err().to_string();
        assert!(error.ends_with(&expected), "{error}");
    }
    for (field, value, expected) in [
        (
            "presence_penalty",
            json!(0.5),
            "generation_config.json: Whisper does not know presence_penalty",
        ),
        (
            "eos_token_id",
            json!(null),
            "has no field eos_token_id, which Whisper needs",
        ),
    ] {
        let error = recognizer(set(field, value)).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    // As `transformers` writes them.
    let harmless = recognizer(|settings| {
        settings["temperature"] = json!(0.0);
        settings["max_initial_timestamp_index"] = json!(50);
        settings["prev_sot_token_id"] = json!(32);
        settings["return_timestamps"] = json!(false);
    });
    assert!(harmless.is_ok());
    // Heads are needed for times only.
    for heads in [json!([[3, 0]]), json!([])] {
        let recognizer = recognizer(set("alignment_heads", heads)).unwrap();
        let transcript = recognizer.recognize(&recording(0)).unwrap();
        let error = recognizer.align(&transcript).unwrap_err().to_string();
        assert!(
            error.ends_with("but the model has 3 heads in 3 layers"),
            "{error}"
        );
    }
}

#[test]
fn settings_that_are_not_there_have_defaults() {
    let all = recognizer(set("alignment_heads", json!(null))).unwrap();
    let of_upper_layers = (1..3).flat_map(|layer| (0..3).map(move |head| (layer, head)));
    assert!(
        all.settings
            .alignment_heads
            .iter()
            .copied()
            .eq(of_upper_layers)
    );

    let given = recognizer(set("language", json!("<|es|>"))).unwrap();
    let values = model().values();
    let tokens: Vec<u32> = values.data("tokens.es.0").iter().collect();
    assert_eq!(given.recognize(&recording(0)).unwrap().tokens, tokens[4..]);
    let known = recognizer(set("suppress_tokens", json!([3, 99, -1]))).unwrap();
    assert_eq!(known.settings.suppressed, [3]);
    let ends = recognizer(set("eos_token_id", json!([28, 27]))).unwrap();
    assert_eq!(ends.settings.ends, [28, 27]);
    // Settings are public, and tokens that there are not are never chosen.
    let mut unknown = recognizer(|_| {}).unwrap();
    let transcript = unknown.recognize(&recording(0)).unwrap();
    unknown.settings.suppressed.push(99);
    unknown.settings.suppressed_first.push(99);
    unknown.settings.languages.insert("fr".into(), 99);
    assert_eq!(
        unknown.recognize(&recording(0)).unwrap().tokens,
        transcript.tokens
    );
}

#[test]
fn spectrograms_of_version_5_are_checked_too() {
    let extractor = |n_fft: usize| {
        let copy = with_settings(|_| {});
        let extractor = json!({"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 8, "chunk_length": 1, "n_fft": n_fft});
        let processor =
            json!({"processor_class": "WhisperProcessor", "feature_extractor": extractor});
        let path = copy.path().join("processor_config.json");
        fs::write(path, processor.to_string()).unwrap();
        SpeechRecognizer::from_pretrained(copy.path(), &devices::any())
    };
    assert!(extractor(400).is_ok());
    let error = extractor(512).unwrap_err().to_string();
    assert!(
        error.ends_with("processor_config.json: n_fft is 512, but Whisper supports 400"),
        "{error}"
    );
}

/// Whatever their numbers: a text may have words above its end, which come with fine-tuning.
#[test]
fn special_tokens_and_timestamps_are_no_text() {
    let end = 12;
    let copy = with_settings(|settings| {
        settings["eos_token_id"] = json!(end);
        settings["suppress_tokens"] = json!([end, 28]);
    });
    let load = || SpeechRecognizer::from_pretrained(copy.path(), &devices::any()).unwrap();
    let transcript = load().recognize(&recording(0)).unwrap();
    assert!(transcript.tokens.iter().any(|&token| token > end));
    let is_word = |token: &&u32| **token < 28;
    let words = transcript.tokens.iter().filter(is_word);
    assert_eq!(transcript.text.matches('w').count(), words.clone().count());
    assert!(load().align(&transcript).unwrap().words.len() <= words.clone().count());

    // One of the words becomes a timestamp, another one special.
    let mut chosen: Vec<u32> = words.copied().collect();
    chosen.sort_unstable();
    chosen.dedup();
    let special = json!({"id": chosen[1], "content": "<|extra|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    change_json(&copy.path().join("tokenizer.json"), |tokenizer| {
        let vocabulary = tokenizer["model"]["vocab"].as_object_mut().unwrap();
        vocabulary.retain(|_, token| !chosen[..2].iter().any(|&id| *token == json!(id)));
        vocabulary.insert("<|1.08|>".into(), json!(chosen[0]));
        vocabulary.insert("<|extra|>".into(), json!(chosen[1]));
        let added = tokenizer["added_tokens"].as_array_mut();
        added.unwrap().insert(0, special);
    });
    let fewer = load().recognize(&recording(0)).unwrap();
    assert_eq!(fewer.tokens, transcript.tokens);
    let kept = fewer.tokens.iter().filter(is_word);
    let kept = kept.filter(|token| !chosen[..2].contains(token)).count();
    assert_eq!(fewer.text.matches('w').count(), kept);
    assert!(!fewer.text.contains("<|"), "{}", fewer.text);
    let words = load().align(&fewer).unwrap().words;
    assert!(words.iter().all(|word| !word.text.contains("<|")));
}
