//! Checkpoints: folders `epoch-0007` that are written aside and renamed when they are complete.
//!
//! A kill at any moment leaves at worst a hidden folder that the next run removes; a full disk leaves nothing but the
//! older checkpoints. Each holds all that is needed to go on or to translate: the configuration, the vocabulary, the
//! model, the optimizer's moments, and where training stood. `state.json` is written last and knows the size and the hash
//! of the others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use burn_attn_models::seq2seq::Seq2Seq;
use serde::{Deserialize, Serialize};

use crate::data::Fnv;
use crate::error::Error;
use crate::run_config::RunConfig;
use crate::vocabulary::Vocabulary;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const MODEL: &str = "model.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const STATE: &str = "state.json";
/// What the name of an unfinished checkpoint begins with.
const UNFINISHED: &str = ".unfinished-";

/// Where training stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Complete epochs.
    pub epoch: usize,
    /// Complete steps of the epoch under way.
    pub step_in_epoch: usize,
    /// Complete steps of all epochs.
    pub step: usize,
    /// Sum of the training loss over the tokens of the epoch under way.
    #[serde(with = "exact")]
    pub loss_sum: f64,
    /// Tokens predicted in the epoch under way.
    pub loss_tokens: usize,
    /// Seconds of training, without evaluation.
    pub seconds: f64,
    /// Tokens read and predicted, without padding.
    pub tokens: usize,
    /// Whether the run has come to its end.
    pub finished: bool,
    /// The curve so far.
    pub curve: Vec<CurvePoint>,
}

/// One epoch of the loss curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The step after which it was measured.
    pub step: usize,
    /// Mean training loss (nats per token, smoothed).
    #[serde(with = "exact")]
    pub train: f64,
    /// Validation loss (nats per token, not smoothed).
    #[serde(with = "exact")]
    pub validation: f64,
}

/// Numbers as texts: a JSON number may come back with another last bit, and a resumed run with another curve.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// `state.json`: the state, and what the other files must look like.
#[derive(Serialize, Deserialize)]
struct StateFile {
    state: State,
    /// The validation loss of exactly this model, if it was measured.
    validation: Option<f64>,
    /// Size and hash of every other file.
    files: BTreeMap<String, (usize, String)>,
}

impl State {
    /// The name of the checkpoint of this state; names sort in the order of training.
    pub fn checkpoint_name(&self) -> String {
        if self.step_in_epoch == 0 {
            format!("epoch-{:04}", self.epoch)
        } else {
            format!("epoch-{:04}-step-{:06}", self.epoch, self.step_in_epoch)
        }
    }

    /// Tokens read and predicted per second of training.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.seconds.max(1e-9)
    }

    /// The validation loss, if it was measured after the last step.
    fn validation(&self) -> Option<f64> {
        self.curve
            .last()
            .filter(|point| point.step == self.step)
            .map(|point| point.validation)
    }
}

/// A checkpoint in memory, to be written or just read.
pub struct Checkpoint {
    /// What the run is.
    pub config: RunConfig,
    /// Where it stands.
    pub state: State,
    files: BTreeMap<String, Vec<u8>>,
    path: PathBuf,
}

impl Checkpoint {
    /// Writes a checkpoint into the folder `out` and returns its name.
    ///
    /// # Errors
    /// If anything cannot be written; then nothing of it is left, and older checkpoints are untouched.
    pub fn write(
        out: &Path,
        config: &RunConfig,
        vocabulary: &Vocabulary,
        model: &Seq2Seq,
        optimizer: &ModuleOptimizer,
        state: &State,
    ) -> Result<String, Error> {
        let name = state.checkpoint_name();
        let target = out.join(&name);
        let refused = |error: burn::store::RecordError| Error::Checkpoint {
            path: target.clone(),
            problem: error.to_string(),
        };
        let files: BTreeMap<String, Vec<u8>> = [
            (CONFIG, json(config)),
            (TOKENIZER, vocabulary.to_json()?.into_bytes()),
            (
                MODEL,
                model
                    .clone()
                    .into_record()
                    .into_bytes()
                    .map_err(refused)?
                    .to_vec(),
            ),
            (OPTIMIZER, optimizer.into_bytes().map_err(refused)?.to_vec()),
        ]
        .map(|(file, bytes)| (file.to_string(), bytes))
        .into();
        let state_file = StateFile {
            state: state.clone(),
            validation: state.validation(),
            files: files
                .iter()
                .map(|(file, bytes)| (file.clone(), (bytes.len(), hash(bytes))))
                .collect(),
        };
        let aside = out.join(format!("{UNFINISHED}{name}"));
        let written =
            write_aside(&aside, &files, &json(&state_file)).and_then(|()| replace(&aside, &target));
        if written.is_err() {
            // The reason that is reported is the first failure, not this one.
            let _ = fs::remove_dir_all(&aside);
        }
        written.map(|()| name)
    }

    /// Reads a checkpoint and checks that it is whole.
    ///
    /// # Errors
    /// If a file is missing, truncated or foreign.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let StateFile {
            state,
            files: expected,
            ..
        } = read_state(path)?;
        let mut files = BTreeMap::new();
        for file in [CONFIG, TOKENIZER, MODEL, OPTIMIZER] {
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
        let model = self.config.model.init(device);
        ModuleRecord::from_bytes(self.bytes(MODEL))
            .and_then(|record| model.try_load_record(record))
            .map_err(|error| self.broken(MODEL, &error))
    }

    /// The optimizer with its moments.
    pub fn optimizer(&self, fresh: ModuleOptimizer) -> Result<ModuleOptimizer, Error> {
        OptimizerRecord::from_bytes(self.bytes(OPTIMIZER))
            .map(|record| fresh.load_record(record))
            .map_err(|error| self.broken(OPTIMIZER, &error))
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
        if name(&path).starts_with("epoch-") && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The newest checkpoint of a folder, if there is one.
pub fn newest(out: &Path) -> Result<Option<PathBuf>, Error> {
    Ok(list(out)?.pop())
}

/// The checkpoint with the lowest validation loss, or the newest where none was measured.
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

/// How far the run of a checkpoint was, without reading its model.
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

/// Makes the folder of a run ready: creates it, removes what killed runs have left unfinished, and makes sure that
/// checkpoints can be written, before hours of work depend on it.
pub fn prepare(out: &Path) -> Result<(), Error> {
    fs::create_dir_all(out).map_err(Error::file("create", out))?;
    for entry in fs::read_dir(out).map_err(Error::file("read", out))? {
        let path = entry.map_err(Error::file("read", out))?.path();
        if name(&path).starts_with(UNFINISHED) {
            fs::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
        }
    }
    let probe = out.join(format!("{UNFINISHED}probe"));
    fs::create_dir(&probe).map_err(Error::file("write into", out))?;
    fs::remove_dir(&probe).map_err(Error::file("remove", &probe))
}

/// Removes a checkpoint so that a kill in the middle leaves no half of it under its name.
pub fn remove(path: &Path) -> Result<(), Error> {
    let aside = path.with_file_name(format!("{UNFINISHED}{}", name(path)));
    fs::rename(path, &aside).map_err(Error::file("remove", path))?;
    fs::remove_dir_all(&aside).map_err(Error::file("remove", &aside))
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
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
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(Error::file("write", &path))?;
    }
    Ok(())
}

/// Gives a complete checkpoint its name; one of the same name makes room first.
fn replace(aside: &Path, target: &Path) -> Result<(), Error> {
    if target.exists() {
        remove(target)?;
    }
    fs::rename(aside, target).map_err(Error::file("write", target))?;
    // The new name must be on the disk too; where folders cannot be synced, the system takes care of it.
    if let Some(Ok(folder)) = target.parent().map(File::open) {
        let _ = folder.sync_all();
    }
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
    // Only a map with keys that are no texts, or a type that refuses, can fail here: these have neither.
    serde_json::to_vec_pretty(value).expect("plain data has a JSON form")
}

fn hash(bytes: &[u8]) -> String {
    let mut hash = Fnv::default();
    hash.write(bytes);
    hash.to_hex()
}
