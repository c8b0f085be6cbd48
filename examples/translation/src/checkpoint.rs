//! Checkpoints: the files `newest.checkpoint` and `best.checkpoint` of a run, each written under another name and renamed when it is complete.
//!
//! So a kill at any moment, or a full disk, leaves the ones from before. Each holds everything needed to resume or to translate. The first line
//! is JSON: the configuration, the state of training, and the sizes and the hash of the parts that follow, which are the vocabulary, the model
//! and the optimizer's moments.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::{Bytes, Device};
use burn_attn_models::seq2seq::Seq2Seq;
use example_common::files::{self, FileError};
use example_common::fnv::Fnv;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::run_config::RunConfig;
use crate::state::State;
use crate::vocabulary::Vocabulary;

/// The file from which a run is resumed.
pub const NEWEST: &str = "newest.checkpoint";
/// The file with the lowest validation loss, which translates.
pub const BEST: &str = "best.checkpoint";

// The parts behind the first line.
const TOKENIZER: &str = "tokenizer";
const MODEL: &str = "model";
const AVERAGE: &str = "average";

/// The part of one of the optimizers, counted from 0.
fn optimizer_part(number: usize) -> String {
    format!("optimizer-{}", number + 1)
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    config: RunConfig,
    state: State,
    /// The parts in their order, with their sizes.
    parts: Vec<(String, usize)>,
    /// The hash of all parts.
    hash: String,
}

/// A checkpoint that was read.
pub struct Checkpoint {
    /// The configuration of the run.
    pub config: RunConfig,
    /// How far it is.
    pub state: State,
    parts: BTreeMap<String, Vec<u8>>,
    path: PathBuf,
}

impl Checkpoint {
    /// Writes the newest checkpoint into the folder `out`, which becomes the best one too if its validation loss is the lowest.
    ///
    /// # Errors
    /// If anything cannot be written. The older ones are untouched then.
    pub fn write(
        out: &Path,
        config: &RunConfig,
        vocabulary: &Vocabulary,
        model: &Seq2Seq,
        average: Option<&Seq2Seq>,
        optimizers: &[ModuleOptimizer],
        state: &State,
    ) -> Result<(), Error> {
        let newest = out.join(NEWEST);
        let aside = files::aside(&newest);
        let refused = |error: RecordError| {
            FileError::of("write", &aside)(io::Error::other(error.to_string()))
        };
        let bytes = |model: &Seq2Seq| model.clone().into_record().into_bytes().map_err(refused);
        let mut parts = vec![
            (TOKENIZER.into(), vocabulary.to_json()?.into_bytes()),
            (MODEL.into(), bytes(model)?.to_vec()),
        ];
        if let Some(average) = average {
            parts.push((AVERAGE.into(), bytes(average)?.to_vec()));
        }
        for (number, optimizer) in optimizers.iter().enumerate() {
            let bytes = optimizer.into_bytes().map_err(refused)?;
            parts.push((optimizer_part(number), bytes.to_vec()));
        }
        let sizes = parts.iter().map(|(name, part)| (name.clone(), part.len()));
        let sizes = sizes.collect();
        let body: Vec<&[u8]> = parts.iter().map(|(_, part)| part.as_slice()).collect();
        let body = body.concat();
        let header = Header {
            config: config.clone(),
            state: state.clone(),
            parts: sizes,
            hash: hash(&body),
        };
        // This fails only for a map whose keys are not strings, or a type that refuses; a header has neither.
        let mut file = serde_json::to_vec(&header).expect("plain data has a JSON form");
        file.push(b'\n');
        file.extend(body);
        let written = files::write_synced(&aside, &file)
            .map_err(FileError::of("write", &aside))
            .and_then(|()| {
                // The best one first: killed in between, a resumed run writes both again.
                if state.is_best() {
                    share(&aside, &file, &out.join(BEST))?;
                }
                fs::rename(&aside, &newest).map_err(FileError::of("write", &newest))
            });
        if written.is_err() {
            // The reason that is reported is the first failure, not this one.
            let _ = fs::remove_file(&aside);
        }
        files::sync_folder(out);
        Ok(written?)
    }

    /// The newest checkpoint of a run.
    ///
    /// # Errors
    /// If there is none, or it is not whole.
    pub fn newest(out: &Path) -> Result<Self, Error> {
        match exists(out) {
            true => Self::read(&out.join(NEWEST)),
            false => Err(Error::NoCheckpoint(out.to_path_buf())),
        }
    }

    /// The checkpoint with the lowest validation loss, or the newest if none was measured.
    ///
    /// # Errors
    /// If there is none, or it is not whole.
    pub fn best(out: &Path) -> Result<Self, Error> {
        let best = out.join(BEST);
        match best.exists() {
            true => Self::read(&best),
            false => Self::newest(out),
        }
    }

    /// Reads a checkpoint and checks that it is whole.
    fn read(path: &Path) -> Result<Self, Error> {
        let file = fs::read(path).map_err(FileError::of("read", path))?;
        let broken = |problem: String| Error::Checkpoint {
            path: path.to_path_buf(),
            problem,
        };
        let line = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let header: Header =
            serde_json::from_slice(line).map_err(|error| broken(error.to_string()))?;
        let mut rest = file.get(line.len() + 1..).unwrap_or_default();
        if header.hash != hash(rest) {
            return Err(broken(format!(
                "the {} bytes behind its first line are not those that were written",
                rest.len()
            )));
        }
        let mut parts = BTreeMap::new();
        for (name, size) in header.parts {
            let (part, behind) = rest
                .split_at_checked(size)
                .ok_or_else(|| broken(format!("{name} is not whole")))?;
            parts.insert(name, part.to_vec());
            rest = behind;
        }
        header.config.validate()?;
        Ok(Self {
            config: header.config,
            state: header.state,
            parts,
            path: path.to_path_buf(),
        })
    }

    /// The vocabulary of the run.
    pub fn vocabulary(&self) -> Result<Vocabulary, Error> {
        Vocabulary::from_json(self.part(TOKENIZER)?, &self.path)
    }

    /// The model, on a device.
    pub fn model(&self, device: &Device) -> Result<Seq2Seq, Error> {
        self.load(MODEL, device)
    }

    /// The moving average of the model, if the run has one.
    pub fn average(&self, device: &Device) -> Result<Option<Seq2Seq>, Error> {
        let is_there = self.parts.contains_key(AVERAGE);
        is_there.then(|| self.load(AVERAGE, device)).transpose()
    }

    fn load(&self, part: &str, device: &Device) -> Result<Seq2Seq, Error> {
        let model = self.config.model.init(device);
        let bytes = Bytes::from_bytes_vec(self.part(part)?.to_vec());
        ModuleRecord::from_bytes(bytes)
            .and_then(|record| model.try_load_record(record))
            .map_err(|error| self.broken(part, &error))
    }

    /// The optimizers with their moments, as many as were written.
    pub fn optimizers(&self, fresh: &ModuleOptimizer) -> Result<Vec<ModuleOptimizer>, Error> {
        let parts = (0..).map(optimizer_part);
        parts
            .map_while(|name| self.parts.get(&name).map(|part| (name, part)))
            .map(|(name, part)| {
                OptimizerRecord::from_bytes(Bytes::from_bytes_vec(part.clone()))
                    .map(|record| fresh.clone().load_record(record))
                    .map_err(|error| self.broken(&name, &error))
            })
            .collect()
    }

    fn part(&self, name: &str) -> Result<&[u8], Error> {
        let part = self.parts.get(name).map(Vec::as_slice);
        part.ok_or_else(|| self.broken(name, &"it is missing"))
    }

    fn broken(&self, part: &str, problem: &dyn std::fmt::Display) -> Error {
        Error::Checkpoint {
            path: self.path.clone(),
            problem: format!("{part}: {problem}"),
        }
    }
}

/// Whether a folder holds a run that can be resumed.
pub fn exists(out: &Path) -> bool {
    out.join(NEWEST).exists()
}

/// Gives a file a second name, or writes it a second time where a file can have only one.
fn share(file: &Path, bytes: &[u8], second: &Path) -> Result<(), FileError> {
    let aside = files::aside(second);
    // One that a kill has left.
    let _ = fs::remove_file(&aside);
    fs::hard_link(file, &aside)
        .or_else(|_| files::write_synced(&aside, bytes))
        .and_then(|()| fs::rename(&aside, second))
        .map_err(FileError::of("write", second))
        .inspect_err(|_| {
            let _ = fs::remove_file(&aside);
        })
}

fn hash(bytes: &[u8]) -> String {
    let mut hash = Fnv::default();
    hash.write(bytes);
    hash.to_hex()
}
