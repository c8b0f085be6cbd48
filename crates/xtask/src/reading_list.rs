//! CONTRIBUTING's list of the files to read for one call of attention is short, and leaves out nothing that the call needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{
    command::{read, root},
    imports::Sources,
};

const HEADING: &str = "## Reading one call";
const MOST_FILES: usize = 16;
/// Folders of the crates that the call goes through, above the kernels, and their names.
const CRATES: [(&str, &str); 2] = [
    ("crates/nn/src", "burn_attn"),
    ("crates/ops/src", "burn_attn_ops"),
];

/// Fails if there is none or more than [`MOST_FILES`], if one of them is not connected to those before it by an import, or if it
/// imports a file that is neither in the table nor named below it.
pub fn check() -> Result<(), String> {
    let text = read(&root().join("CONTRIBUTING.md"))?;
    let (_, section) = text
        .split_once(HEADING)
        .ok_or_else(|| format!("CONTRIBUTING.md has no {HEADING:?}"))?;
    let section = section.split("\n## ").next().unwrap_or("");
    let (rows, rest): (Vec<_>, Vec<_>) = section.lines().partition(|line| line.starts_with('|'));
    let files: Vec<&str> = rows.iter().flat_map(|row| paths(row).take(1)).collect();
    let left_out: Vec<&str> = rest.iter().flat_map(|line| paths(line)).collect();
    let count = files.len();
    if !(1..=MOST_FILES).contains(&count) {
        return Err(format!(
            "{HEADING} has {count} files in its table, not 1 to {MOST_FILES}"
        ));
    }
    let imports = imports()?;
    let mut missing = Vec::new();
    for (index, &file) in files.iter().enumerate() {
        let imported = imports
            .get(file)
            .ok_or_else(|| format!("{HEADING} lists {file}, which is no file of these crates"))?;
        let connected = files[..index]
            .iter()
            .any(|&earlier| imported.contains(earlier) || imports[earlier].contains(file));
        if index > 0 && !connected {
            return Err(format!(
                "{HEADING}: no file before {file} imports it or is imported by it"
            ));
        }
        let known = |other: &str| {
            let is_in = |path: &&str| Path::new(other).starts_with(path);
            files.contains(&other) || left_out.iter().any(is_in)
        };
        let unknown = imported.iter().filter(|other| !known(other));
        missing.extend(unknown.map(|other| format!("{other} (by {file})")));
    }
    match missing.join(", ") {
        none if none.is_empty() => Ok(()),
        some => Err(format!("{HEADING} does not list imported files: {some}")),
    }
}

/// The paths in backquotes.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| quoted.starts_with("crates/"))
}

/// The files that every file of [`CRATES`] imports.
fn imports() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let sources = Sources::new(&CRATES)?;
    let imports = sources.modules().map(|module| {
        let imported = sources.imports(module);
        let imported = imported.iter().map(|module| sources.path(module));
        (sources.path(module), imported.collect())
    });
    Ok(imports.collect())
}
