//! What others are given: the crates that ours depend on, and the packages of ours.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Component, Path, PathBuf},
};

use crate::command::{at, cargo, exists, program, read, root, run, skip, text};
use crate::newcomer::outside;

/// Fails if a dependency has a licence or a source that `deny.toml` does not allow, or is one that it bans.
pub fn dependencies() -> Result<(), String> {
    let check = ["--locked", "check", "bans", "licenses", "sources"];
    match exists("cargo-deny") {
        true => run(program("cargo-deny").args(check)),
        false => skip(
            "licences and sources of the dependencies are checked by cargo-deny: `cargo install --locked cargo-deny`",
        ),
    }
}

/// Puts every package together that `cargo publish --workspace` would publish, and builds it.
pub fn put_together() -> Result<(), String> {
    forget_earlier()?;
    // The dry run builds no tests and no examples: `files_are_whole` looks for their files.
    let mut publish = cargo("publish --workspace --dry-run --allow-dirty");
    run(outside(&mut publish))
}

/// Fails if a package that would be published lacks its README or a licence, or names a file that it does not hold.
pub fn files_are_whole() -> Result<(), String> {
    for (name, folder) in published()? {
        let list = format!("package --list --allow-dirty -p {name}");
        let list = text(&mut cargo(&list))?;
        let files: BTreeSet<PathBuf> = list.lines().map(PathBuf::from).collect();
        let size: u64 = files
            .iter()
            .filter_map(|file| fs::metadata(folder.join(file)).ok())
            .map(|metadata| metadata.len())
            .sum();
        eprintln!("{name}: {} files, {} KiB", files.len(), size / 1024);
        for needed in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            if !files.contains(Path::new(needed)) {
                return Err(format!("the package of {name} has no {needed}"));
            }
        }
        let sources = files.iter().filter(|file| {
            let extension = file.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("rs" | "md"))
        });
        for file in sources {
            let path = folder.join(file);
            if let Some(missing) = missing_file(file, &read(&path)?, &files) {
                return Err(format!(
                    "{} names {missing}, which is not in the package of {name}",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}

/// Removes what Cargo unpacked and built of our packages in an earlier dry run. It knows them by the path of this workspace and by their
/// version, and would take them in place of today's.
fn forget_earlier() -> Result<(), String> {
    let published = published()?;
    let mut clean = cargo("clean");
    clean.args(published.iter().flat_map(|(name, _)| ["-p", name]));
    run(outside(&mut clean))?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(env::home_dir()?.join(".cargo"))) else {
        return Ok(());
    };
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else {
        return Ok(());
    };
    for registry in registries.flatten() {
        // The registry's host comes before the hash, and one on this disk has none.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for (name, _) in &published {
            let unpacked = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
            let unpacked = registry.path().join(unpacked);
            if unpacked.exists() {
                fs::remove_dir_all(&unpacked).map_err(at(&unpacked))?;
            }
        }
    }
    Ok(())
}

/// Names and folders of the crates that are published: those that do not inherit `publish = false`.
fn published() -> Result<Vec<(String, PathBuf)>, String> {
    let crates = root().join("crates");
    let mut published = Vec::new();
    for entry in fs::read_dir(&crates).map_err(at(&crates))? {
        let folder = entry.map_err(at(&crates))?.path();
        let text = read(&folder.join("Cargo.toml"))?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = "));
        if let Some(name) = name
            && !text.contains("publish.workspace = true")
        {
            published.push((name.trim_matches('"').to_owned(), folder));
        }
    }
    published.sort();
    Ok(published)
}

/// The first file that `text`, the contents of `file`, reads at compile time or in an example, and that is not among `files`.
fn missing_file(file: &Path, text: &str, files: &BTreeSet<PathBuf>) -> Option<String> {
    const BESIDE: [&str; 4] = [
        "include_str!(\"",
        "include_bytes!(\"",
        "include!(\"",
        "#[path = \"",
    ];
    const FROM_THE_CRATE: &str = "env!(\"CARGO_MANIFEST_DIR\"), \"/";
    let beside = BESIDE.iter().map(|&start| (start, file.parent()));
    let from_the_crate = [(FROM_THE_CRATE, Some(Path::new("")))];
    beside.chain(from_the_crate).find_map(|(start, folder)| {
        text.split(start).skip(1).find_map(|rest| {
            let named = rest.split('"').next()?;
            let missing = resolved(folder?, named).is_none_or(|path| !files.contains(&path));
            missing.then(|| named.to_owned())
        })
    })
}

/// The path of `named` as seen from `folder`, without `..`; `None` outside of the crate.
fn resolved(folder: &Path, named: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(named).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests;
