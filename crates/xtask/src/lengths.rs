//! Files stay short, and how many lines each crate has.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::command::{at, root};

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
    match long.join(", ") {
        none if none.is_empty() => Ok(()),
        some => Err(format!(
            "at most {LONGEST_RUST} lines a file of Rust, {LONGEST_OTHER} of anything else: {some}"
        )),
    }
}

/// Prints the lines of Rust of every crate: source, and tests (files below `tests` or named `tests.rs`).
pub fn sizes() -> Result<(), String> {
    let mut sizes: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for folder in ["crates", "examples", "tests"] {
        visit(&root().join(folder), &mut |path| {
            let inside = path.strip_prefix(root()).unwrap_or(path);
            if inside.extension().is_some_and(|end| end == "rs") {
                let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
                let room = match folder {
                    "tests" => folder.to_string(),
                    _ => parts[..2].join("/"),
                };
                let tests = parts
                    .iter()
                    .any(|part| ["tests", "tests.rs"].contains(&&**part));
                let lines = fs::read_to_string(path)?.lines().count();
                sizes.entry(room).or_default()[usize::from(tests)] += lines;
            }
            Ok(())
        })?;
    }
    let print = |room: &str, [source, tests]: [usize; 2]| println!("{room:26}{source:8}{tests:8}");
    println!("{:26}{:>8}{:>8}", "lines of Rust", "source", "tests");
    for (room, size) in &sizes {
        print(room, *size);
    }
    let total = |kind: usize| sizes.values().map(|size| size[kind]).sum();
    print("all", [total(0), total(1)]);
    Ok(())
}

/// Calls `look` on every source file below `folder`, except what cargo built there.
pub fn visit(folder: &Path, look: &mut impl FnMut(&Path) -> io::Result<()>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                visit(&path, look)?;
            }
        } else if extension.is_some_and(|extension| SOURCES.contains(&extension)) {
            look(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}
