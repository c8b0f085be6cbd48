//! The guide: built by mdBook, with the explorer beside it, and opened in a Chromium.

use std::{fs, path::Path};

use crate::command::{at, root, run, tool};
use crate::page::script;

/// Builds the guide into `target/book`.
pub fn build() -> Result<(), String> {
    let built = root().join("target/book");
    if built.exists() {
        fs::remove_dir_all(&built).map_err(at(&built))?;
    }
    tool("mdbook", &["build", "book"])?;
    if !built.exists() {
        return Ok(());
    }
    copy(
        &root().join("examples/explorer/page"),
        &built.join("explorer"),
    )
}

/// Builds the guide, and looks at every chapter and figure of it.
pub fn check() -> Result<(), String> {
    build()?;
    match script("the guide", "book/check.mjs")? {
        Some(mut check) if root().join("target/book").exists() => run(&mut check),
        _ => Ok(()),
    }
}

/// Copies the files of a folder, and those of the folders in it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let path = entry.map_err(at(from))?.path();
        let copied = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &copied)?;
        } else {
            fs::copy(&path, &copied).map_err(at(&path))?;
        }
    }
    Ok(())
}
