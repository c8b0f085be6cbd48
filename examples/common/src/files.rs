//! Files that are either complete or not there: written under another name, synced to disk, then renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

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

/// Where this process writes a file until it is complete: beside its place.
pub fn aside(path: &Path) -> PathBuf {
    let process = std::process::id();
    path.with_file_name(format!("{UNFINISHED}{process}-{}", name(path)))
}

/// Why a write-protected file is left alone, which could be replaced all the same.
fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only")
}

/// Writes a file and waits until its bytes are on the disk.
fn write_synced(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut file = File::create(path)?;
    // Before there is anything in it to read.
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes a file so that a kill at any moment leaves either the old one or the new one. Anything else, such as a pipe, is
/// written directly; for a link, the file that it points to is replaced. The new one has the permissions of the old one.
///
/// # Errors
/// If it cannot be written, or is read-only. The old one is untouched then.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let found = target.metadata().ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        return fs::write(&target, bytes).map_err(FileError::of("write", path));
    }
    let permissions = found.map(|found| found.permissions());
    if permissions.as_ref().is_some_and(Permissions::readonly) {
        return Err(FileError::of("write", path)(read_only()));
    }
    let aside = aside(&target);
    let written =
        write_synced(&aside, bytes, permissions).and_then(|()| fs::rename(&aside, &target));
    if written.is_err() {
        // The reason that is reported is the first failure, not this one.
        let _ = fs::remove_file(&aside);
    }
    // Waits until the name is on the disk, too. If folders cannot be synced, that is left to the system.
    if let Some(Ok(folder)) = target.parent().map(File::open) {
        let _ = folder.sync_all();
    }
    written.map_err(FileError::of("write", path))
}

/// Makes sure that [`replace`] will be able to write a file, before hours of work depend on it. Leaves no trace.
///
/// # Errors
/// If it is a folder or read-only, or its folder is missing or cannot be written into.
pub fn probe(path: &Path) -> Result<(), FileError> {
    let target = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(found) if found.permissions().readonly() => Err(read_only()),
        Ok(_) => fs::canonicalize(path),
        Err(_) => File::create_new(path)
            .and_then(|_| fs::remove_file(path))
            .map(|()| path.to_path_buf()),
    };
    let probed = target.and_then(|target| {
        let aside = aside(&target);
        File::create(&aside)?;
        fs::remove_file(aside)
    });
    probed.map_err(FileError::of("write", path))
}

/// [`probe`] for the files of options, each with its name.
///
/// # Errors
/// If a file cannot be written, is one of the `inputs`, or is that of two options, however their paths are written.
pub fn probe_outputs<'a>(
    options: &[(&str, &Option<PathBuf>)],
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Error> {
    let inputs: Vec<_> = inputs.into_iter().filter_map(|path| place(path)).collect();
    let given = options.iter();
    let given = given.filter_map(|&(option, path)| Some((option, path.as_ref()?)));
    let mut places: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in given.clone() {
        let Some(place) = place(path) else { continue };
        let file = path.display();
        if inputs.contains(&place) {
            return Err(format!("{option} would overwrite {file}").into());
        }
        if let Some((other, _)) = places.iter().find(|(_, other)| *other == place) {
            return Err(format!("{other} and {option} name the same file, {file}").into());
        }
        places.push((option, place));
    }
    let mut paths = given.map(|(_, path)| path);
    Ok(paths.try_for_each(|path| probe(path))?)
}

/// Where a file is or will be, without links; `None` for what [`replace`] does not replace, such as a pipe.
fn place(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(found) => found.is_file().then_some(found),
        Err(_) => {
            let path = Path::new(".").join(path);
            let folder = path.parent()?.canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        }
    }
}

#[cfg(test)]
mod tests;
