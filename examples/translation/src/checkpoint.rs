//! Checkpoints: folders such as `epoch-0007` that are written under another name and renamed when they are complete.
//!
//! A kill at any moment leaves at worst a hidden folder or file that the next run removes; a full disk leaves only the
//! older checkpoints. None is overwritten: a second one of the same step is `epoch-0007-again-1`, and the first is removed
//! afterwards. Each holds everything needed to resume or to translate: the configuration, the vocabulary, the
//! model, the optimizer's moments, and the state of training. `state.json` is written last and has the size and the hash
//! of the other files.

mod moment;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use burn_attn_models::seq2seq::Seq2Seq;
use example_common::files::{self, name};
use example_common::fnv::Fnv;
use serde::{Deserialize, Serialize};

use self::moment::Moment;
use crate::error::Error;
use crate::run_config::RunConfig;
use crate::state::State;
use crate::vocabulary::Vocabulary;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const MODEL: &str = "model.bpk";
const AVERAGE: &str = "average.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const STATE: &str = "state.json";

/// The file of one of the optimizers, counted from 0.
fn optimizer_file(number: usize) -> String {
    match number {
        0 => OPTIMIZER.into(),
        _ => format!("optimizer-{}.bpk", number + 1),
    }
}

/// `state.json`: the state, and the size and hash of the other files.
#[derive(Serialize, Deserialize)]
struct StateFile {
    state: State,
    /// The validation loss of exactly this model, if it was measured.
    validation: Option<f64>,
    /// Size and hash of every other file.
    files: BTreeMap<String, (usize, String)>,
}

/// A checkpoint in memory, about to be written or just read.
pub struct Checkpoint {
    /// The configuration of the run.
    pub config: RunConfig,
    /// How far it is.
    pub state: State,
    files: BTreeMap<String, Vec<u8>>,
    path: PathBuf,
}

impl Checkpoint {
    /// Writes a checkpoint into the folder `out` and returns its name.
    ///
    /// # Errors
    /// If anything cannot be written. Nothing of the checkpoint is left then, and older ones are untouched.
    pub fn write(
        out: &Path,
        config: &RunConfig,
        vocabulary: &Vocabulary,
        model: &Seq2Seq,
        average: Option<&Seq2Seq>,
        optimizers: &[ModuleOptimizer],
        state: &State,
    ) -> Result<String, Error> {
        let name = free_name(out, state)?;
        let target = out.join(&name);
        let refused = |error: burn::store::RecordError| Error::NotWritten {
            path: target.clone(),
            problem: error.to_string(),
        };
        let bytes = |model: &Seq2Seq| {
            let record = model.clone().into_record();
            record.into_bytes().map(|bytes| bytes.to_vec())
        };
        let mut files: BTreeMap<String, Vec<u8>> = [
            (CONFIG, json(config)),
            (TOKENIZER, vocabulary.to_json()?.into_bytes()),
            (MODEL, bytes(model).map_err(refused)?),
        ]
        .map(|(file, bytes)| (file.to_string(), bytes))
        .into();
        if let Some(average) = average {
            files.insert(AVERAGE.into(), bytes(average).map_err(refused)?);
        }
        for (number, optimizer) in optimizers.iter().enumerate() {
            let bytes = optimizer.into_bytes().map_err(refused)?.to_vec();
            files.insert(optimizer_file(number), bytes);
        }
        let state_file = StateFile {
            state: state.clone(),
            validation: state.validation(),
            files: files
                .iter()
                .map(|(file, bytes)| (file.clone(), (bytes.len(), hash(bytes))))
                .collect(),
        };
        let aside = files::aside(&target);
        let written = write_aside(&aside, &files, &json(&state_file))
            .and_then(|()| fs::rename(&aside, &target).map_err(Error::file("write", &target)));
        if written.is_err() {
            // The reason that is reported is the first failure, not this one.
            let _ = fs::remove_dir_all(&aside);
        }
        files::sync_folder(out);
        written.map(|()| name)
    }

    /// Reads a checkpoint and checks that it is whole.
    ///
    /// # Errors
    /// If a file is missing, truncated, or not from this program.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let StateFile {
            state,
            files: expected,
            ..
        } = read_state(path)?;
        let mut files = BTreeMap::new();
        let more = expected.keys().map(String::as_str);
        let more = more.filter(|file| *file == AVERAGE || file.starts_with("optimizer-"));
        let needed = [CONFIG, TOKENIZER, MODEL, OPTIMIZER];
        for file in needed.into_iter().chain(more) {
            let place = path.join(file);
            let bytes = fs::read(&place).map_err(Error::file("read", &place))?;
            let problem = match expected.get(file) {
                None => Some(format!("{STATE} does not list {file}")),
                Some((size, _)) if *size != bytes.len() => Some(format!(
                    "it has {} bytes and should have {size}",
                    bytes.len()
                )),
                Some((_, sum)) if *sum != hash(&bytes) => Some("its bytes have changed".into()),
                Some(_) => None,
            };
            if let Some(problem) = problem {
                return Err(Error::Checkpoint {
                    path: place,
                    problem,
                });
            }
            files.insert(file.to_string(), bytes);
        }
        let config: RunConfig =
            serde_json::from_slice(&files[CONFIG]).map_err(|error| Error::Checkpoint {
                path: path.join(CONFIG),
                problem: error.to_string(),
            })?;
        config.validate()?;
        Ok(Self {
            config,
            state,
            files,
            path: path.to_path_buf(),
        })
    }

    /// The vocabulary of the run.
    pub fn vocabulary(&self) -> Result<Vocabulary, Error> {
        Vocabulary::from_json(&self.files[TOKENIZER], &self.path.join(TOKENIZER))
    }

    /// The model, on a device.
    pub fn model(&self, device: &Device) -> Result<Seq2Seq, Error> {
        self.load(MODEL, device)
    }

    /// The moving average of the model, if the run has one.
    pub fn average(&self, device: &Device) -> Result<Option<Seq2Seq>, Error> {
        let is_there = self.files.contains_key(AVERAGE);
        is_there.then(|| self.load(AVERAGE, device)).transpose()
    }

    fn load(&self, file: &str, device: &Device) -> Result<Seq2Seq, Error> {
        let model = self.config.model.init(device);
        ModuleRecord::from_bytes(self.bytes(file))
            .and_then(|record| model.try_load_record(record))
            .map_err(|error| self.broken(file, &error))
    }

    /// The optimizers with their moments, as many as were written.
    pub fn optimizers(&self, fresh: &ModuleOptimizer) -> Result<Vec<ModuleOptimizer>, Error> {
        (0..)
            .map(optimizer_file)
            .take_while(|file| self.files.contains_key(file))
            .map(|file| {
                OptimizerRecord::from_bytes(self.bytes(&file))
                    .map(|record| fresh.clone().load_record(record))
                    .map_err(|error| self.broken(&file, &error))
            })
            .collect()
    }

    fn bytes(&self, file: &str) -> Bytes {
        Bytes::from_bytes_vec(self.files[file].clone())
    }

    fn broken(&self, file: &str, problem: &burn::store::RecordError) -> Error {
        Error::Checkpoint {
            path: self.path.join(file),
            problem: problem.to_string(),
        }
    }
}

/// The complete checkpoints of a folder, oldest first.
pub fn list(out: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file("read", out)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::file("read", out))?.path();
        if let Some(moment) = Moment::of(&name(&path))
            && path.is_dir()
        {
            found.push((moment, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The newest checkpoint of a folder, if there is one.
pub fn newest(out: &Path) -> Result<Option<PathBuf>, Error> {
    Ok(list(out)?.pop())
}

/// The checkpoint with the lowest validation loss, or the newest if none was measured.
pub fn best(out: &Path) -> Result<PathBuf, Error> {
    let mut best: Option<(f64, PathBuf)> = None;
    for path in list(out)? {
        let loss = read_state(&path)?.validation.unwrap_or(f64::INFINITY);
        if best.as_ref().is_none_or(|(lowest, _)| loss <= *lowest) {
            best = Some((loss, path));
        }
    }
    best.map(|(_, path)| path)
        .ok_or_else(|| Error::NoCheckpoint(out.to_path_buf()))
}

/// The state of a checkpoint, without reading its model.
pub fn read_progress(path: &Path) -> Result<State, Error> {
    Ok(read_state(path)?.state)
}

/// Removes every checkpoint but the newest and the best.
pub fn tidy(out: &Path) -> Result<(), Error> {
    let (newest, best) = (newest(out)?, best(out)?);
    for path in list(out)? {
        if Some(&path) != newest.as_ref() && path != best {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a checkpoint so that a kill in between does not leave half of it under its name.
fn remove(path: &Path) -> Result<(), Error> {
    let aside = files::aside(path);
    fs::rename(path, &aside).map_err(Error::file("remove", path))?;
    fs::remove_dir_all(&aside).map_err(Error::file("remove", &aside))
}

/// A name for a checkpoint of this state that comes after all others of the step: nothing is ever overwritten, so that
/// there is a complete checkpoint at every moment.
fn free_name(out: &Path, state: &State) -> Result<String, Error> {
    let name = state.checkpoint_name();
    let last = list(out)?
        .iter()
        .filter_map(|path| Moment::of(&files::name(path)))
        .filter(|moment| (moment.epoch, moment.step) == (state.epoch, state.step_in_epoch))
        .max();
    Ok(match last {
        None => name,
        Some(moment) => format!("{name}-again-{}", moment.again + 1),
    })
}

/// Writes all files of a checkpoint to disk, the state last.
fn write_aside(aside: &Path, files: &BTreeMap<String, Vec<u8>>, state: &[u8]) -> Result<(), Error> {
    if aside.exists() {
        fs::remove_dir_all(aside).map_err(Error::file("remove", aside))?;
    }
    fs::create_dir(aside).map_err(Error::file("create", aside))?;
    for (file, bytes) in files
        .iter()
        .map(|(file, bytes)| (file.as_str(), bytes.as_slice()))
        .chain([(STATE, state)])
    {
        let path = aside.join(file);
        files::write_synced(&path, bytes).map_err(Error::file("write", &path))?;
    }
    files::sync_folder(aside);
    Ok(())
}

fn read_state(path: &Path) -> Result<StateFile, Error> {
    let place = path.join(STATE);
    let bytes = fs::read(&place).map_err(Error::file("read", &place))?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Checkpoint {
        path: place,
        problem: error.to_string(),
    })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // This fails only for a map whose keys are not strings, or a type that refuses; these have neither.
    serde_json::to_vec_pretty(value).expect("plain data has a JSON form")
}

fn hash(bytes: &[u8]) -> String {
    let mut hash = Fnv::default();
    hash.write(bytes);
    hash.to_hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_listed_in_the_order_of_training() {
        let out = tempfile::tempdir().unwrap();
        let names = [
            "epoch-0000-step-000007",
            "epoch-0001",
            "epoch-9999",
            "epoch-9999-step-999999",
            "epoch-9999-step-1000000",
            "epoch-9999-step-1000000-again-2",
            "epoch-9999-step-1000000-again-10",
            "epoch-10000",
        ];
        for name in names.iter().rev() {
            fs::create_dir(out.path().join(name)).unwrap();
        }
        // What someone else has put there is not a checkpoint, and stays.
        for name in ["epoch-0001.bak", "epoch-0001-old", "epoch-", "notes"] {
            fs::create_dir(out.path().join(name)).unwrap();
        }
        let listed: Vec<String> = list(out.path())
            .unwrap()
            .iter()
            .map(|path| name(path))
            .collect();
        assert_eq!(listed, names);
    }
}
