//! Whisper against `transformers`.

mod prompts;
pub(super) mod speech;

use std::f64::consts::PI;

use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};
use burn_attn_models::{
    pretrained::LoadOptions,
    speech::LogMel,
    whisper::{self, Whisper},
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile, sentence};
use serde_json::json;

use super::{
    TOLERANCE, assert_states, folder,
    language_models::{Logits, Model},
    load_options::{assert_like, numbers},
};

/// Samples of the recordings of the golden values, and their frames.
const LENGTHS: [usize; 2] = [LogMel::SAMPLE_RATE, 9_111];
const FRAMES: usize = 100;

impl Logits for Whisper {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let device = devices::any();
        let memory = self.encode(values.tensor("spectrogram.0", &device));
        self.seq2seq.decode(target(&device), &memory).into_data()
    }
}

fn target(device: &Device) -> Tensor<2, Int> {
    Tensor::from_data([[29, 30, 33, 34, 9, 2, 14, 4]], device)
}

pub(super) fn model() -> Model<Whisper> {
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
fn memory_and_logits_are_the_references() {
    let values = model().values();
    for (backend, device) in devices::named() {
        let loaded = model().load(&device);
        for row in 0..2 {
            let memory = loaded.encode(values.tensor(&format!("spectrogram.{row}"), &device));
            let logits = loaded.seq2seq.decode(target(&device), &memory);
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
fn half_precision() {
    let exact = model().load(&devices::any());
    let spectrogram = LogMel::new(8).forward(&recording(0), FRAMES, &devices::any());
    let exact = numbers(exact.encode(spectrogram.clone()).states);
    // `transformers` is off by 0.015 and 0.19.
    for (dtype, tolerance) in [(FloatDType::F16, 0.02), (FloatDType::BF16, 0.2)] {
        let options = LoadOptions::new(&devices::any()).dtype(dtype);
        let model = whisper::from_pretrained(folder("whisper"), options).unwrap();
        let states = model.encode(spectrogram.clone()).states;
        assert_like("Whisper", states, &exact, (dtype.into(), tolerance));
    }
}

#[test]
fn batches_and_odd_lengths() {
    let device = devices::any();
    let loaded = model().load(&device);
    let two = Tensor::cat(
        (0..2)
            .map(|row| LogMel::new(8).forward(&recording(row), FRAMES, &device))
            .collect(),
        0,
    );
    let both = loaded.encode(two.clone()).states;
    let second = loaded.encode(two.clone().narrow(0, 1, 1)).states;
    let both = both.narrow(0, 1, 1).into_data();
    assert_close_to_largest("both", &both, &second.into_data(), 1e-6, 0.0);
    let nothing = loaded.encode(Tensor::zeros([0, 8, 7], &device));
    assert_eq!(nothing.states.dims(), [0, 4, 12]);
    for n_frames in [1, 7] {
        let memory = loaded.encode(two.clone().narrow(2, 0, n_frames)).states;
        let expected = [0, 1].map(|row| {
            let name = format!("memory.{row}.{n_frames}");
            model().values().tensor::<3>(&name, &device)
        });
        assert_states("odd", memory, Tensor::cat(expected.into(), 0));
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let device = devices::any();
    let loaded = model().load(&device);
    for (shape, expected) in [
        (
            [1, 7, 100],
            "Whisper: a spectrogram of 7 bands for a model of 8",
        ),
        (
            [1, 8, 101],
            "Whisper: a spectrogram has 101 frames, but must have 1 to 100",
        ),
        (
            [1, 8, 0],
            "Whisper: a spectrogram has 0 frames, but must have 1 to 100",
        ),
    ] {
        let spectrogram = Tensor::zeros(shape, &device);
        assert_eq!(sentence(|| loaded.encode(spectrogram)), expected);
    }
    let other = (
        "decoder_attention_heads",
        json!(4),
        "3, as encoder_attention_heads",
    );
    model().assert_unsupported("Whisper", [other]);
}
