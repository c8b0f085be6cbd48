//! One training at a time in the folder of a run; others may read it meanwhile.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use crate::files::FileError;

/// The file that a training locks. It stays: if it were removed, one training could lock it just before and another its
/// successor.
pub const FILE: &str = ".lock";

/// Keeps other trainings out of a folder. The system gives it back when the process ends, even if that is killed.
#[must_use = "it is given back when it is dropped"]
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a folder cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process trains in it.
    #[error(
        "{} is in use: another training writes into it; wait until it has ended, or name another folder with --out",
        .0.display()
    )]
    InUse(PathBuf),
    /// It cannot be created or written into, or its file system fails.
    #[error(transparent)]
    Folder(#[from] FileError),
}

/// Makes sure that nothing is training in a folder, without creating anything: the folder may be a typing error.
///
/// # Errors
/// If something is.
pub fn free(folder: &Path) -> Result<(), LockError> {
    match File::open(folder.join(FILE)) {
        // Two that only look do not hinder each other.
        Ok(file) => locked(file.try_lock_shared(), folder),
        // Nothing has trained there. If it is there and cannot be opened, `lock` says why.
        Err(_) => Ok(()),
    }
}

/// Locks a folder, which is created if it is not there.
///
/// # Errors
/// If something is training there, or the folder cannot be written into.
pub fn lock(folder: &Path) -> Result<Lock, LockError> {
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

/// What it means that a folder could, or could not, be locked.
fn locked(result: Result<(), TryLockError>, folder: &Path) -> Result<(), LockError> {
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(LockError::InUse(folder.to_path_buf())),
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
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_system_without_locks_is_trained_on() {
        let locked_by = |code| {
            let error = io::Error::from_raw_os_error(code);
            locked(Err(TryLockError::Error(error)), Path::new("run"))
        };
        locked_by(libc::ENOSYS).unwrap();
        locked_by(libc::ENOLCK).unwrap();
        let error = locked_by(libc::EIO).unwrap_err().to_string();
        assert!(error.starts_with("cannot lock run: "), "{error}");
    }

    #[test]
    fn a_folder_has_one_training_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        free(&out).unwrap();
        assert!(!out.exists(), "looking creates nothing");
        for _ in 0..2 {
            let first = lock(&out).unwrap();
            let refused = format!(
                "{} is in use: another training writes into it; wait until it has ended, or name another folder with --out",
                out.display()
            );
            assert_eq!(free(&out).unwrap_err().to_string(), refused);
            assert_eq!(lock(&out).unwrap_err().to_string(), refused);
            drop(first);
            free(&out).unwrap();
        }
    }

    #[test]
    fn what_is_no_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run");
        fs::write(&file, "a file").unwrap();
        free(&file).unwrap();
        let error = lock(&file).unwrap_err().to_string();
        let begins = format!("cannot create {}: ", file.display());
        assert!(error.starts_with(&begins), "{error}");
    }
}
