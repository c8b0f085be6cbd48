//! Files that are either complete or not there: written under another name, synced to disk, then renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How the name of an unfinished file begins.
pub const UNFINISHED: &str = ".unfinished-";

/// A file or folder could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Adds to an I/O error what was tried, such as `read`, and with which file or folder; for `map_err`.
    pub fn of(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            action,
            path: path.into(),
            source,
        }
    }
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Where a file is written until it is complete: beside its place.
pub fn aside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{UNFINISHED}{}", name(path)))
}

/// Writes a file and waits until its bytes are on the disk.
///
/// # Errors
/// If it cannot be written; a part of it may be there.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until the names in a folder are on the disk. If folders cannot be synced, that is left to the system.
pub fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Writes a file so that a kill at any moment leaves either the old one or the new one. Anything else, such as a pipe, is
/// written directly; for a link, the file that it points to is replaced.
///
/// # Errors
/// If it cannot be written. The old one is untouched then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if target.metadata().is_ok_and(|found| !found.is_file()) {
        return fs::write(&target, bytes);
    }
    let aside = aside(&target);
    let written = write_synced(&aside, bytes).and_then(|()| fs::rename(&aside, &target));
    if written.is_err() {
        // The reason that is reported is the first failure, not this one.
        let _ = fs::remove_file(&aside);
    }
    written?;
    if let Some(folder) = target.parent() {
        sync_folder(folder);
    }
    Ok(())
}

/// Makes sure that [`replace`] will be able to write a file, before hours of work depend on it. Leaves no trace.
///
/// # Errors
/// If it is a folder, or its folder is missing or cannot be written into.
pub fn probe(path: &Path) -> io::Result<()> {
    let created = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(_) => fs::canonicalize(path)
            .map(|target| aside(&target))
            .and_then(|aside| File::create(&aside).map(|_| aside)),
        Err(_) => File::create_new(path).map(|_| path.to_path_buf()),
    };
    created.and_then(fs::remove_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(&entry.unwrap().path())).collect();
        names.sort();
        names
    }

    #[test]
    fn a_probe_leaves_no_trace_and_a_replaced_file_no_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        probe(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        for text in ["old", "new"] {
            replace(&path, text.as_bytes()).unwrap();
            probe(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["report.json"]);
        }
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        replace(&path, b"old").unwrap();
        // A folder where the new one is to be written aside.
        fs::create_dir(aside(&path)).unwrap();
        assert!(probe(&path).is_err());
        assert!(replace(&path, b"new").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn what_cannot_be_written_is_known_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing").join("report.json");
        let slash = folder.path().join("missing/");
        for path in [folder.path(), &missing, &slash, Path::new("")] {
            assert!(probe(path).is_err(), "{}", path.display());
        }
        assert!(names(folder.path()).is_empty());
    }
}
