//! The folder of a run: one training at a time writes into it, and finds nothing unfinished; others may read meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use example_common::files::{UNFINISHED, name};
use example_common::lock::{Lock, lock};

use crate::checkpoint::{self, Checkpoint};
use crate::error::Error;
use crate::state::State;

/// Prepares the folder of a run: creates and locks it, removes what killed runs have left unfinished, and makes sure that
/// checkpoints can be written, before hours of work depend on it.
///
/// # Errors
/// If something is training there, or the folder cannot be written.
pub fn prepare(out: &Path) -> Result<Lock, Error> {
    let lock = lock(out)?;
    for entry in fs::read_dir(out).map_err(Error::file("read", out))? {
        let entry = entry.map_err(Error::file("read", out))?;
        let path = entry.path();
        if name(&path).starts_with(UNFINISHED) {
            // A checkpoint is a folder; a report, a curve or a page is a file.
            entry
                .file_type()
                .and_then(|found| match found.is_dir() {
                    true => fs::remove_dir_all(&path),
                    false => fs::remove_file(&path),
                })
                .map_err(Error::file("remove", &path))?;
        }
    }
    let probe = out.join(format!("{UNFINISHED}probe"));
    fs::create_dir(&probe).map_err(Error::file("write into", out))?;
    fs::remove_dir(&probe).map_err(Error::file("remove", &probe))?;
    Ok(lock)
}

/// The best checkpoint of a run that may be training: its path and its contents.
pub fn read_best(out: &Path) -> Result<(PathBuf, Checkpoint), Error> {
    beside_training(out, || {
        let path = checkpoint::best(out)?;
        Checkpoint::read(&path).map(|checkpoint| (path, checkpoint))
    })
}

/// The state of the newest checkpoint of a run that may be training.
pub fn newest_state(out: &Path) -> Result<State, Error> {
    beside_training(out, || {
        let newest = checkpoint::newest(out)?;
        let path = newest.ok_or_else(|| Error::NoCheckpoint(out.to_path_buf()))?;
        checkpoint::read_progress(&path)
    })
}

/// Reads again if that has failed and other checkpoints are there than before: a training has written a new one, and removed
/// an old one that was about to be read.
fn beside_training<T>(out: &Path, read: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        let before = checkpoint::list(out)?;
        match read() {
            Err(_) if checkpoint::list(out)? != before => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_kill_has_left_unfinished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join(".unfinished-epoch-0001");
        fs::create_dir(&checkpoint).unwrap();
        fs::write(checkpoint.join("model.bpk"), "half").unwrap();
        fs::write(folder.path().join(".unfinished-report.json"), "half").unwrap();
        fs::write(folder.path().join("report.json"), "whole").unwrap();
        let _lock = prepare(folder.path()).unwrap();
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| name(&entry.unwrap().path()))
            .collect();
        left.sort();
        assert_eq!(left, [example_common::lock::FILE, "report.json"]);
    }

    #[test]
    fn a_second_training_removes_nothing_of_what_the_first_is_writing() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        for _ in 0..2 {
            let first = prepare(&out).unwrap();
            let unfinished = out.join(format!("{UNFINISHED}epoch-0001"));
            fs::create_dir(&unfinished).unwrap();
            let refused = prepare(&out).unwrap_err().to_string();
            assert!(refused.contains(" is in use: "), "{refused}");
            assert!(unfinished.exists());
            drop(first);
        }
    }

    #[test]
    fn a_checkpoint_that_is_removed_while_it_is_read_is_looked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        fs::create_dir(out.join("epoch-0001")).unwrap();
        let read = || {
            let newest = checkpoint::newest(out)?.unwrap();
            // What a training does in the meantime.
            if name(&newest) == "epoch-0001" {
                fs::create_dir(out.join("epoch-0002")).unwrap();
                fs::remove_dir(&newest).unwrap();
            }
            fs::read_dir(&newest).map_err(Error::file("read", &newest))?;
            Ok(name(&newest))
        };
        assert_eq!(beside_training(out, read).unwrap(), "epoch-0002");
        // One that is there and broken is not.
        let error = read_best(out).err().unwrap().to_string();
        assert!(error.contains("epoch-0002/state.json: "), "{error}");
    }
}
