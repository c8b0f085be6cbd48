//! One training at a time in the folder of a run; others may read it meanwhile.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use crate::{
    error::Error,
    files::{FileError, UNFINISHED, name},
};

/// The file that a training locks. It stays: if it were removed, one training could lock the removed file and another the
/// next file of that name.
pub const FILE: &str = ".lock";

/// Keeps other trainings out of a folder. The system releases the lock when the process ends, even when it is killed.
#[must_use = "it is given back when it is dropped"]
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Makes sure that nothing is training in a folder, without creating anything: the folder may be a typing error.
///
/// # Errors
/// If something is.
pub fn free(folder: &Path) -> Result<(), Error> {
    match File::open(folder.join(FILE)) {
        // Processes that only look do not block each other.
        Ok(file) => locked(file.try_lock_shared(), folder),
        // Nothing has trained there. If it is there and cannot be opened, `lock` says why.
        Err(_) => Ok(()),
    }
}

/// Locks a folder, which is created if it is not there.
///
/// # Errors
/// If something is training there, or the folder cannot be written into.
pub fn lock(folder: &Path) -> Result<Lock, Error> {
    fs::create_dir_all(folder).map_err(FileError::of("create", folder))?;
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.join(FILE))
        .map_err(FileError::of("write into", folder))?;
    locked(file.try_lock(), folder)?;
    Ok(Lock { _file: file })
}

/// [Locks](lock) the folder of a run and [cleans](clean) it.
///
/// # Errors
/// If something is training there, or the folder cannot be written.
pub fn prepare(folder: &Path) -> Result<Lock, Error> {
    let lock = lock(folder)?;
    clean(folder)?;
    Ok(lock)
}

/// Removes what killed runs have left unfinished in a locked folder, and makes sure that checkpoints can be written, before hours of work depend on it.
///
/// # Errors
/// If the folder cannot be written.
pub fn clean(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(FileError::of("read", folder))? {
        let path = entry.map_err(FileError::of("read", folder))?.path();
        if name(&path).starts_with(UNFINISHED) {
            fs::remove_file(&path).map_err(FileError::of("remove", &path))?;
        }
    }
    let probe = folder.join(format!("{UNFINISHED}probe"));
    let probed = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    Ok(probed.map_err(FileError::of("write into", folder))?)
}

/// What it means that a folder could, or could not, be locked.
fn locked(result: Result<(), TryLockError>, folder: &Path) -> Result<(), Error> {
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(format!(
            "{} is in use: another training writes into it; wait until it has ended, or name another folder with --out",
            folder.display()
        )
        .into()),
        // Some file systems in networks have no locks, which is no reason not to train there.
        Err(TryLockError::Error(error)) if has_no_locks(&error) => Ok(()),
        Err(TryLockError::Error(error)) => Err(FileError::of("lock", folder)(error).into()),
    }
}

/// Whether a file system has no locks; NFS without its lock service says that none are available.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOLCK) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

#[cfg(test)]
mod tests;
