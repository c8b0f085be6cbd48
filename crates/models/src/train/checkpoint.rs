//! Checkpoints: the files `newest.checkpoint` and `best.checkpoint`, each written under another name and renamed when it is complete.
//!
//! The first line is JSON: the program's configuration, the state of the training, and the names and sizes of the parts behind it: the program's
//! own, the model, its moving average, and the moments of the optimizers. A hash covers the parts.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use burn::{
    module::Module,
    optim::{ModuleOptimizer, OptimizerRecord},
    store::{ModuleRecord, RecordError},
    tensor::Bytes,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{hash::fnv1a, state::State};

/// The file name of the checkpoint from which a run is resumed.
pub const NEWEST_CHECKPOINT: &str = "newest.checkpoint";
/// The file name of the checkpoint with the lowest validation loss.
pub const BEST_CHECKPOINT: &str = "best.checkpoint";

/// The part with the parameters of the last step.
pub(super) const MODEL: &str = "model";
const AVERAGE: &str = "average";

/// The part of one of the optimizers, counted from 1.
fn optimizer_part(number: usize) -> String {
    format!("optimizer-{number}")
}

/// Why a training, or a file of it, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A checkpoint cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// `read`, `write` or `write into`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file is not a complete checkpoint of this program.
    #[error("{} is not a checkpoint of this program: {problem}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A run that was not resumed would replace the checkpoints of another one.
    #[error("{} belongs to another run: resume it, or choose another folder", path.display())]
    AnotherRun {
        /// A checkpoint of the other run.
        path: PathBuf,
    },
    /// A loss is no longer finite.
    #[error("the {name} is {loss} by step {step}: training has diverged")]
    Diverged {
        /// Which loss.
        name: &'static str,
        /// Its value.
        loss: f64,
        /// The last step.
        step: usize,
    },
}

impl TrainError {
    /// Adds to an I/O error what was tried with which file.
    fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            action,
            path: path.into(),
            source,
        }
    }
}

/// Where a run keeps its checkpoints, and what the program adds to them.
#[derive(Clone, Debug)]
pub struct CheckpointFolder<C> {
    /// An existing folder, without checkpoints of other runs.
    pub path: PathBuf,
    /// Everything that determines the run.
    pub config: C,
    /// Files that using the model takes, such as its vocabulary, by name. The names `model`, `average` and `optimizer-…` are the trainer's.
    pub parts: BTreeMap<String, Vec<u8>>,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header<C> {
    config: C,
    state: State,
    /// The parts in their order, with their sizes.
    parts: Vec<(String, usize)>,
    hash: String,
}

impl<C: Serialize> CheckpointFolder<C> {
    /// Panics if the program has a part that would take the place of one of the trainer's.
    pub(super) fn check_parts(&self) {
        for name in self.parts.keys() {
            let is_free = name != MODEL && name != AVERAGE && !name.starts_with("optimizer-");
            assert!(
                is_free,
                "Trainer: a part of the program cannot be named {name}"
            );
        }
    }

    /// Fails unless this is a folder, and unless it is without checkpoints, if it has to be `free`.
    pub(super) fn check_path(&self, free: bool) -> Result<(), TrainError> {
        let found = fs::metadata(&self.path).map_err(TrainError::of("write into", &self.path))?;
        if !found.is_dir() {
            let reason = io::ErrorKind::NotADirectory.into();
            return Err(TrainError::of("write into", &self.path)(reason));
        }
        let mut taken = vec![NEWEST_CHECKPOINT];
        // Killed between the two names of its first checkpoint, a run leaves the best one and the unfinished newest one, and begins anew.
        if !aside(NEWEST_CHECKPOINT, &self.path).exists() {
            taken.push(BEST_CHECKPOINT);
        }
        let mut taken = taken.iter().map(|name| self.path.join(name));
        match taken.find(|path| free && path.exists()) {
            Some(path) => Err(TrainError::AnotherRun { path }),
            None => Ok(()),
        }
    }

    /// Writes the newest checkpoint, which becomes the best one too if its validation loss is the lowest.
    ///
    /// # Errors
    ///
    /// When anything cannot be written. The newest checkpoint is untouched then; the best one may be the new one already.
    pub(super) fn write<M: Module>(
        &self,
        state: &State,
        model: &M,
        average: Option<&M>,
        optimizers: &[ModuleOptimizer],
    ) -> Result<(), TrainError> {
        let newest = self.path.join(NEWEST_CHECKPOINT);
        let aside = aside(NEWEST_CHECKPOINT, &self.path);
        let refused = |error: RecordError| {
            TrainError::of("write", &aside)(io::Error::other(error.to_string()))
        };
        let of_program = self.parts.iter();
        let mut parts: Vec<(String, Bytes)> = of_program
            .map(|(name, bytes)| (name.clone(), Bytes::from_bytes_vec(bytes.clone())))
            .collect();
        for (name, model) in [(MODEL, Some(model)), (AVERAGE, average)] {
            if let Some(model) = model {
                let bytes = model.clone().into_record().into_bytes();
                parts.push((name.into(), bytes.map_err(refused)?));
            }
        }
        for (number, optimizer) in (1..).zip(optimizers) {
            let bytes = optimizer.into_bytes().map_err(refused)?;
            parts.push((optimizer_part(number), bytes));
        }
        let header = Header {
            config: &self.config,
            state: state.clone(),
            parts: parts
                .iter()
                .map(|(name, bytes)| (name.clone(), bytes.len()))
                .collect(),
            hash: hash(parts.iter().flat_map(|(_, bytes)| bytes.iter())),
        };
        let mut line = serde_json::to_vec(&header)
            .map_err(|error| TrainError::of("write", &aside)(error.into()))?;
        line.push(b'\n');
        let mut file = vec![line.as_slice()];
        file.extend(parts.iter().map(|(_, bytes)| &bytes[..]));
        // An unfinished one that an earlier write kept is kept again.
        let mut is_kept = aside.exists();
        let written = write_synced(&aside, &file).and_then(|()| {
            // The best one first: killed in between, a resumed run writes both again.
            if state.is_best() {
                self.write_best(&aside, &file)?;
                is_kept = true;
            }
            fs::rename(&aside, &newest).map_err(TrainError::of("write", &newest))
        });
        // Beside the best checkpoint that was just written, without a newest one, it says of which run that is.
        if written.is_err() && (!is_kept || newest.exists()) {
            // If the file cannot be removed either, only the first failure is reported.
            let _ = fs::remove_file(&aside);
        }
        // Waits until the names are on the disk, where folders can be synced.
        if let Ok(folder) = File::open(&self.path) {
            let _ = folder.sync_all();
        }
        written
    }

    /// Gives a file a second name, or writes its bytes a second time where a file can have only one.
    fn write_best(&self, file: &Path, bytes: &[&[u8]]) -> Result<(), TrainError> {
        let best = self.path.join(BEST_CHECKPOINT);
        let aside = aside(BEST_CHECKPOINT, &self.path);
        // A kill may have left a file of this name.
        let _ = fs::remove_file(&aside);
        fs::hard_link(file, &aside)
            .or_else(|_| write_synced(&aside, bytes))
            .and_then(|()| fs::rename(&aside, &best).map_err(TrainError::of("write", &best)))
            .inspect_err(|_| {
                let _ = fs::remove_file(&aside);
            })
    }
}

/// A checkpoint that was read, with the program's configuration.
#[derive(Debug)]
pub struct Checkpoint<C> {
    /// The configuration of the run.
    pub config: C,
    /// How far the run is.
    pub state: State,
    parts: BTreeMap<String, Vec<u8>>,
    path: PathBuf,
}

impl<C: DeserializeOwned> Checkpoint<C> {
    /// The newest checkpoint of a folder.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not complete.
    pub fn newest(folder: &Path) -> Result<Self, TrainError> {
        Self::read(&folder.join(NEWEST_CHECKPOINT))
    }

    /// The checkpoint with the lowest validation loss, or the newest if none was measured.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not complete.
    pub fn best(folder: &Path) -> Result<Self, TrainError> {
        let best = folder.join(BEST_CHECKPOINT);
        match best.exists() {
            true => Self::read(&best),
            false => Self::newest(folder),
        }
    }

    /// Reads a checkpoint and checks that it is complete.
    fn read(path: &Path) -> Result<Self, TrainError> {
        let file = fs::read(path).map_err(TrainError::of("read", path))?;
        let broken = |problem: String| TrainError::Checkpoint {
            path: path.into(),
            problem,
        };
        let line = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let header: Header<C> =
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
        Ok(Self {
            config: header.config,
            state: header.state,
            parts,
            path: path.into(),
        })
    }
}

impl<C> Checkpoint<C> {
    /// Whether it lies in this folder.
    pub(super) fn is_in(&self, folder: &Path) -> bool {
        let own = self.path.parent().map(fs::canonicalize);
        match (own, fs::canonicalize(folder)) {
            (Some(Ok(own)), Ok(folder)) => own == folder,
            _ => false,
        }
    }

    /// A part by its name: one of the program's own, `model`, `average`, `optimizer-1`, ...
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn part(&self, name: &str) -> Result<&[u8], TrainError> {
        let part = self.parts.get(name).map(Vec::as_slice);
        part.ok_or_else(|| self.broken(name, &"it is missing"))
    }

    /// `model` with the parameters of the moving average, or with those of the last step if there is no average.
    ///
    /// # Errors
    ///
    /// When the parameters do not fit `model`.
    pub fn trained<M: Module>(&self, model: M) -> Result<M, TrainError> {
        match self.parts.contains_key(AVERAGE) {
            true => self.load(AVERAGE, model),
            false => self.load(MODEL, model),
        }
    }

    /// `model` with the parameters of the moving average, if there is one.
    pub(super) fn average<M: Module>(&self, model: M) -> Result<Option<M>, TrainError> {
        let is_there = self.parts.contains_key(AVERAGE);
        is_there.then(|| self.load(AVERAGE, model)).transpose()
    }

    pub(super) fn load<M: Module>(&self, part: &str, model: M) -> Result<M, TrainError> {
        let bytes = Bytes::from_bytes_vec(self.part(part)?.to_vec());
        ModuleRecord::from_bytes(bytes)
            .and_then(|record| model.try_load_record(record))
            .map_err(|error| self.broken(part, &error))
    }

    /// The optimizers with their moments, as many as were written.
    pub(super) fn optimizers(
        &self,
        fresh: &ModuleOptimizer,
    ) -> Result<Vec<ModuleOptimizer>, TrainError> {
        let parts = (1..).map(optimizer_part);
        parts
            .map_while(|name| self.parts.get(&name).map(|part| (name, part)))
            .map(|(name, part)| {
                let record = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(part.clone()))
                    .map_err(|error| self.broken(&name, &error))?;
                let written = record.len();
                let optimizer = fresh.clone().load_record(record);
                // What is of another optimizer is left out without an error.
                match optimizer.to_record().len() == written {
                    true => Ok(optimizer),
                    false => Err(self.broken(&name, &"it is of another optimizer")),
                }
            })
            .collect()
    }

    fn broken(&self, part: &str, problem: &dyn Display) -> TrainError {
        TrainError::Checkpoint {
            path: self.path.clone(),
            problem: format!("{part}: {problem}"),
        }
    }
}

/// Where a file is written until it is complete.
fn aside(name: &str, folder: &Path) -> PathBuf {
    folder.join(format!(".unfinished-{name}"))
}

/// Writes these bytes one after the other into a new file, and waits until they are on the disk.
fn write_synced(path: &Path, bytes: &[&[u8]]) -> Result<(), TrainError> {
    // A kill may have left a second name of the best checkpoint, whose bytes must not change.
    let _ = fs::remove_file(path);
    let written = File::create_new(path).and_then(|mut file| {
        for bytes in bytes {
            file.write_all(bytes)?;
        }
        file.sync_all()
    });
    written.map_err(TrainError::of("write", path))
}

fn hash<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    format!("{:016x}", fnv1a(bytes.into_iter().copied()))
}
