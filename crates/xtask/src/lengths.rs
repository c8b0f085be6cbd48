//! Files stay short, and how many lines each crate has.

use std::{collections::BTreeMap, fs, path::Path};

use crate::command::{at, read, root};

/// A file of Rust has at most this many lines: a longer one has a second idea.
const LONGEST_RUST: usize = 400;
/// A file in another language has at most this many lines: there, a script is one file.
const LONGEST_OTHER: usize = 600;
/// The files that people write.
const SOURCES: [&str; 8] = ["rs", "js", "mjs", "css", "html", "py", "cpp", "h"];

/// Fails if a source file has grown over [`LONGEST_RUST`] or [`LONGEST_OTHER`] lines.
pub fn short_files() -> Result<(), String> {
    let mut long = Vec::new();
    for folder in ["book", "crates", "examples", "tests"] {
        visit(folder.as_ref(), &mut |path, text| {
            let (lines, longest) = match is_rust(path) {
                true => (text.lines().count(), LONGEST_RUST),
                false => (text.lines().count(), LONGEST_OTHER),
            };
            if lines > longest {
                long.push(format!("{} has {lines} lines", path.display()));
            }
        })?;
    }
    match long.join(", ") {
        none if none.is_empty() => Ok(()),
        some => Err(format!(
            "at most {LONGEST_RUST} lines a file of Rust, {LONGEST_OTHER} of anything else: {some}"
        )),
    }
}

/// Prints the lines of Rust of every crate: source, and tests.
pub fn sizes() -> Result<(), String> {
    let mut sizes: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (folder, depth) in [("crates", 2), ("examples", 2), ("tests", 1)] {
        visit(folder.as_ref(), &mut |path, text| {
            if is_rust(path) {
                let parts = path.iter().take(depth).map(|part| part.to_string_lossy());
                let room = parts.collect::<Vec<_>>().join("/");
                let size = sizes.entry(room).or_default();
                size[usize::from(is_test(path))] += text.lines().count();
            }
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

pub fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Whether a file is below `tests` or named `tests.rs`.
pub fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs")
}

/// Calls `look` with every source file below `folder`, except what cargo built there: its path from the workspace's root, and its text.
pub fn visit(folder: &Path, look: &mut impl FnMut(&Path, &str)) -> Result<(), String> {
    let there = root().join(folder);
    for entry in fs::read_dir(&there).map_err(at(&there))? {
        let path = entry.map_err(at(&there))?.path();
        let inside = path.strip_prefix(root()).unwrap_or(&path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            if !path.ends_with("target") {
                visit(inside, look)?;
            }
        } else if extension.is_some_and(|extension| SOURCES.contains(&extension)) {
            look(inside, &read(&path)?);
        }
    }
    Ok(())
}
