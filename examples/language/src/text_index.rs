//! The passages of all texts of a folder and their vectors, kept in a file. Only what has changed is read again.

use std::{
    collections::HashMap,
    fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use burn_attn_models::sentences::SentenceEncoder;
use example_common::{exit, files::FileError};
use walkdir::{DirEntry, WalkDir};

use crate::{
    Error,
    index_file::{IndexFile, Text},
    input::without_mark,
    passages::{Passage, passages},
    sentences::{cosine, vectors},
};

/// The name of the file, unless another one is asked for.
pub const FILE: &str = ".search-index.safetensors";
/// Passages that are read before the file is written again.
pub const SAVED_EVERY: usize = 1000;

/// All texts of a folder.
#[derive(Debug)]
pub struct TextIndex {
    texts: Vec<Text>,
    /// Texts that are there, but were not asked for this time.
    others: Vec<Text>,
}

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
    /// Files and folders that cannot be read.
    pub unreadable: usize,
    /// Passages that are left, because the update was interrupted.
    pub left: usize,
    /// Whether the file could not be written, and has what it had before.
    pub is_lost: bool,
}

impl TextIndex {
    /// The index of the files below `folder` with one of these extensions, hidden ones left out. Reads what has changed since `file` was
    /// written, and writes it, now and then already while it reads. Calls `progress(done, total)`, counting passages, of which none is done while
    /// files are looked at; if it breaks, the index has those alone, and the next update goes on from there.
    ///
    /// # Errors
    /// If the folder cannot be read, or the index not be used. That it cannot be written is only a warning.
    pub fn update(
        folder: &Path,
        extensions: &[String],
        file: &Path,
        encoder: &SentenceEncoder,
        mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<(Self, Update), Error> {
        let mut done = Update::default();
        let index_file = IndexFile::new(folder, file, encoder)?;
        let mut known = index_file.open()?;
        let mut texts = Vec::new();
        // The passages that have to be read: the index of the text, the place in the text, and the tokens.
        let mut unread: Vec<(usize, usize, Vec<u32>)> = Vec::new();
        for path in found(folder, extensions, &mut done)? {
            if progress(0, unread.len()).is_break() {
                // No text is taken for one that is gone: the file stays as it is.
                return Ok((
                    Self {
                        texts,
                        others: Vec::new(),
                    },
                    done,
                ));
            }
            let whole = folder.join(&path);
            let Ok(metadata) = fs::metadata(&whole) else {
                done.unreadable += 1;
                continue;
            };
            let written = metadata.modified().unwrap_or(UNIX_EPOCH);
            let written = written.duration_since(UNIX_EPOCH).unwrap_or_default();
            let (size, written) = (metadata.len(), written.as_nanos() as u64);
            let is_kept =
                |text: &Text| text.is_whole && (text.size, text.written) == (size, written);
            if known.get(&path).is_some_and(is_kept) {
                done.kept += 1;
                texts.extend(known.remove(&path));
                continue;
            }
            let Ok(bytes) = fs::read(&whole) else {
                done.unreadable += 1;
                continue;
            };
            let Ok(content) = String::from_utf8(bytes) else {
                done.skipped += 1;
                known.remove(&path);
                continue;
            };
            done.read += 1;
            let before = known.remove(&path);
            let before = before.map(|text| text.passages.into_iter().zip(text.vectors));
            let mut before: HashMap<String, Vec<f32>> = (before.into_iter().flatten())
                .map(|(passage, vector)| (passage.text, vector))
                .collect();
            let mut text = Text {
                path,
                size,
                written,
                passages: Vec::new(),
                is_whole: true,
                vectors: Vec::new(),
            };
            for (passage, tokens) in passages(without_mark(&content), encoder)? {
                let vector = before.remove(&passage.text).unwrap_or_default();
                if vector.is_empty() {
                    unread.push((texts.len(), text.passages.len(), tokens));
                }
                text.passages.push(passage);
                text.vectors.push(vector);
            }
            texts.push(text);
        }
        // The files of the remaining texts are gone, cannot be read, or have other extensions.
        let left = known.len();
        let is_there = |text: &Text| folder.join(&text.path).try_exists().unwrap_or(true);
        let others: Vec<_> = known.into_values().filter(is_there).collect();
        let mut has_changed = done.read > 0 || others.len() < left || !file.exists();
        let mut index = Self { texts, others };
        // Without the file, only the next search takes longer.
        let mut save = |index: &Self| {
            let texts = index.texts.iter().chain(&index.others);
            let saved = index_file.save(texts);
            done.is_lost = saved.is_err();
            if let Err(error) = saved {
                exit::warn(&format!("the passages are not kept: {error}"));
            }
        };
        let (mut over, all) = (0, unread.len());
        let mut flow = ControlFlow::Continue(());
        for group in unread.chunks(SAVED_EVERY) {
            let rows: Vec<&[u32]> = group.iter().map(|(.., tokens)| tokens.as_slice()).collect();
            let new = vectors(encoder, &rows, |more| {
                over += more;
                flow = progress(over, all);
                flow
            });
            for ((text, place, _), vector) in group.iter().zip(new) {
                index.texts[*text].vectors[*place] = vector;
            }
            save(&index);
            has_changed = false;
            if flow.is_break() {
                break;
            }
        }
        if has_changed {
            save(&index);
        }
        done.left = all - over;
        Ok((index, done))
    }

    /// Number of passages.
    pub fn len(&self) -> usize {
        self.texts.iter().map(|text| text.vectors.len()).sum()
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `most` passages that are nearest to a vector, the nearest first.
    ///
    /// # Cost
    /// `passages · width`
    pub fn nearest(&self, query: &[f32], most: usize) -> Vec<Hit<'_>> {
        let hits = self.texts.iter().flat_map(|text| {
            text.read().map(|(passage, vector)| Hit {
                cosine: cosine(query, vector),
                path: &text.path,
                passage,
            })
        });
        let mut hits: Vec<Hit> = hits.collect();
        hits.sort_by(|a, b| b.cosine.total_cmp(&a.cosine));
        hits.truncate(most);
        hits
    }
}

/// The files below a folder with one of these extensions, in the order of their names. Counts what cannot be read, and names that are not UTF-8.
fn found(folder: &Path, extensions: &[String], done: &mut Update) -> Result<Vec<PathBuf>, Error> {
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
    let mut found = Vec::new();
    for entry in entries.into_iter().filter_entry(|entry| !is_hidden(entry)) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == 0 => {
                let error = error.into_io_error();
                let error = error.unwrap_or(io::ErrorKind::Other.into());
                return Err(FileError::of("read", folder)(error).into());
            }
            Err(_) => {
                done.unreadable += 1;
                continue;
            }
        };
        if entry.file_type().is_file() && is_wanted(entry.path()) {
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            match path.to_str() {
                Some(_) => found.push(path.into()),
                None => done.skipped += 1,
            }
        }
    }
    Ok(found)
}
