//! A BERT with a linear layer on top, in the files of `transformers`.

use std::{fmt::Display, fs, ops::Range, path::Path};

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig},
    tensor::{Device, Int, Tensor},
};
use burn_attn_models::{
    bert::{Bert, BertConfig, BertInput},
    pretrained,
    text::labels,
    tokens::padded,
    weights::{Table, Weights, save},
};
use burn_attn_viz::AttentionMap;
use example_common::{
    files::{self, FileError},
    lock::{self, Lock},
    pictures::maps,
};
use serde_json::{Value, json};
use tokenizers::Encoding;

use crate::{Error, tokens::Tokenizer};

/// The files of a model.
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";

/// What a head is for.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The class of `transformers`, without the name of the encoder.
    pub class: &'static str,
    /// What the head is called in its files.
    pub head: &'static str,
    /// How many numbers it has for a text or a token.
    pub outputs: usize,
    /// Whether it needs the encoder's pooler, which makes one vector of a text.
    pub pooled: bool,
    /// The program that trains such a model.
    pub program: &'static str,
}

/// An encoder and its head.
#[derive(Module, Debug)]
pub struct Encoder {
    /// The encoder.
    pub bert: Bert,
    /// `[d_model, outputs]`
    pub head: Linear,
    /// Drops numbers of the vector that the head of a pooled task reads.
    pub dropout: Dropout,
}

impl Encoder {
    /// The encoder of a folder, or of a name on the Hub, with a head that is initialised as in `transformers`, and its tokenizer.
    ///
    /// # Errors
    /// If it is not a BERT or ALBERT with its tokenizer, or has no pooler where the task needs it.
    pub fn with_new_head(
        source: &Path,
        task: Task,
        device: &Device,
    ) -> Result<(Self, Tokenizer), Error> {
        let mut bert = Bert::from_pretrained(source, device)?;
        if !task.pooled {
            bert.pooler = None;
        } else if bert.pooler.is_none() {
            let problem = "this encoder has no pooler, which makes one vector of a text";
            return Err(unfit(source, problem));
        }
        let [vocab_size, d_embedding] = bert.tokens.weight.dims();
        let projected = bert.projection.as_ref().map(|layer| layer.weight.dims());
        let d_model = projected.map_or(d_embedding, |[_, d_model]| d_model);
        let config = configuration(source)?;
        let number = |field: &str, missing, range| {
            let found = number(&config, field, missing, range);
            found.map_err(|problem| unfit(source, problem))
        };
        let std = number("initializer_range", 0.02, 0.0..f64::INFINITY)?;
        let mut head = LinearConfig::new(d_model, task.outputs)
            .with_initializer(Initializer::Normal { mean: 0.0, std })
            .init(device);
        head.bias = Some(Initializer::Zeros.init([task.outputs], device));
        let dropout = match (task.pooled, &bert.projection) {
            (false, _) => 0.0,
            (true, Some(_)) => number("classifier_dropout_prob", 0.1, 0.0..1.0)?,
            (true, None) => {
                let hidden = number("hidden_dropout_prob", 0.1, 0.0..1.0)?;
                number("classifier_dropout", hidden, 0.0..1.0)?
            }
        };
        let tokenizer = Tokenizer::of(source, vocab_size, bert.max_len())?;
        let model = Self {
            bert,
            head,
            dropout: DropoutConfig::new(dropout).init(),
        };
        Ok((model, tokenizer))
    }

    /// A model that was fine-tuned for the task, and its tokenizer.
    ///
    /// # Errors
    /// If there is none.
    pub fn load(folder: &Path, task: Task, device: &Device) -> Result<(Self, Tokenizer), Error> {
        if !folder.join(CONFIG).exists() {
            let (path, program) = (folder.display(), task.program);
            return Err(format!(
                "there is no model in {path}: `{program} train` makes one; --model names another folder"
            )
            .into());
        }
        let (mut model, tokenizer) = Self::with_new_head(folder, task, device)?;
        let table = model.table(task);
        let weights = Weights::open(folder).map_err(|error| unfit(folder, error))?;
        let weights = match task.pooled {
            true => weights,
            // Older versions of transformers wrote the pooler all the same.
            false => weights.ignore("*.pooler.*"),
        };
        let loaded = weights.load(&table, &mut model);
        loaded.map_err(|error| unfit(folder, error))?;
        Ok((model, tokenizer))
    }

    /// Saves the model in a folder that has none, with the configuration and the tokenizer of the model that it was made from.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, source: &Path, task: Task, folder: &Path) -> Result<(), Error> {
        let mut config = configuration(source)?;
        if let Some(config) = config.as_object_mut() {
            let encoder = match self.bert.projection {
                Some(_) => "Albert",
                None => "Bert",
            };
            let architecture = format!("{encoder}For{}", task.class);
            config.insert("architectures".into(), json!([architecture]));
            let label = |label: usize| (label.to_string(), json!(format!("LABEL_{label}")));
            let labels: serde_json::Map<_, _> = (0..task.outputs).map(label).collect();
            config.insert("id2label".into(), labels.into());
        }
        let tokenizer = pretrained::folder(source)?.join(TOKENIZER);
        let bytes = fs::read(&tokenizer).map_err(FileError::of("read", &tokenizer))?;
        let weights = folder.join(WEIGHTS);
        save(&self.table(task), self, &weights).map_err(|error| unfit(folder, error))?;
        let text = format!("{config:#}\n");
        // The configuration last: a folder with one is a whole model.
        for (name, bytes) in [(TOKENIZER, bytes), (CONFIG, text.into_bytes())] {
            files::replace(&folder.join(name), &bytes)?;
        }
        Ok(())
    }

    fn table(&self, task: Task) -> Table {
        let (encoder, name) = match self.bert.projection {
            Some(_) => (BertConfig::albert_table(), "albert"),
            None => (BertConfig::table(), "bert"),
        };
        Table::new()
            .part("bert", name, encoder)
            .linear("head", task.head)
    }
}

/// What `transformers` says of a model.
fn configuration(source: &Path) -> Result<Value, Error> {
    let path = pretrained::folder(source)?.join(CONFIG);
    let text = fs::read_to_string(&path).map_err(FileError::of("read", &path))?;
    serde_json::from_str(&text).map_err(|error| unfit(&path, error))
}

/// A number in a range of a configuration, which may lack it.
fn number(config: &Value, field: &str, missing: f64, range: Range<f64>) -> Result<f64, String> {
    let value = match config.get(field) {
        None | Some(Value::Null) => return Ok(missing),
        Some(value) => value,
    };
    let number = value.as_f64().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let Range { start, end } = range;
        let range = match end.is_finite() {
            true => format!("from {start} to below {end}"),
            false => format!("from {start} on"),
        };
        format!("{field} must be a number {range}, got {value}")
    })
}

/// Makes sure, before a training, that its model can be saved in a folder: one that is not there, or one without a model. Keeps other
/// trainings out of the folder until the lock is dropped.
///
/// # Errors
/// If it cannot be saved there, or if the source has no configuration.
pub fn prepare(source: &Path, folder: &Path) -> Result<Lock, Error> {
    configuration(source)?;
    refuse_model(folder)?;
    let lock = lock::lock(folder)?;
    // Until it was locked, another training may have ended.
    refuse_model(folder)?;
    files::probe(&folder.join(WEIGHTS))?;
    Ok(lock)
}

/// Makes sure that a new model replaces no other.
fn refuse_model(folder: &Path) -> Result<(), Error> {
    let files = [CONFIG, WEIGHTS, TOKENIZER].map(|name| folder.join(name));
    match files.iter().find(|file| file.exists()) {
        Some(file) => {
            Err(format!("{} is there already: choose another --out", file.display()).into())
        }
        None => Ok(()),
    }
}

/// The attention of every layer and head of an encoder while it reads a text.
///
/// # Errors
/// If a weight is not a number.
pub fn attention(
    bert: &Bert,
    tokenizer: &pretrained::Tokenizer,
    text: &Encoding,
) -> Result<Vec<AttentionMap>, Error> {
    let device = bert.tokens.weight.device();
    let output = bert.forward_with_weights(input(&[text], &device));
    let labels = labels(tokenizer, text.get_ids());
    maps(output.self_weights, &labels, &labels)
}

/// What an encoder reads of texts.
pub fn input(texts: &[&Encoding], device: &Device) -> BertInput {
    let tokens: Vec<&[u32]> = texts.iter().map(|text| text.get_ids()).collect();
    let segments: Vec<&[u32]> = texts.iter().map(|text| text.get_type_ids()).collect();
    let lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
    let (tokens, _) = padded(&tokens, device);
    let (segments, _): (Tensor<2, Int>, _) = padded(&segments, device);
    BertInput::new(tokens).segments(segments).lengths(&lengths)
}

/// An error about a folder or a file of a model.
fn unfit(path: &Path, problem: impl Display) -> Error {
    format!("{}: {problem}", path.display()).into()
}
