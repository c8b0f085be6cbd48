//! Files stay short.

use std::{fs, io, path::Path};

use crate::command::root;

/// A file of Rust over this many lines wants a second idea moved out.
const LONGEST_RUST: usize = 400;
/// The same in other languages, in which there are a few single scripts.
const LONGEST_OTHER: usize = 600;
/// The files that people write.
const SOURCES: [&str; 5] = ["rs", "js", "css", "html", "py"];

/// Fails if a source file has grown over [`LONGEST_RUST`] or [`LONGEST_OTHER`] lines.
pub fn short_files() -> Result<(), String> {
    let mut long = Vec::new();
    for folder in ["crates", "examples", "tests"] {
        visit(&root().join(folder), &mut |path| {
            let lines = fs::read_to_string(path)?.lines().count();
            let rust = path.extension().is_some_and(|extension| extension == "rs");
            let longest = if rust { LONGEST_RUST } else { LONGEST_OTHER };
            if lines > longest {
                long.push(format!("{} has {lines} lines", path.display()));
            }
            Ok(())
        })?;
    }
    if long.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "at most {LONGEST_RUST} lines a file of Rust, {LONGEST_OTHER} of anything else: {}",
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
