//! Whisper and speech recognition against `transformers`.

use std::{f64::consts::PI, fs};

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn_models::{
    pretrained::PretrainedError,
    speech::{LogMel, SpeechError, SpeechRecognizer},
    whisper::{self, Whisper},
};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest},
    devices,
    golden::GoldenFile,
    sentence,
};
use serde_json::{Value, json};

use super::{
    TOLERANCE, folder,
    language_models::{Logits, Model},
    real::fetched,
    refused::copied,
};

/// Samples of the recordings of the golden values, and their frames.
const LENGTHS: [usize; 2] = [LogMel::SAMPLE_RATE, 9_111];
const FRAMES: usize = 100;

impl Logits for Whisper {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let device = devices::any();
        let memory = self.encode(values.tensor("spectrogram.0", &device));
        let target = [[29, 30, 33, 34, 9, 2, 14, 4]];
        let target = Tensor::<2, Int>::from_data(target, &device);
        self.seq2seq.decode(target, &memory).into_data()
    }
}

fn model() -> Model<Whisper> {
    Model {
        name: "whisper",
        from_pretrained: |folder, device| whisper::from_pretrained(folder, device),
        table: whisper::table(),
    }
}

/// Two tones that rise, over noise of all frequencies, as in `make_whisper.py`.
fn recording(row: usize) -> Vec<f32> {
    let first = 200.0 + 300.0 * row as f64;
    let sample = |at: usize| {
        let t = at as f64 / LogMel::SAMPLE_RATE as f64;
        let noise = (at as u64 + 1) * 2_654_435_761 % (1 << 32);
        let noise = noise as f64 / 2.0_f64.powi(32) - 0.5;
        let tones = (2.0 * PI * (first + 900.0 * t) * t).sin()
            + 0.3 * (2.0 * PI * (3.0 * first + 2000.0 * t) * t).sin();
        (0.4 * tones + 0.05 * noise) as f32
    };
    (0..LENGTHS[row]).map(sample).collect()
}

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
fn memory_and_logits_are_the_references() {
    let values = model().values();
    for (backend, device) in devices::named() {
        let loaded = model().load(&device);
        for row in 0..2 {
            let memory = loaded.encode(values.tensor(&format!("spectrogram.{row}"), &device));
            let target = Tensor::<2, Int>::from_data([[29, 30, 33, 34, 9, 2, 14, 4]], &device);
            let logits = loaded.seq2seq.decode(target, &memory);
            for (name, actual) in [("memory", memory.states), ("logits", logits)] {
                let name = format!("{name}.{row}");
                let what = format!("{name} on {backend}");
                assert_close_to_largest(
                    &what,
                    &actual.into_data(),
                    &values.data(&name),
                    TOLERANCE,
                    0.0,
                );
            }
        }
    }
}

#[test]
fn it_is_written_back_bit_for_bit() {
    model().check_export();
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
            let recognized = recognizer.recognize(&recording(row)).unwrap();
            let name = format!("{language}.{row}");
            let tokens: Vec<u32> = values.data(&format!("tokens.{name}")).iter().collect();
            // The prompt: begin, language, task, no timestamps.
            assert_eq!(recognized.tokens, tokens[4..]);
            let heard = if tokens[1] == 30 { "en" } else { "es" };
            assert_eq!(recognized.language.as_deref(), Some(heard));

            let times: Vec<f64> = values.data(&format!("times.{name}")).iter().collect();
            let alignment = recognizer.align(&recognized).unwrap();
            let frames = LENGTHS[row].div_ceil(160) / 2;
            assert_eq!(alignment.weights.dims(), [3, tokens.len() - 4, frames]);
            let mut text = String::new();
            for word in &alignment.words {
                let expected = times[4 + word.first_token];
                assert!((word.start - expected).abs() < 1e-6, "{word:?} {expected}");
                text.push_str(&format!(" {}", word.text));
            }
            assert_eq!(text.trim(), recognized.text);
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
    let error = recognizer.recognize(&samples).unwrap_err();
    assert_eq!(
        error.to_string(),
        "25111 samples were given, but the model hears at most 16000 at once"
    );
    let error = recognizer.recognize(&[0.5, f32::INFINITY]).unwrap_err();
    assert_eq!(error.to_string(), "sample 1 is inf");
    let nothing = recognizer.recognize(&[]).unwrap();
    assert_eq!(nothing.n_frames, 0);
    let error = recognizer.align(&nothing).unwrap_err();
    assert!(matches!(error, SpeechError::Silent), "{error}");
    let error = recognizer.with_language("fr").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the model does not know the language "fr"; it knows en, es"#
    );
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let refused = |change: fn(&mut Value)| {
        let copy = copied("whisper", |_| {});
        for file in ["tokenizer.json", "generation_config.json"] {
            fs::copy(folder("whisper").join(file), copy.path().join(file)).unwrap();
        }
        let path = copy.path().join("generation_config.json");
        let mut settings: Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut settings);
        fs::write(&path, settings.to_string()).unwrap();
        let loaded = SpeechRecognizer::from_pretrained(copy.path(), &devices::any());
        match loaded {
            Err(SpeechError::Pretrained(PretrainedError::File { reason, .. })) => reason,
            other => panic!("{other:?}"),
        }
    };
    for (change, expected) in [
        (
            (|settings| settings["alignment_heads"] = json!([[3, 0]])) as fn(&mut Value),
            "alignment_heads has head 0 of layer 3, but the model has 3 heads in 3 layers",
        ),
        (
            |settings| settings["alignment_heads"] = json!([]),
            "alignment_heads is empty",
        ),
        (
            |settings| settings["suppress_tokens"] = json!([3, 35]),
            "token 35 is outside the vocabulary of 35 tokens",
        ),
        (
            |settings| settings["eos_token_id"] = json!(null),
            "it has no eos_token_id",
        ),
        (
            |settings| settings["lang_to_id"] = json!([1]),
            "lang_to_id: invalid type: sequence, expected a map",
        ),
    ] {
        assert_eq!(refused(change), expected);
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let device = devices::any();
    let loaded = model().load(&device);
    for (shape, expected) in [
        (
            [1, 7, 100],
            "Whisper: a spectrogram of 7 bands for a model that hears 8",
        ),
        (
            [1, 8, 101],
            "Whisper: a spectrogram of 101 frames is longer than the 100 that the model hears at once",
        ),
    ] {
        let spectrogram = Tensor::zeros(shape, &device);
        assert_eq!(sentence(|| loaded.encode(spectrogram)), expected);
    }
    let error = model().changed(|config| {
        config.insert("decoder_attention_heads".into(), json!(4));
    });
    let error = error.expect_err("it is refused");
    assert!(
        error.ends_with("decoder_attention_heads is 4, but Whisper supports 3"),
        "{error}"
    );
}

/// The real Whisper on a made-up tone has nothing to say, or little; that its words are those of `transformers` is shown by
/// `examples/transcribe/compare`.
#[test]
fn the_published_model_loads() {
    let Some(folder) = fetched("whisper", "") else {
        return;
    };
    let recognizer = SpeechRecognizer::from_pretrained(folder, &devices::any()).unwrap();
    assert_eq!(recognizer.window(), 30 * LogMel::SAMPLE_RATE);
    assert_eq!(recognizer.settings.start, 50257);
    assert!(recognizer.settings.languages.is_empty());
    let recognized = recognizer.recognize(&recording(0)).unwrap();
    assert!(recognized.tokens.len() < 50, "{}", recognized.text);
}
