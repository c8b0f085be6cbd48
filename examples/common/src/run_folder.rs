//! The folder of a run: begun where there is no other, and resumed from its newest checkpoint.

use std::path::{Path, PathBuf};

use burn_attn_models::train::{BEST_CHECKPOINT, Checkpoint, NEWEST_CHECKPOINT, State};
use serde::de::DeserializeOwned;

use crate::{
    error::Error,
    files::UNFINISHED,
    lock::{self, Lock},
};

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
    /// What a run writes only beside a checkpoint.
    results: &'static [&'static str],
}

impl RunFolder {
    /// The folder at `path`, in which a run writes these `results`.
    pub fn new(path: &Path, results: &'static [&'static str]) -> Self {
        Self {
            path: path.into(),
            results,
        }
    }

    /// The newest checkpoint of a run to `resume`, and the lock that keeps others from training here; nothing if a run can begin.
    ///
    /// # Errors
    ///
    /// If another process trains here; if there is no checkpoint to resume from, or none of this program; if a run cannot begin because there is one with a
    /// checkpoint already, or something else.
    pub fn newest<C: DeserializeOwned>(
        &self,
        resume: bool,
    ) -> Result<Option<(Checkpoint<C>, Lock)>, Error> {
        lock::free(&self.path)?;
        if !resume {
            self.check_no_run()?;
            return Ok(None);
        }
        // A folder that may be a typing error is not created.
        if !self.path.join(NEWEST_CHECKPOINT).exists() {
            return Err(self.refused("there is no checkpoint here: train without --resume"));
        }
        let lock = lock::prepare(&self.path)?;
        Ok(Some((Checkpoint::newest(&self.path)?, lock)))
    }

    /// Makes sure that a new run destroys neither another run nor files that belong to no run.
    ///
    /// # Errors
    ///
    /// If there is one.
    pub fn check_no_run(&self) -> Result<(), Error> {
        let has = |name: &str| self.path.join(name).exists();
        if has(NEWEST_CHECKPOINT) {
            return Err(self.refused(
                "there is a run here already: go on with it by --resume, or choose another --out",
            ));
        }
        // Somebody's model, unless a run was killed between the two names of its first checkpoint.
        let is_killed = has(&format!("{UNFINISHED}{NEWEST_CHECKPOINT}"));
        let best = (!is_killed).then_some(&BEST_CHECKPOINT);
        match self.results.iter().chain(best).find(|name| has(name)) {
            Some(name) => Err(self.refused(&format!(
                "it has a {name} that is of no run: choose another --out"
            ))),
            None => Ok(()),
        }
    }

    /// Begins a run. Nobody else can train here for as long as the lock is there.
    ///
    /// # Errors
    ///
    /// If there is a run already, or something else, and if the folder cannot be written into.
    pub fn start(&self) -> Result<Lock, Error> {
        let lock = lock::lock(&self.path)?;
        // Until it was locked, another run may have begun and ended.
        self.check_no_run()?;
        // A run that was killed while it wrote its first checkpoint has left this file, and the unfinished one that tells so.
        let _ = std::fs::remove_file(self.path.join(BEST_CHECKPOINT));
        lock::clean(&self.path)?;
        Ok(lock)
    }

    /// An error about the folder.
    pub fn refused(&self, problem: &str) -> Error {
        format!("{}: {problem}", self.path.display()).into()
    }
}

/// How far a run is: `epoch 2`, or `epoch 2, step 17` within the third.
pub fn name(state: &State) -> String {
    match state.step_in_epoch {
        0 => format!("epoch {}", state.epoch),
        step => format!("epoch {}, step {step}", state.epoch),
    }
}
