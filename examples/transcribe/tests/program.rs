//! The program on a small model, whose texts `tests/modules/models/whisper` compares with those of `transformers`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use burn_attn_models::speech::LogMel;
use hound::{SampleFormat, WavSpec, WavWriter};
use transcribe::recording::Recording;

/// The small model reads a second at once.
const RATE: usize = LogMel::SAMPLE_RATE;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models/whisper")
}

fn run(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_transcribe"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = program.stdin.take().expect("a pipe");
    // A program that refuses its arguments reads nothing.
    let _ = pipe.write_all(input);
    drop(pipe);
    program.wait_with_output().expect("it ends")
}

fn with_model(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let model = model();
    let model = ["--model", model.to_str().expect("a path")];
    run(folder, &[args, &model].concat(), input)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

#[track_caller]
fn printed(output: Output) -> String {
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{error}");
    out
}

#[track_caller]
fn refused(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(output.stdout), "");
    text(output.stderr)
}

fn spec(channels: u16, rate: usize, bits: u16) -> WavSpec {
    WavSpec {
        channels,
        sample_rate: rate as u32,
        bits_per_sample: bits,
        // Integers of 32 bits are written by changing this.
        sample_format: match bits {
            32 => SampleFormat::Float,
            _ => SampleFormat::Int,
        },
    }
}

/// A tone that rises, in a WAV file.
fn tone(seconds: f64, spec: WavSpec) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec).expect("written");
    let rate = f64::from(spec.sample_rate);
    for at in 0..(seconds * rate) as usize {
        let t = at as f64 / rate;
        let sample = 0.5 * (std::f64::consts::TAU * (100.0 + 20.0 * t) * t).sin();
        for channel in 0..spec.channels {
            // Their mean is the tone.
            let sample = if channel % 2 == 0 { 1.5 } else { 0.5 } * sample;
            let sample = if spec.channels == 1 {
                sample / 1.5
            } else {
                sample
            };
            let scale = 2.0_f64.powi(i32::from(spec.bits_per_sample) - 1);
            let written = match spec.sample_format {
                SampleFormat::Float => writer.write_sample(sample as f32),
                SampleFormat::Int => writer.write_sample((sample * scale) as i32),
            };
            written.expect("written");
        }
    }
    writer.finalize().expect("written");
    bytes.into_inner()
}

fn windows(wav: &[u8], window: usize) -> Vec<Vec<f32>> {
    let mut recording = Recording::new(wav, window).expect("a recording");
    let next = || recording.next_window().expect("a window");
    std::iter::from_fn(next).collect()
}

#[test]
fn all_kinds_of_files_have_the_same_sound() {
    let expected = windows(&tone(2.5, spec(1, RATE, 32)), RATE);
    let lengths: Vec<usize> = expected.iter().map(Vec::len).collect();
    assert_eq!(lengths, [RATE, RATE, RATE / 2]);
    for (spec, tolerance) in [
        (spec(1, RATE, 16), 1e-4),
        (spec(2, RATE, 24), 1e-6),
        // Resampling delays the sound by less than half a sample, in which this tone changes by up to 0.02.
        (spec(2, 44_100, 16), 0.02),
        (spec(1, 8_000, 32), 0.02),
    ] {
        let found = windows(&tone(2.5, spec), RATE);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        for (found, expected) in found.iter().zip(&expected) {
            let pairs = found.iter().zip(expected);
            let apart = pairs.map(|(found, expected)| (found - expected).abs());
            // A resampled window begins and ends abruptly.
            let edge = if tolerance < 1e-3 { 0 } else { RATE / 50 };
            let inner = apart.skip(edge).take(expected.len() - 2 * edge);
            let apart = inner.fold(0.0, f32::max);
            assert!(apart < tolerance, "{spec:?}: {apart}");
        }
    }
}

/// Where the chunk with the samples begins.
fn data_chunk(wav: &[u8]) -> usize {
    let mut names = wav.windows(4);
    names.position(|name| name == b"data").expect("data")
}

/// `wav` with a chunk of metadata before the samples, and this length of the samples; a recorder that does not know it writes 0 for all that follows.
fn with_metadata(wav: &[u8], metadata: usize, length: u32) -> Vec<u8> {
    let data = data_chunk(wav);
    let mut bytes = wav[..data].to_vec();
    bytes.extend(b"LIST");
    bytes.extend((metadata as u32).to_le_bytes());
    bytes.extend(vec![b'd'; metadata + metadata % 2]);
    bytes.extend(b"data");
    bytes.extend(length.to_le_bytes());
    let riff = if length == 0 {
        bytes.len() as u32 - 8
    } else {
        length
    };
    bytes[4..8].copy_from_slice(&riff.to_le_bytes());
    bytes.extend(&wav[data + 8..]);
    bytes
}

#[test]
fn headers_of_recorders_are_read() {
    let wav = tone(1.7, spec(2, RATE, 24));
    let expected = windows(&wav, RATE);
    // Lengths that are not known yet, with chunks before the samples that end at odd places or are long.
    for (metadata, length) in [
        (7, 0),
        (9_001, u32::MAX),
        (26, 0x7fff_f000),
        (1, 0x7fff_ff00),
    ] {
        let found = windows(&with_metadata(&wav, metadata, length), RATE);
        assert!(found == expected, "{metadata} bytes, length {length}");
    }
    // No samples, and the file says that another chunk follows.
    let mut empty = with_metadata(&tone(0.0, spec(1, RATE, 16)), 7, 0);
    empty.extend(b"LIST\x04\0\0\0abcd");
    let riff = empty.len() as u32 - 8;
    empty[4..8].copy_from_slice(&riff.to_le_bytes());
    assert!(windows(&empty, RATE).is_empty());

    let mut eight = spec(8, RATE, 32);
    let floats = windows(&with_metadata(&tone(0.5, eight), 3, u32::MAX), RATE);
    eight.sample_format = SampleFormat::Int;
    let integers = windows(&tone(0.5, eight), RATE);
    let apart = floats[0].iter().zip(&integers[0]);
    assert!(apart.into_iter().all(|(a, b)| (a - b).abs() < 1e-6));
    assert_eq!(floats[0].len(), RATE / 2);
}

#[test]
fn a_rest_of_less_than_a_frame_is_left_out() {
    let wav = |samples: usize| tone((samples as f64 + 0.5) / RATE as f64, spec(1, RATE, 16));
    let lengths = |samples: usize| -> Vec<usize> {
        windows(&wav(samples), RATE).iter().map(Vec::len).collect()
    };
    assert_eq!(lengths(RATE), [RATE]);
    assert_eq!(lengths(RATE + 1), [RATE]);
    assert_eq!(lengths(RATE + 320), [RATE, 320]);
    assert_eq!(lengths(1), [1]);
}

#[test]
fn recordings_that_are_none_are_refused() {
    let refused = |bytes: &[u8]| {
        let recording = Recording::new(bytes, RATE);
        recording.err().map(|error| error.to_string())
    };
    let slow = tone(0.1, spec(1, 999, 16));
    assert_eq!(
        refused(&slow).as_deref(),
        Some("it has 999 samples a second, but 1000 to 768000 can be read")
    );
    let mut alaw = tone(0.1, spec(1, RATE, 16));
    alaw[20] = 6;
    let error = refused(&alaw).expect("it is refused");
    assert!(
        error.starts_with("it cannot be read as a WAV file: "),
        "{error}"
    );
    let mut nan = tone(0.1, spec(1, RATE, 32));
    let data = data_chunk(&nan);
    nan[data + 8 + 4 * 5..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = Recording::new(nan.as_slice(), RATE)
        .expect("a header")
        .next_window();
    assert_eq!(
        error.expect_err("it is refused").to_string(),
        "frame 5 is NaN"
    );
}

#[test]
fn a_file_and_a_pipe_give_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let wav = tone(1.7, spec(1, RATE, 16));
    fs::write(folder.path().join("tone.wav"), &wav).expect("written");
    let lines = printed(with_model(folder.path(), &["tone.wav"], &[]));
    assert_eq!(lines.lines().count(), 2);
    let timed = with_model(folder.path(), &["--time"], &wav);
    let report = text(timed.stderr.clone());
    assert!(report.ends_with(" s for 1.7 s of recording\n"), "{report}");
    assert_eq!(printed(timed), lines);

    // Lengths that recorders and ffmpeg write into pipes, where the length is not known yet.
    let data = data_chunk(&wav);
    for length in [0x7fff_f000_u32, u32::MAX] {
        let mut endless = wav.clone();
        endless[data + 4..data + 8].copy_from_slice(&length.to_le_bytes());
        let output = with_model(folder.path(), &[], &endless);
        assert_eq!(text(output.stderr.clone()), "");
        assert_eq!(printed(output), lines);
    }
    let cut = with_model(folder.path(), &[], &wav[..wav.len() - 10_000]);
    assert_eq!(
        text(cut.stderr.clone()),
        "standard input is shorter than its header says\n"
    );
    assert_eq!(printed(cut).lines().next(), lines.lines().next());
}

#[test]
fn words_have_times_and_the_page_has_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let wav = tone(1.7, spec(1, RATE, 16));
    let args = ["--words", "--html", "page.html", "--language", "es"];
    let words = printed(with_model(folder.path(), &args, &wav));
    let words: Vec<(f64, &str)> = words
        .lines()
        .map(|line| {
            let (time, word) = line.split_once('\t').expect("a time and a word");
            (time.parse().expect("a time"), word)
        })
        .collect();
    assert!(words.is_sorted_by_key(|(time, _)| *time), "{words:?}");
    assert!(words.iter().any(|(time, _)| *time >= 1.0) && words[0].0 < 1.0);
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("from 0 s") && page.contains("from 1 s"));
    assert!(page.contains(words[0].1));
    let args = [
        "--svg",
        "map.svg",
        "--text",
        "--draw",
        "1:1",
        "--language",
        "es",
    ];
    let text = printed(with_model(folder.path(), &args, &wav));
    assert!(
        text.contains("Cross-attention, from 0 s, head 1 of "),
        "{text}"
    );
    let map = fs::read_to_string(folder.path().join("map.svg")).expect("a picture");
    assert!(map.contains(words[0].1));
}

#[test]
fn mistakes_have_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    assert_eq!(
        refused(run(here, &[], &[])),
        "error: target/weights/whisper is not there: in the folder of the repository, `cargo xtask fetch whisper` fetches it; or name another \
         model with --model\n"
    );
    assert_eq!(
        refused(with_model(here, &[], b"RIFF")),
        "error: standard input: it ends before its samples\n"
    );
    fs::write(here.join("text.wav"), "This is a text, and no recording.").expect("written");
    assert_eq!(
        refused(with_model(here, &["text.wav"], &[])),
        "error: text.wav: it is not a WAV file\n"
    );
    assert_eq!(
        refused(with_model(here, &["text.wav", "--svg", "./text.wav"], &[])),
        "error: --svg would overwrite ./text.wav\n"
    );
    let silent = tone(0.0, spec(1, RATE, 16));
    assert_eq!(
        refused(with_model(here, &[], &silent)),
        "error: standard input: there are no samples\n"
    );
    let error = refused(with_model(here, &["missing.wav"], &[]));
    assert!(
        error.starts_with("error: cannot read missing.wav: "),
        "{error}"
    );
    assert_eq!(
        refused(with_model(here, &["--language", "fr"], &[])),
        "error: the model does not know the language \"fr\"; it knows en, es\n"
    );
}
