//! Folders of models with bytes that were changed: whoever reads them says what is wrong, does not panic, and takes no memory for what is not there.

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::Path,
    time::Instant,
};

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use burn_attn_models::{
    bert::Bert,
    clip, gpt_neox, gpt2, llama,
    speech::{AudioProcessor, SpeechRecognizer},
    t5,
    vision::{ImageClassifier, ImageProcessor, ImageSegmenter, ObjectDetector},
    wav2vec2,
    weights::{Table, Weights},
};
use burn_attn_tests::{
    devices, golden,
    numbers::{STEP, alone, mixed},
};
use tempfile::TempDir;

use crate::peak;

/// Changed files of each kind.
const CASES: u64 = 1000;
/// How many of the many files of models that see and hear are changed.
const FEWER_CASES: u64 = 100;
/// The most that reading one may take: the models and their files have some ten thousand bytes.
const MOST: usize = 16 << 20;

/// What stands in the place of another number.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "7",
    "-1",
    "0.5",
    "1e30",
    "65536",
    "16777217",
    "2147483648",
    "4294967297",
    "18446744073709551615",
    "99999999999999999999999",
];

/// The same numbers in every run.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A place in a file: as often in its first bytes, which say what the others are, as anywhere.
    fn place(&mut self, bytes: &[u8]) -> usize {
        let first = bytes.len().min(2048);
        match self.below(2) {
            0 => self.below(first),
            _ => self.below(bytes.len()),
        }
    }

    /// The file with one to three changes.
    fn changed(&mut self, original: &[u8]) -> Vec<u8> {
        let mut bytes = original.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.place(&bytes);
            let until = (at + self.below(40)).min(bytes.len());
            match self.below(9) {
                0 => bytes.truncate(at),
                1 => bytes.extend(vec![self.next() as u8; self.below(1 << 16)]),
                2 => drop(bytes.drain(at..until)),
                3 => {
                    let piece = bytes[at..until].to_vec();
                    let to = self.place(&bytes);
                    drop(bytes.splice(to..to, piece));
                }
                4 => {
                    let number = [u64::MAX, 1 << 62, 1 << 32, 0][self.below(4)].to_le_bytes();
                    drop(bytes.splice(at..(at + 8).min(bytes.len()), number));
                }
                5 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                6 if at < bytes.len() => bytes[at] = self.next() as u8,
                _ => {
                    let is_digit = |&at: &usize| bytes[at].is_ascii_digit();
                    let Some(start) = (at..bytes.len()).find(is_digit) else {
                        continue;
                    };
                    let digits = (start..bytes.len()).take_while(is_digit).count();
                    let number = NUMBERS[self.below(NUMBERS.len())].bytes();
                    drop(bytes.splice(start..start + digits, number));
                }
            }
        }
        bytes
    }
}

fn copied(from: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
    }
    copy
}

/// Changes a file of a folder again and again, and reads what came of it.
fn survives(folder: &Path, file: &str, read: impl Fn(&Path) -> Result<(), String>) {
    survives_each(CASES, folder, file, read);
}

fn survives_each(
    cases: u64,
    folder: &Path,
    file: &str,
    read: impl Fn(&Path) -> Result<(), String>,
) {
    let _alone = alone();
    let started = Instant::now();
    let copy = copied(folder);
    let original = fs::read(folder.join(file)).expect("read");
    assert_eq!(read(copy.path()), Ok(()), "as it was");
    let (mut refused, mut most) = (0, 0);
    for seed in 0..cases {
        let bytes = SplitMix(seed).changed(&original);
        fs::write(copy.path().join(file), &bytes).expect("written");
        let mut result = Ok(Ok(()));
        let used = peak(|| {
            result = panic::catch_unwind(AssertUnwindSafe(|| read(copy.path())));
        });
        let result =
            result.unwrap_or_else(|_| panic!("{file} with the changes of {seed} makes a panic"));
        assert!(
            used <= MOST,
            "{file} with the changes of {seed} takes {used} bytes: {result:?}"
        );
        most = most.max(used);
        if let Err(sentence) = result {
            assert!(
                !sentence.trim().is_empty() && !sentence.contains('\n'),
                "{seed}: {sentence:?}"
            );
            refused += 1;
        }
    }
    let time = started.elapsed();
    println!("{file}: {refused} of {cases} refused, at most {most} bytes, {time:.1?}");
    // The others are changes of numbers, of names that nobody reads, or none.
    assert!(refused > cases / 4, "{refused} refused");
}

/// What came of reading, with the sentence of an error.
fn said<T>(result: Result<T, impl ToString>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn bert(folder: &Path) -> Result<(), String> {
    said(Bert::from_pretrained(folder, &devices::any()))
}

#[test]
fn a_configuration() {
    survives(&golden::path("models/bert"), "config.json", bert);
}

#[test]
fn configurations_with_tables_of_positions() {
    for family in ["llama", "gemma3", "gpt_neox", "gpt_oss", "qwen3_moe"] {
        let folder = golden::path("models").join(family);
        survives(&folder, "config.json", |folder| {
            let device = devices::any();
            said(match family {
                "gpt_neox" => gpt_neox::from_pretrained(folder, &device),
                _ => llama::from_pretrained(folder, &device),
            })
        });
    }
}

#[test]
fn a_configuration_of_t5() {
    survives(&golden::path("models/t5"), "config.json", |folder| {
        said(t5::from_pretrained(folder, &devices::any()))
    });
}

#[test]
fn files_of_whisper() {
    let folder = copied(&golden::path("models/whisper"));
    let settings = r#"{"chunk_length": 1, "dither": 0.0, "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 8,
        "hop_length": 160, "n_fft": 400, "padding_value": 0.0, "sampling_rate": 16000}"#;
    let preprocessor = "preprocessor_config.json";
    fs::write(folder.path().join(preprocessor), settings).expect("written");
    for (file, cases) in [
        ("config.json", CASES),
        ("generation_config.json", CASES),
        (preprocessor, FEWER_CASES),
        ("model.safetensors", FEWER_CASES),
    ] {
        survives_each(cases, folder.path(), file, |folder| {
            said(SpeechRecognizer::from_pretrained(folder, &devices::any()))
        });
    }
}

/// Each of the files of a model that sees or hears.
fn survives_with_processor(
    family: &str,
    processor: &str,
    read: impl Fn(&Path) -> Result<(), String>,
) {
    let folder = copied(&golden::path("models").join(family));
    let preprocessor = "preprocessor_config.json";
    let settings = golden::path("models").join(processor).join(preprocessor);
    fs::copy(settings, folder.path().join(preprocessor)).expect("copied");
    for file in ["config.json", preprocessor, "model.safetensors"] {
        survives_each(FEWER_CASES, folder.path(), file, &read);
    }
}

#[test]
fn files_of_classifiers() {
    survives_with_processor("vit", "image_processors/vit", |folder| {
        said(ImageClassifier::from_pretrained(folder, &devices::any()))
    });
}

#[test]
fn files_of_detectors() {
    survives_with_processor("detr", "image_processors/detr", |folder| {
        said(ObjectDetector::from_pretrained(folder, &devices::any()))
    });
}

#[test]
fn files_of_segmenters() {
    survives_with_processor("segformer", "image_processors/enlarged", |folder| {
        said(ImageSegmenter::from_pretrained(folder, &devices::any()))
    });
}

#[test]
fn files_of_clip() {
    survives_with_processor("clip", "image_processors/larger_crop", |folder| {
        said(clip::from_pretrained(folder, &devices::any()))?;
        said(ImageProcessor::from_pretrained(folder))
    });
}

#[test]
fn files_of_wav2vec2() {
    survives_with_processor("wav2vec2", "wav2vec2", |folder| {
        said(wav2vec2::from_pretrained(folder, &devices::any()))?;
        said(AudioProcessor::from_pretrained(folder))
    });
}

#[test]
fn safetensors() {
    survives(&golden::path("models/bert"), "model.safetensors", bert);
}

#[test]
fn what_pytorch_wrote() {
    let folder = copied(&golden::path("models/gpt2"));
    fs::remove_file(folder.path().join("model.safetensors")).expect("removed");
    fs::copy(
        golden::path("weights/gpt2.bin"),
        folder.path().join("pytorch_model.bin"),
    )
    .expect("copied");
    let config = fs::read_to_string(folder.path().join("config.json")).expect("read");
    let config = config.replace("\"n_positions\": 19", "\"n_positions\": 7");
    let config = config.replace("\"vocab_size\": 23", "\"vocab_size\": 11");
    fs::write(folder.path().join("config.json"), config).expect("written");
    survives(folder.path(), "pytorch_model.bin", |folder| {
        said(gpt2::from_pretrained(folder, &devices::any()))
    });
}

#[derive(Module, Debug)]
struct Matrices {
    matrices: Vec<Param<Tensor<2>>>,
}

#[test]
fn what_ggml_wrote() {
    const FILE: &str = "quantised.gguf";
    let folder = tempfile::tempdir().expect("a folder");
    let original = golden::path("weights").join(FILE);
    fs::copy(original, folder.path().join(FILE)).expect("copied");
    let names = ["f16", "q8_0", "q4_0", "expected.q8_0", "expected.q4_0"];
    let rows = names.iter().enumerate();
    let table = rows.fold(Table::new(), |table, (at, &name)| {
        table.row(format!("matrices.{at}"), name)
    });
    survives(folder.path(), FILE, |folder| {
        let zeros = |_| Param::from_tensor(Tensor::<2>::zeros([3, 64], &devices::any()));
        let mut model = Matrices {
            matrices: names.iter().map(zeros).collect(),
        };
        let weights = Weights::open(folder.join(FILE));
        said(weights.and_then(|weights| weights.load(&table, &mut model)))
    });
}

#[test]
fn an_index() {
    survives(
        &golden::path("weights/llama"),
        "model.safetensors.index.json",
        |folder| said(Weights::open(folder)),
    );
}
