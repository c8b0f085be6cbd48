//! The file in which passages and their vectors are kept.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use burn_attn_models::sentences::{Prompt, SentenceEncoder};
use example_common::files::{self, FileError};
use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};

use crate::{Error, passages::Passage, sentences::vector};

/// Its tensors: a row for each passage, and the vector of [`PROBE`], which identifies the encoder.
const VECTORS: &str = "vectors";
const PROBED: &str = "probe";
const PROBE: &str = "The same encoder gives the same vector.";
/// How much its numbers may differ, relative to the largest: from one device to another, not from one encoder to another.
const SAME: f32 = 1e-3;
/// The fields of the file's metadata: the passages, the folder that they are of, and how the encoder reads them.
const TEXTS: &str = "texts";
const FOLDER: &str = "folder";
const READ: &str = "read";

/// A text, its passages and their vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// The file, below the folder.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written, in nanoseconds since 1970.
    pub written: u64,
    /// What was read of it.
    pub passages: Vec<Passage>,
    /// Whether that is all of it.
    pub is_whole: bool,
    /// A vector for each passage; empty if it is not read yet.
    #[serde(skip)]
    pub vectors: Vec<Vec<f32>>,
}

impl Text {
    /// The passages that have a vector.
    pub fn read(&self) -> impl Iterator<Item = (&Passage, &Vec<f32>)> {
        let passages = self.passages.iter().zip(&self.vectors);
        passages.filter(|(_, vector)| !vector.is_empty())
    }
}

/// The file of a folder and an encoder.
#[derive(Debug)]
pub struct IndexFile<'a> {
    path: &'a Path,
    /// The whole path of the folder.
    folder: String,
    /// How the encoder reads texts.
    read: String,
    /// The vector of [`PROBE`].
    probe: Vec<f32>,
}

impl<'a> IndexFile<'a> {
    /// The file at `path`, which may not be there yet.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn new(folder: &Path, path: &'a Path, encoder: &SentenceEncoder) -> Result<Self, Error> {
        let whole = fs::canonicalize(folder).unwrap_or(folder.into());
        let probe = encoder.tokens(PROBE, Prompt::Document)?;
        let (pooling, max_len) = (encoder.pooling(), encoder.max_len());
        let prompt = encoder.prompt(Prompt::Document);
        Ok(Self {
            path,
            folder: whole.to_string_lossy().into_owned(),
            read: format!("{pooling:?} of at most {max_len} tokens behind {prompt:?}"),
            probe: vector(encoder, probe.get_ids()),
        })
    }

    /// The texts by path; none if there is no file, or if another encoder made it, or of another folder.
    ///
    /// # Errors
    /// If the file is another one.
    pub fn open(&self) -> Result<HashMap<PathBuf, Text>, Error> {
        let refused = |problem: &str| -> Error {
            let path = self.path.display();
            format!(
                "{path} is not an index of this program: {problem}; remove it to make a new one"
            )
            .into()
        };
        if !self.path.exists() {
            return Ok(HashMap::new());
        }
        let bytes = fs::read(self.path).map_err(FileError::of("read", self.path))?;
        let unreadable = |error: SafeTensorError| refused(&error.to_string());
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(unreadable)?;
        let field = |name: &str| header.metadata().as_ref()?.get(name);
        let texts = field(TEXTS).ok_or_else(|| refused("it has no passages"))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(unreadable)?;
        let numbers = |name: &str| match tensors.tensor(name) {
            Ok(tensor) if tensor.dtype() == Dtype::F32 => {
                let (numbers, _) = tensor.data().as_chunks::<4>();
                Ok(numbers.iter().copied().map(f32::from_le_bytes).collect())
            }
            _ => Err(refused(&format!("it has no {name} in f32"))),
        };
        let (vectors, probed): (Vec<f32>, Vec<f32>) = (numbers(VECTORS)?, numbers(PROBED)?);
        let largest = (self.probe.iter()).fold(0.0, |most: f32, x| most.max(x.abs()));
        let mut pairs = probed.iter().zip(&self.probe);
        let is_same = probed.len() == self.probe.len()
            && pairs.all(|(a, b)| (a - b).abs() <= SAME * largest)
            && field(READ) == Some(&self.read)
            && field(FOLDER) == Some(&self.folder);
        if !is_same {
            return Ok(HashMap::new());
        }
        let mut texts: Vec<Text> =
            serde_json::from_str(texts).map_err(|error| refused(&error.to_string()))?;
        let passages: usize = texts.iter().map(|text| text.passages.len()).sum();
        let width = self.probe.len();
        if vectors.len() != passages * width {
            let found = vectors.len();
            let problem = format!("it has {found} numbers for {passages} passages of {width}");
            return Err(refused(&problem));
        }
        let mut vectors = vectors.chunks(width).map(<[f32]>::to_vec);
        for text in &mut texts {
            text.vectors = vectors.by_ref().take(text.passages.len()).collect();
        }
        let by_path = texts.into_iter().map(|text| (text.path.clone(), text));
        Ok(by_path.collect())
    }

    /// Writes what was read of texts. Whenever it is interrupted, the file is either the old or the new one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save<'t>(&self, texts: impl Iterator<Item = &'t Text>) -> Result<(), Error> {
        let (mut saved, mut vectors) = (Vec::new(), Vec::new());
        for text in texts {
            let (passages, of_text): (Vec<_>, Vec<_>) = text.read().unzip();
            vectors.extend(of_text);
            saved.push(Text {
                path: text.path.clone(),
                is_whole: text.is_whole && passages.len() == text.passages.len(),
                passages: passages.into_iter().cloned().collect(),
                vectors: Vec::new(),
                ..*text
            });
        }
        let bytes = |rows: &[&Vec<f32>]| -> Vec<u8> {
            let numbers = rows.iter().flat_map(|row| row.iter());
            numbers.flat_map(|number| number.to_le_bytes()).collect()
        };
        let (rows, probed) = (bytes(&vectors), bytes(&[&self.probe]));
        let view = |rows, bytes| TensorView::new(Dtype::F32, vec![rows, self.probe.len()], bytes);
        let tensors = [
            (VECTORS, view(vectors.len(), &rows)?),
            (PROBED, view(1, &probed)?),
        ];
        let fields = [
            (TEXTS, serde_json::to_string(&saved)?),
            (FOLDER, self.folder.clone()),
            (READ, self.read.clone()),
        ];
        let fields = fields.map(|(name, value)| (name.to_string(), value));
        let bytes = safetensors::serialize(tensors, Some(fields.into()))?;
        Ok(files::replace(self.path, &bytes)?)
    }
}
