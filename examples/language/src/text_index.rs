//! The passages of all texts of a folder and their vectors, kept in a file. Only what has changed is read again.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use example_common::{exit, files};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use crate::{
    Error,
    passages::{Passage, passages},
    sentences::{SentenceEncoder, cosine},
};

/// The name of the file, unless another one is asked for.
pub const FILE: &str = ".search-index.safetensors";
/// Its tensors: a row for each passage, and the vector of [`PROBE`], by which the encoder is known again.
const VECTORS: &str = "vectors";
const PROBED: &str = "probe";
const PROBE: &str = "The same encoder gives the same vector.";
/// How much its numbers may differ: from one device to another, not from one encoder to another.
const SAME: f32 = 1e-3;
/// The fields of the file's metadata: the passages, and the folder that they are of.
const TEXTS: &str = "texts";
const FOLDER: &str = "folder";

/// A text and its passages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Text {
    /// The file, below the folder.
    path: PathBuf,
    /// Its size in bytes.
    size: u64,
    /// When it was written, in nanoseconds since 1970.
    written: u64,
    passages: Vec<Passage>,
}

/// All texts of a folder.
#[derive(Debug)]
pub struct TextIndex {
    texts: Vec<Text>,
    /// Of all passages, one after the other.
    vectors: Vec<Vec<f32>>,
    /// Texts that are there, but were not asked for this time.
    others: Vec<(Text, Vec<Vec<f32>>)>,
}

/// Texts by path, with their vectors.
type Known = HashMap<PathBuf, (Text, Vec<Vec<f32>>)>;

/// A passage that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit<'a> {
    /// How near it is in meaning: a cosine.
    pub cosine: f32,
    /// The file, below the folder.
    pub path: &'a Path,
    /// What it says, and where.
    pub passage: &'a Passage,
}

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Texts whose vectors were in the file.
    pub kept: usize,
    /// Texts that were read.
    pub read: usize,
    /// Files that are not in UTF-8, or whose names are not.
    pub skipped: usize,
}

impl TextIndex {
    /// The index of the files below `folder` with one of these extensions, hidden ones left out. Reads what has changed since `file` was
    /// written, and writes it. `progress` hears how many passages are read, of how many.
    ///
    /// # Errors
    /// If the folder or a file cannot be read, or the index not be used. That it cannot be written is only a warning.
    pub fn update(
        folder: &Path,
        extensions: &[String],
        file: &Path,
        encoder: &SentenceEncoder,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<(Self, Update), Error> {
        let mut probe = encoder.unlimited_tokens(PROBE)?.get_ids().to_vec();
        probe.truncate(encoder.max_len());
        let probe = encoder.vectors(&[probe], |_| {}).remove(0);
        let mut known = match file.exists() {
            true => Self::open(folder, file, &probe)?,
            false => HashMap::new(),
        };
        let mut done = Update::default();
        let (mut texts, mut vectors) = (Vec::new(), Vec::new());
        // Of the texts that have to be read: the place of the first vector, and the tokens.
        let mut unread: Vec<(usize, Vec<u32>)> = Vec::new();
        let (paths, unnamed) = found(folder, extensions)?;
        done.skipped += unnamed;
        for path in paths {
            let whole = folder.join(&path);
            let failed = |error| Error::file("read", &whole)(error);
            let metadata = fs::metadata(&whole).map_err(failed)?;
            let written = metadata.modified().unwrap_or(UNIX_EPOCH);
            let stamp = (metadata.len(), nanoseconds(written));
            if let Some((text, found)) = known.remove(&path)
                && (text.size, text.written) == stamp
            {
                done.kept += 1;
                vectors.extend(found);
                texts.push(text);
                continue;
            }
            let Ok(content) = String::from_utf8(fs::read(&whole).map_err(failed)?) else {
                done.skipped += 1;
                continue;
            };
            done.read += 1;
            let (passages, tokens): (Vec<_>, Vec<_>) =
                passages(&content, encoder)?.into_iter().unzip();
            unread.extend((vectors.len()..).zip(tokens));
            vectors.extend(passages.iter().map(|_| Vec::new()));
            let (size, written) = stamp;
            texts.push(Text {
                path,
                size,
                written,
                passages,
            });
        }
        let (places, rows): (Vec<usize>, Vec<Vec<u32>>) = unread.into_iter().unzip();
        let (mut over, all) = (0, rows.len());
        let new = encoder.vectors(&rows, |more| {
            over += more;
            progress(over, all);
        });
        for (place, vector) in places.into_iter().zip(new) {
            vectors[place] = vector;
        }
        // Of what is left, files are gone, or have other extensions.
        let left = known.len();
        let others = known.into_values();
        let others: Vec<_> = others
            .filter(|(text, _)| folder.join(&text.path).exists())
            .collect();
        let has_changed = done.read > 0 || others.len() < left || !file.exists();
        let index = Self {
            texts,
            vectors,
            others,
        };
        // A search need not fail because the next one will take longer.
        if has_changed && let Err(error) = index.save(folder, file, &probe) {
            exit::warn(&format!("the passages are not kept: {error}"));
        }
        Ok((index, done))
    }

    /// Number of passages.
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// The `most` passages that are nearest to a vector, the nearest first.
    ///
    /// # Cost
    /// `passages · d_model`
    pub fn nearest(&self, query: &[f32], most: usize) -> Vec<Hit<'_>> {
        let passages = self.texts.iter().flat_map(|text| {
            let path = text.path.as_path();
            text.passages.iter().map(move |passage| (path, passage))
        });
        let hits = passages.zip(&self.vectors);
        let mut hits: Vec<Hit> = hits
            .map(|((path, passage), vector)| Hit {
                cosine: cosine(query, vector),
                path,
                passage,
            })
            .collect();
        hits.sort_by(|a, b| b.cosine.total_cmp(&a.cosine));
        hits.truncate(most);
        hits
    }

    /// The texts of a file by path, with their vectors; none if another encoder made them, or of another folder.
    fn open(folder: &Path, file: &Path, probe: &[f32]) -> Result<Known, Error> {
        let refused = |problem: String| Error::Index {
            path: file.into(),
            problem,
        };
        let bytes = fs::read(file).map_err(Error::file("read", file))?;
        let (_, header) =
            SafeTensors::read_metadata(&bytes).map_err(|error| refused(error.to_string()))?;
        let texts = header
            .metadata()
            .as_ref()
            .and_then(|fields| fields.get(TEXTS));
        let texts = texts.ok_or_else(|| refused("it has no passages".into()))?;
        let texts: Vec<Text> =
            serde_json::from_str(texts).map_err(|error| refused(error.to_string()))?;
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
        let is_same = probed.len() == probe.len()
            && probed.iter().zip(probe).all(|(a, b)| (a - b).abs() < SAME);
        let of = header
            .metadata()
            .as_ref()
            .and_then(|fields| fields.get(FOLDER));
        if !is_same || of != Some(&whole(folder)) {
            return Ok(HashMap::new());
        }
        let passages: usize = texts.iter().map(|text| text.passages.len()).sum();
        if vectors.len() != passages * probe.len() {
            let (found, width) = (vectors.len(), probe.len());
            return Err(refused(format!(
                "it has {found} numbers for {passages} passages of {width}"
            )));
        }
        let mut vectors = vectors.chunks(probe.len()).map(<[f32]>::to_vec);
        let texts = texts.into_iter().map(|text| {
            let of_text = vectors.by_ref().take(text.passages.len()).collect();
            (text.path.clone(), (text, of_text))
        });
        Ok(texts.collect())
    }

    fn save(&self, folder: &Path, file: &Path, probe: &[f32]) -> Result<(), Error> {
        let refused = |problem: String| Error::file("write", file)(io::Error::other(problem));
        let bytes = |numbers: &[f32]| -> Vec<u8> {
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        };
        let others = self.others.iter().flat_map(|(_, vectors)| vectors);
        let vectors: Vec<&[f32]> = self
            .vectors
            .iter()
            .chain(others)
            .map(Vec::as_slice)
            .collect();
        let rows = vectors.len();
        let vectors = bytes(&vectors.concat());
        let probed = bytes(probe);
        let view = |rows: usize, bytes| {
            TensorView::new(Dtype::F32, vec![rows, probe.len()], bytes)
                .map_err(|error| refused(error.to_string()))
        };
        let tensors = [
            (VECTORS, view(rows, &vectors)?),
            (PROBED, view(1, &probed)?),
        ];
        let texts: Vec<&Text> = self
            .texts
            .iter()
            .chain(self.others.iter().map(|(text, _)| text))
            .collect();
        let texts = serde_json::to_string(&texts).map_err(|error| refused(error.to_string()))?;
        let metadata = HashMap::from([
            (TEXTS.to_string(), texts),
            (FOLDER.to_string(), whole(folder)),
        ]);
        let bytes = safetensors::serialize(tensors, Some(metadata))
            .map_err(|error| refused(error.to_string()))?;
        files::replace(file, &bytes).map_err(Error::file("write", file))
    }
}

/// The whole path of a folder.
fn whole(folder: &Path) -> String {
    let whole = fs::canonicalize(folder).unwrap_or(folder.into());
    whole.to_string_lossy().into_owned()
}

/// The files below a folder with one of these extensions, in the order of their names, and how many names are not UTF-8.
fn found(folder: &Path, extensions: &[String]) -> Result<(Vec<PathBuf>, usize), Error> {
    let is_hidden = |entry: &DirEntry| {
        entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.')
    };
    let is_wanted = |path: &Path| {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        extensions
            .iter()
            .any(|wanted| extension.eq_ignore_ascii_case(wanted.trim_start_matches('.')))
    };
    let entries = WalkDir::new(folder).sort_by_file_name();
    let (mut found, mut unnamed) = (Vec::new(), 0);
    for entry in entries.into_iter().filter_entry(|entry| !is_hidden(entry)) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_path_buf();
            Error::file("read", path)(error.into_io_error().unwrap_or(io::ErrorKind::Other.into()))
        })?;
        if entry.file_type().is_file() && is_wanted(entry.path()) {
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            match path.to_str() {
                Some(_) => found.push(path.into()),
                None => unnamed += 1,
            }
        }
    }
    Ok((found, unnamed))
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
