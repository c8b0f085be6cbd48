//! The folder of a run: one training at a time writes into it, and finds nothing unfinished; others may read meanwhile.

use std::fs;
use std::path::Path;

use example_common::files::{self, FileError, UNFINISHED, name};
use example_common::lock::{Lock, lock};

use crate::checkpoint::{self, Checkpoint};
use crate::curve;
use crate::error::Error;
use crate::explain;

/// Prepares the folder of a run: creates and locks it, removes what killed runs have left unfinished, and makes sure that
/// checkpoints can be written, before hours of work depend on it.
///
/// # Errors
/// If something is training there, or the folder cannot be written.
pub fn prepare(out: &Path) -> Result<Lock, Error> {
    let lock = lock(out)?;
    for entry in fs::read_dir(out).map_err(FileError::of("read", out))? {
        let path = entry.map_err(FileError::of("read", out))?.path();
        if name(&path).starts_with(UNFINISHED) {
            fs::remove_file(&path).map_err(FileError::of("remove", &path))?;
        }
    }
    let probe = out.join(format!("{UNFINISHED}probe"));
    files::probe(&probe).map_err(FileError::of("write into", out))?;
    Ok(lock)
}

/// Makes sure that a new run destroys no other, and nothing that is of no run.
pub fn refuse_occupied(out: &Path) -> Result<(), Error> {
    let path = out.to_path_buf();
    if checkpoint::exists(out) {
        let name = Checkpoint::newest(out)?.state.name();
        return Err(Error::Occupied { path, name });
    }
    // Both are drawn only beside a checkpoint.
    let mut drawn = [curve::FILE, explain::FILE].into_iter();
    match drawn.find(|name| out.join(name).exists()) {
        Some(name) => Err(Error::Foreign { path, name }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_kill_has_left_unfinished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "half").unwrap();
        write(".unfinished-newest.checkpoint");
        write(".unfinished-report.json");
        write("report.json");
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
            let unfinished = files::aside(&out.join(checkpoint::NEWEST));
            fs::write(&unfinished, "half").unwrap();
            let refused = prepare(&out).unwrap_err().to_string();
            assert!(refused.contains(" is in use: "), "{refused}");
            assert!(unfinished.exists());
            drop(first);
        }
    }
}
