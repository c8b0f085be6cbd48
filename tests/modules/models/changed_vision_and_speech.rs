//! Changed `config.json` and `preprocessor_config.json` files of models that see and hear. Each gives the numbers that `transformers` 5 gives, or one
//! sentence names a field.

use std::{fs, ops::Not};

use burn::tensor::TensorData;
use burn_attn_models::speech::{AudioProcessor, LogMel, SpeechRecognizer};
use burn_attn_models::vision::ImageProcessor;
use burn_attn_tests::{
    compare::{difference, difference_to_largest},
    devices,
    golden::GoldenFile,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    TOLERANCE, clip, detr, folder,
    language_models::{Logits, Model, named},
    read_json,
    refused::copied,
    segformer, vision, vit, wav2vec2, whisper,
};

const NUMBERS: usize = 4;
/// Stands for a field that is taken away.
const GONE: &str = "(gone)";

type Fields = Map<String, Value>;

/// What `make_changed_vision_and_speech.py` writes.
#[derive(Deserialize)]
struct Tables {
    models: Map<String, Value>,
    processors: Map<String, Value>,
}

#[derive(Deserialize)]
struct Table {
    /// The settings of a processor that are changed.
    #[serde(default)]
    file: Fields,
    before: Vec<f64>,
    rows: Vec<Row>,
    /// Those that are refused here alone.
    #[serde(default)]
    not_here: Vec<Row>,
    /// Those that give what it was before, here alone.
    #[serde(default)]
    here: Vec<Row>,
}

/// What was set, and what came of it.
#[derive(Deserialize)]
struct Row(Fields, Computed);

/// Some numbers, or why there are none, or that they are as before.
#[derive(Deserialize)]
#[serde(untagged)]
enum Computed {
    Numbers(Vec<f64>),
    Text(String),
}

impl Row {
    /// What `transformers` computes.
    fn numbers<'a>(&'a self, before: &'a [f64]) -> Option<&'a [f64]> {
        match &self.1 {
            Computed::Numbers(numbers) => Some(numbers),
            Computed::Text(text) if text == "as before" => Some(before),
            Computed::Text(_) => None,
        }
    }

    fn change(&self, config: &mut Fields) {
        for (path, value) in &self.0 {
            let mut fields = &mut *config;
            let mut path = path.as_str();
            while let Some((part, inner)) = path.split_once('.') {
                fields = fields[part].as_object_mut().expect("an object");
                path = inner;
            }
            match value == GONE {
                true => drop(fields.remove(path)),
                false => drop(fields.insert(path.into(), value.clone())),
            }
        }
    }

    fn names_a_field(&self, sentence: &str) -> bool {
        let inner = |name: &str| {
            name.rsplit('.')
                .next()
                .is_some_and(|name| sentence.contains(name))
        };
        // Or what is missing, or has another name in our configuration.
        self.0.keys().any(|name| inner(name))
            || sentence.contains(": the weights do not fit the model: ")
            || ["has no field ", " is missing, but ", "Config: "]
                .iter()
                .any(|part| sentence.contains(part))
    }

    /// What is wrong with it.
    fn wrong(&self, expected: Option<&[f64]>, given: Result<Given, String>) -> Option<String> {
        let wrong = match (expected, given) {
            (Some(expected), Ok(given)) => given.wrong(expected)?,
            (Some(_), Err(error)) => error,
            (None, Ok(given)) => format!("it is not refused, but gives {:?}", given.numbers),
            (None, Err(error)) => self.names_a_field(&error).not().then_some(error)?,
        };
        Some(format!("{}: {wrong}", Value::Object(self.0.clone())))
    }
}

/// Numbers, and how far they may be from others.
struct Given {
    numbers: Vec<f64>,
    /// Default: relative to the largest.
    step: Option<f64>,
}

impl Given {
    fn wrong(&self, expected: &[f64]) -> Option<String> {
        let numbers = &self.numbers;
        let is_close = numbers.len() == expected.len()
            && match self.step {
                Some(step) => difference(numbers, expected) < step,
                None => difference_to_largest(numbers, expected) < TOLERANCE,
            };
        is_close
            .not()
            .then(|| format!("{numbers:?} instead of {expected:?}"))
    }
}

/// Numbers from the first to the last of a tensor.
fn spread(data: &TensorData) -> impl Iterator<Item = f64> {
    let numbers: Vec<f64> = data.iter().collect();
    (0..NUMBERS).map(move |index| numbers[index * (numbers.len() - 1) / (NUMBERS - 1)])
}

/// The numbers of the first result of a changed model.
fn of_model<M: Logits>(model: Model<M>, row: &Row) -> Result<Given, String> {
    let changed = model.changed(|config| row.change(config))?;
    let results = model.logits_of(&changed);
    let mut shape = results.shape().to_vec();
    let first: Vec<f64> = results
        .iter()
        .take(results.num_elements() / shape[0])
        .collect();
    shape.remove(0);
    let numbers = spread(&TensorData::new(first, shape)).collect();
    Ok(Given {
        numbers,
        step: None,
    })
}

fn of_folder(name: &str, row: &Row) -> Result<Given, String> {
    match name {
        "vit" | "deit" | "dinov2" => of_model(named(vit::models(), name), row),
        "detr" => of_model(detr::model("detr"), row),
        "detr_basic" => of_model(detr::model("detr_basic"), row),
        "segformer" | "segformer_classifier" => of_model(named(segformer::models(), name), row),
        "clip" | "clip_gelu" | "siglip" => of_model(named(clip::models(), name), row),
        "wav2vec2" | "wav2vec2_large" => of_model(named(wav2vec2::models(), name), row),
        "whisper" => of_model(whisper::model(), row),
        _ => panic!("{name}"),
    }
}

fn of_processor(name: &str, settings: &Fields, row: &Row) -> Result<Given, String> {
    let copy = match name {
        "whisper" => whisper::speech::with_settings(|_| {}),
        _ => copied(name, |_| {}),
    };
    let path = copy.path().join("preprocessor_config.json");
    let mut settings = settings.clone();
    row.change(&mut settings);
    fs::write(&path, Value::Object(settings).to_string()).expect("written");
    let device = devices::any();
    let shown = |error: &dyn ToString| error.to_string().replace(&path.display().to_string(), "");
    let (data, step) = match name {
        "wav2vec2" => {
            let processor = AudioProcessor::from_pretrained(copy.path());
            let processor = processor.map_err(|error| shown(&error))?;
            if processor.sample_rate != 16_000 {
                // As `transformers`, which is told the rate of the recordings.
                return Err(format!("sampling_rate {}", processor.sample_rate));
            }
            let recordings = [0, 1].map(recording);
            let recordings = recordings.each_ref().map(Vec::as_slice);
            (
                processor
                    .forward(&recordings, 16_000, &device)
                    .map_err(|error| shown(&error))?
                    .samples
                    .into_data(),
                None,
            )
        }
        "whisper" => {
            let recognizer = SpeechRecognizer::from_pretrained(copy.path(), &device);
            let recognizer = recognizer.map_err(|error| shown(&error))?;
            let log_mel = LogMel::new(recognizer.model.n_mels());
            (
                log_mel.forward(&recording(0), 100, &device).into_data(),
                None,
            )
        }
        _ => {
            let processor = ImageProcessor::from_pretrained(copy.path());
            let processor = processor.map_err(|error| shown(&error))?;
            let least = processor.std.iter().copied().fold(f64::INFINITY, f64::min);
            let image = processor.forward(&vision::formula(), &device);
            let data = image.map_err(|error| shown(&error))?.into_data();
            // Each value was rounded to one of 255 after resizing, here and there.
            (data, Some(1.01 * processor.scale / least + 1e-6))
        }
    };
    let shape = data.shape().to_vec().into_iter().map(|size| size as f64);
    let numbers = shape.chain(spread(&data)).collect();
    Ok(Given { numbers, step })
}

/// One of those that the processors of `transformers` were given.
fn recording(row: usize) -> Vec<f32> {
    let values = GoldenFile::open("models/wav2vec2/extracted");
    let bytes = values.data(&format!("samples.{row}"));
    bytes.iter().map(|byte: f32| byte / 64.0 - 1.0).collect()
}

fn tables() -> Tables {
    let tables = read_json(&folder("changed_vision_and_speech.json"));
    serde_json::from_value(tables).expect("tables")
}

#[track_caller]
fn assert_rows(
    tables: Map<String, Value>,
    least: usize,
    given: impl Fn(&str, &Table, &Row) -> Result<Given, String>,
) {
    let (mut of, mut wrong) = (0, Vec::new());
    for (name, table) in tables {
        let table = Table::deserialize(table).expect("rows");
        let before = table.before.as_slice();
        let rows = table.rows.iter().map(|row| (row, row.numbers(before)));
        let not_here = table.not_here.iter().map(|row| (row, None));
        let here = table.here.iter().map(|row| (row, Some(before)));
        for (row, expected) in rows.chain(not_here).chain(here) {
            of += 1;
            let found = row.wrong(expected, given(&name, &table, row));
            wrong.extend(found.map(|found| format!("{name} {found}")));
        }
    }
    assert!(
        of >= least && wrong.is_empty(),
        "{} of {of}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn models_are_those_of_transformers_or_one_sentence() {
    assert_rows(tables().models, 450, |name, _, row| of_folder(name, row));
}

#[test]
fn processors_are_those_of_transformers_or_one_sentence() {
    assert_rows(tables().processors, 250, |name, table, row| {
        of_processor(name, &table.file, row)
    });
}
