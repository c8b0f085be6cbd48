//! What the feature extractor of wav2vec 2.0 makes of recordings, and settings that are refused.

use std::fs;

use burn::tensor::Tensor;
use burn_attn_models::speech::{AudioProcessor, CtcVocabulary};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same},
    devices,
    golden::GoldenFile,
};
use serde_json::{Value, json};

use super::{
    super::{folder, read_json},
    LENGTHS,
};

#[test]
fn recordings_are_normalised_as_by_the_reference() {
    let values = GoldenFile::open("models/wav2vec2/extracted");
    let device = devices::any();
    let recordings = [0, 1].map(|row| {
        let bytes = values.data(&format!("samples.{row}"));
        bytes.iter().map(|byte: f32| byte / 64.0 - 1.0).collect()
    });
    let recordings: [&Vec<f32>; 2] = recordings.each_ref();
    let [long, short] = recordings.map(|samples| samples.as_slice());
    for (name, rate) in [
        ("wav2vec2", 16_000),
        ("wav2vec2_large", 16_000),
        ("wav2vec2_bare", 8_000),
    ] {
        let processor = AudioProcessor::from_pretrained(folder(name)).expect("a processor");
        assert_eq!(processor.sample_rate, rate);
        let batch = processor
            .forward(&[long, short], rate, &device)
            .expect("a batch");
        assert_eq!(batch.lengths, LENGTHS);
        let seen = (name == "wav2vec2_large").then_some(&LENGTHS[..]);
        assert_eq!(batch.seen_lengths(), seen);
        let alone = processor
            .forward(&[short], rate, &device)
            .expect("a batch")
            .samples;
        for (key, actual) in [
            (name.to_owned(), batch.samples),
            (format!("{name}.alone"), alone),
        ] {
            let expected = values.data(&key);
            assert_close_to_largest(&key, &actual.into_data(), &expected, 1e-6, 0.0);
        }
    }
    let processor = AudioProcessor::default();
    let forward = |recordings: &[&[f32]], rate| processor.forward(recordings, rate, &device);
    assert_eq!(
        forward(&[], 16_000).expect("a batch").samples.dims(),
        [0, 0]
    );
    let silence = forward(&[&[0.25; 7]], 16_000).expect("a batch").samples;
    assert_same(&silence, &Tensor::zeros([1, 7], &device));
    assert_eq!(
        forward(&[short, &[]], 16_000).unwrap_err().to_string(),
        "recording 1 has no samples"
    );
    assert_eq!(
        forward(&[short, &[0.0, f32::NAN]], 16_000)
            .unwrap_err()
            .to_string(),
        "recording 1: sample 1 is NaN"
    );
    assert_eq!(
        forward(&[short], 44_100).unwrap_err().to_string(),
        "the recording has 44100 samples a second, but the model was trained on 16000: resample it"
    );
}

#[test]
fn settings_of_recordings_that_are_refused() {
    let changed = |field: &str, value: Value| {
        let copy = tempfile::tempdir().expect("a folder");
        let file = "preprocessor_config.json";
        let mut settings = read_json(&folder("wav2vec2").join(file));
        settings[field] = value;
        fs::write(copy.path().join(file), settings.to_string()).expect("written");
        AudioProcessor::from_pretrained(copy.path()).map_err(|error| error.to_string())
    };
    assert!(changed("processor_class", json!("Wav2Vec2Processor")).is_ok());
    for (field, value, expected) in [
        (
            "feature_size",
            json!(80),
            "feature_size is 80, but wav2vec 2.0 supports 1",
        ),
        (
            "padding_side",
            json!("left"),
            "padding_side is \"left\", but wav2vec 2.0 supports \"right\"",
        ),
        (
            "feature_extractor_type",
            json!("WhisperFeatureExtractor"),
            "feature_extractor_type is \"WhisperFeatureExtractor\", but wav2vec 2.0 supports \"Wav2Vec2FeatureExtractor\"",
        ),
        (
            "do_resample",
            json!(true),
            "wav2vec 2.0 does not know do_resample",
        ),
    ] {
        let error = changed(field, value).expect_err("it is refused");
        assert!(error.ends_with(expected), "{error}");
    }
}

/// As `Wav2Vec2Processor` of version 5 of `transformers` writes them.
#[test]
fn settings_of_recordings_beside_those_of_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |file: &str, settings: Value| {
        fs::write(folder.path().join(file), settings.to_string()).expect("written");
    };
    let rate = || {
        let processor = AudioProcessor::from_pretrained(folder.path());
        let processor = processor.map_err(|error| error.to_string())?;
        Ok::<_, String>(processor.sample_rate)
    };
    let extractor = |rate: usize| json!({"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": rate});
    let both = |extractor: Value| json!({"processor_class": "Wav2Vec2Processor", "feature_extractor": extractor});
    write("processor_config.json", both(extractor(7)));
    assert_eq!(rate(), Ok(7));
    write("preprocessor_config.json", extractor(11));
    assert_eq!(rate(), Ok(7));
    write("processor_config.json", both(json!(null)));
    assert_eq!(rate(), Ok(11));
    write(
        "processor_config.json",
        json!({"processor_class": "Wav2Vec2Processor"}),
    );
    assert_eq!(rate(), Ok(11));
    write("processor_config.json", both(json!(13)));
    let error = rate().expect_err("it is refused");
    assert!(
        error.ends_with("processor_config.json cannot be read as the settings of an audio processor: its feature_extractor is not an object"),
        "{error}"
    );
}

#[test]
fn letters_of_tokens_are_the_references() {
    let cases: Vec<Value> =
        serde_json::from_value(read_json(&folder("ctc_letters.json"))).expect("cases");
    assert_eq!(cases.len(), 26);
    for case in cases {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, fields) in case["files"].as_object().expect("files") {
            let path = folder.path().join(format!("{name}.json"));
            fs::write(path, fields.to_string()).expect("written");
        }
        let vocabulary = CtcVocabulary::from_pretrained(folder.path()).expect("a vocabulary");
        let tokens: Vec<u32> = serde_json::from_value(case["tokens"].clone()).expect("tokens");
        assert_eq!(vocabulary.text(&tokens), case["text"], "{}", case["files"]);
        assert_eq!(vocabulary.text(&[]), "");
    }
}

#[test]
fn vocabularies_that_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |file: &str, fields: Value| {
        fs::write(folder.path().join(file), fields.to_string()).expect("written");
    };
    let refused = |expected: &str| {
        let error = CtcVocabulary::from_pretrained(folder.path()).expect_err("it is refused");
        assert!(error.to_string().ends_with(expected), "{error}");
    };
    write("vocab.json", json!({"eng": {"a": 1}}));
    refused(
        "vocab.json cannot be read as tokens and their numbers: {\"a\":1} is not the number of a token",
    );
    write("vocab.json", json!({"a": 1}));
    for (fields, expected) in [
        (
            json!({"tokenizer_class": "Wav2Vec2PhonemeCTCTokenizer"}),
            "tokenizer_class is \"Wav2Vec2PhonemeCTCTokenizer\", but the vocabulary of a CTC model supports \"Wav2Vec2CTCTokenizer\"",
        ),
        (
            json!({"target_lang": "eng"}),
            "target_lang is \"eng\", but the vocabulary of a CTC model supports null",
        ),
        (
            json!({"word_delimiter_token": null}),
            "word_delimiter_token is null, but the vocabulary of a CTC model supports a text",
        ),
        (
            json!({"phonemizer_lang": "en-us"}),
            "the vocabulary of a CTC model does not know phonemizer_lang",
        ),
    ] {
        write("tokenizer_config.json", fields);
        refused(expected);
    }
    fs::remove_file(folder.path().join("vocab.json")).expect("removed");
    assert!(CtcVocabulary::from_pretrained(folder.path()).is_err());
}
