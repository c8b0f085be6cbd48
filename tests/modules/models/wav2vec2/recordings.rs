//! What the feature extractor of wav2vec 2.0 makes of recordings, and settings that are refused.

use std::fs;

use burn::tensor::Tensor;
use burn_attn_models::speech::AudioProcessor;
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same},
    devices,
    golden::GoldenFile,
    sentence,
};
use serde_json::{Value, json};

use super::{super::folder, LENGTHS};

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
        let batch = processor.forward(&[long, short], &device);
        let lengths = (name == "wav2vec2_large").then(|| LENGTHS.to_vec());
        assert_eq!(batch.lengths, lengths);
        let alone = processor.forward(&[short], &device).samples;
        for (key, actual) in [
            (name.to_owned(), batch.samples),
            (format!("{name}.alone"), alone),
        ] {
            let expected = values.data(&key);
            assert_close_to_largest(&key, &actual.into_data(), &expected, 1e-6, 0.0);
        }
    }
    let processor = AudioProcessor::default();
    assert_eq!(processor.forward(&[], &device).samples.dims(), [0, 0]);
    let silence = processor.forward(&[&[0.25; 7]], &device).samples;
    assert_same(&silence, &Tensor::zeros([1, 7], &device));
    assert_eq!(
        sentence(|| processor.forward(&[short, &[]], &device)),
        "AudioProcessor: recording 1 has no samples"
    );
    assert_eq!(
        sentence(|| processor.forward(&[short, &[0.0, f32::NAN]], &device)),
        "AudioProcessor: sample 1 of recording 1 is NaN"
    );
}

#[test]
fn settings_of_recordings_that_are_refused() {
    let changed = |field: &str, value: Value| {
        let copy = tempfile::tempdir().expect("a folder");
        let path = copy.path().join("preprocessor_config.json");
        let text = fs::read_to_string(folder("wav2vec2").join("preprocessor_config.json"));
        let mut settings: Value = serde_json::from_str(&text.expect("read")).expect("JSON");
        settings[field] = value;
        fs::write(&path, settings.to_string()).expect("written");
        AudioProcessor::from_pretrained(copy.path()).map_err(|error| error.to_string())
    };
    assert!(changed("processor_class", json!("Wav2Vec2Processor")).is_ok());
    for (field, value, expected) in [
        (
            "feature_size",
            json!(80),
            "feature_size is 80, but speech supports 1",
        ),
        (
            "padding_side",
            json!("left"),
            "padding_side is \"left\", but speech supports \"right\"",
        ),
        (
            "feature_extractor_type",
            json!("WhisperFeatureExtractor"),
            "feature_extractor_type is \"WhisperFeatureExtractor\", but speech supports \"Wav2Vec2FeatureExtractor\"",
        ),
        (
            "do_resample",
            json!(true),
            "speech does not know do_resample",
        ),
    ] {
        let error = changed(field, value).expect_err("it is refused");
        assert!(error.ends_with(expected), "{error}");
    }
}
