//! Files stay short.

use std::{fs, io, path::Path};

use crate::command::root;

/// A file over this many lines wants a second idea moved out.
const LONGEST_FILE: usize = 600;
/// The files that people write.
const SOURCES: [&str; 5] = ["rs", "js", "css", "html", "py"];

/// Fails if a source file has grown over [`LONGEST_FILE`] lines.
pub fn short_files() -> Result<(), String> {
    let mut long = Vec::new();
    for folder in ["crates", "examples", "tests"] {
        visit(&root().join(folder), &mut |path| {
            let lines = fs::read_to_string(path)?.lines().count();
            if lines > LONGEST_FILE {
                long.push(format!("{} has {lines} lines", path.display()));
            }
            Ok(())
        })?;
    }
    if long.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "at most {LONGEST_FILE} lines a file: {}",
            long.join(", ")
        ))
    }
}

/// Calls `look` on every source file below `folder`, except what cargo built there.
pub fn visit(folder: &Path, look: &mut impl FnMut(&Path) -> io::Result<()>) -> Result<(), String> {
    let read = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(folder).map_err(|error| read(folder, error))? {
        let path = entry.map_err(|error| read(folder, error))?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                visit(&path, look)?;
            }
        } else if extension.is_some_and(|extension| SOURCES.contains(&extension)) {
            look(&path).map_err(|error| read(&path, error))?;
        }
    }
    Ok(())
}
