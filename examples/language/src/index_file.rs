//! The file in which passages and their vectors are kept.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use burn_attn_models::sentences::{Prompt, SentenceEncoder};
use example_common::files::{self, FileError};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};

use crate::{Error, passages::Passage, sentences::vector};

/// Its tensors: a row for each passage, and the vector of [`PROBE`], by which the encoder is known again.
const VECTORS: &str = "vectors";
const PROBED: &str = "probe";
const PROBE: &str = "The same encoder gives the same vector.";
/// How much its numbers may differ, relative to the largest: from one device to another, not from one encoder to another.
const SAME: f32 = 1e-3;
/// The fields of the file's metadata: the passages, the folder that they are of, and how the encoder reads them.
const TEXTS: &str = "texts";
const FOLDER: &str = "folder";
const READ: &str = "read";

/// A text and its passages.
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
}

/// A text with the vectors of its passages.
#[derive(Clone, Debug)]
pub struct ReadText {
    /// The text.
    pub text: Text,
    /// A vector for each passage; empty if it is not read yet.
    pub vectors: Vec<Vec<f32>>,
}

impl ReadText {
    /// The vectors by what the passages say.
    pub fn by_passage(self) -> HashMap<String, Vec<f32>> {
        let passages = self.text.passages.into_iter().map(|passage| passage.text);
        passages.zip(self.vectors).collect()
    }

    /// What was read of it.
    fn read(&self) -> impl Iterator<Item = (&Passage, &Vec<f32>)> {
        let passages = self.text.passages.iter().zip(&self.vectors);
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
    pub fn open(&self) -> Result<HashMap<PathBuf, ReadText>, Error> {
        let refused = |problem: String| Error::Index {
            path: self.path.into(),
            problem,
        };
        if !self.path.exists() {
            return Ok(HashMap::new());
        }
        let bytes = fs::read(self.path).map_err(FileError::of("read", self.path))?;
        let (_, header) =
            SafeTensors::read_metadata(&bytes).map_err(|error| refused(error.to_string()))?;
        let field = |name: &str| header.metadata().as_ref()?.get(name);
        let texts = field(TEXTS).ok_or_else(|| refused("it has no passages".into()))?;
        let tensors =
            SafeTensors::deserialize(&bytes).map_err(|error| refused(error.to_string()))?;
        let numbers = |name: &str| match tensors.tensor(name) {
            Ok(tensor) if tensor.dtype() == Dtype::F32 => {
                let numbers = tensor.data().chunks_exact(4);
                let numbers =
                    numbers.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default()));
                Ok(numbers.collect::<Vec<f32>>())
            }
            _ => Err(refused(format!("it has no {name} in f32"))),
        };
        let (vectors, probed) = (numbers(VECTORS)?, numbers(PROBED)?);
        let largest = self
            .probe
            .iter()
            .fold(0.0, |most: f32, x| most.max(x.abs()));
        let mut pairs = probed.iter().zip(&self.probe);
        let is_same = probed.len() == self.probe.len()
            && pairs.all(|(a, b)| (a - b).abs() <= SAME * largest)
            && field(READ) == Some(&self.read)
            && field(FOLDER) == Some(&self.folder);
        if !is_same {
            return Ok(HashMap::new());
        }
        let texts: Vec<Text> =
            serde_json::from_str(texts).map_err(|error| refused(error.to_string()))?;
        let passages: usize = texts.iter().map(|text| text.passages.len()).sum();
        let width = self.probe.len();
        if vectors.len() != passages * width {
            let found = vectors.len();
            return Err(refused(format!(
                "it has {found} numbers for {passages} passages of {width}"
            )));
        }
        let mut vectors = vectors.chunks(width).map(<[f32]>::to_vec);
        let texts = texts.into_iter().map(|text| {
            let vectors = vectors.by_ref().take(text.passages.len()).collect();
            (text.path.clone(), ReadText { text, vectors })
        });
        Ok(texts.collect())
    }

    /// Writes what was read of texts. Whenever it is interrupted, the file is either the old or the new one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save<'t>(&self, texts: impl Iterator<Item = &'t ReadText>) -> Result<(), Error> {
        let refused =
            |problem: String| FileError::of("write", self.path)(io::Error::other(problem));
        let (mut saved, mut vectors) = (Vec::new(), Vec::new());
        for text in texts {
            let (passages, of_text): (Vec<_>, Vec<_>) = text.read().unzip();
            vectors.extend(of_text);
            saved.push(Text {
                is_whole: text.text.is_whole && passages.len() == text.text.passages.len(),
                passages: passages.into_iter().cloned().collect(),
                ..text.text.clone()
            });
        }
        let bytes = |rows: &[&Vec<f32>]| -> Vec<u8> {
            let numbers = rows.iter().flat_map(|row| row.iter());
            numbers.flat_map(|number| number.to_le_bytes()).collect()
        };
        let (rows, probed) = (bytes(&vectors), bytes(&[&self.probe]));
        let view = |rows: usize, bytes| {
            TensorView::new(Dtype::F32, vec![rows, self.probe.len()], bytes)
                .map_err(|error| refused(error.to_string()))
        };
        let tensors = [
            (VECTORS, view(vectors.len(), &rows)?),
            (PROBED, view(1, &probed)?),
        ];
        let texts = serde_json::to_string(&saved).map_err(|error| refused(error.to_string()))?;
        let metadata = HashMap::from([
            (TEXTS.to_string(), texts),
            (FOLDER.to_string(), self.folder.clone()),
            (READ.to_string(), self.read.clone()),
        ]);
        let bytes = safetensors::serialize(tensors, Some(metadata))
            .map_err(|error| refused(error.to_string()))?;
        Ok(files::replace(self.path, &bytes).map_err(FileError::of("write", self.path))?)
    }
}
