//! No file of a crate imports itself, not even through others, so that a crate can be read from the bottom up.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, iter,
};

use crate::{
    command::{at, root},
    lengths::{is_rust, is_test, visit},
};

/// A module's path, which begins with the name of its crate.
pub type Module = Vec<String>;

/// The files of some crates, and where the names that a file passes on come from.
pub struct Sources {
    files: BTreeMap<Module, File>,
    passed_on: BTreeMap<(Module, String), Module>,
}

struct File {
    /// From the workspace's root.
    path: String,
    /// Whether it is a table of contents (`mod.rs`, `lib.rs`).
    is_contents: bool,
    /// The paths of its `use` declarations, and whether they are public.
    uses: Vec<(String, bool)>,
    /// The paths in the middle of its code.
    spelled: Vec<String>,
}

/// Fails if two files of one crate import each other, directly or through others.
///
/// The tables of contents only pass names on: an import through them is one of the file that has the name.
pub fn no_loops() -> Result<(), String> {
    let mut loops = Vec::new();
    for folder in ["crates", "examples"] {
        let there = root().join(folder);
        for entry in fs::read_dir(&there).map_err(at(&there))?.flatten() {
            if entry.path().join("src").is_dir() {
                // No path in the code begins with such a name.
                let name = format!("{folder}/{}", entry.file_name().display());
                loops.extend(Sources::new(&[(&format!("{name}/src"), &name)])?.loops());
            }
        }
    }
    match loops.join("; ") {
        none if none.is_empty() => Ok(()),
        some => Err(format!("files that import each other: {some}")),
    }
}

impl Sources {
    /// The files of crates, each given by the folder with its code and its name.
    pub fn new(crates: &[(&str, &str)]) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        for (folder, name) in crates {
            visit(folder.as_ref(), &mut |path, text| {
                // Tests may import what they like.
                if !is_rust(path) || is_test(path) {
                    return;
                }
                let inside = path.strip_prefix(folder).unwrap_or(path).with_extension("");
                let inside = inside
                    .iter()
                    .map(|part| part.to_string_lossy().into_owned());
                let mut module: Module = iter::once(name.to_string()).chain(inside).collect();
                let contents = module.pop_if(|last| ["mod", "lib"].contains(&last.as_str()));
                let code = |line: &str| line.split("//").next().unwrap_or("").to_string();
                let lines = text.lines().map(code).collect::<Vec<_>>().join("\n");
                let code = lines.split("mod tests {").next().unwrap_or("");
                let file = File {
                    path: path.display().to_string(),
                    is_contents: contents.is_some(),
                    uses: uses(code),
                    spelled: spelled(code),
                };
                files.insert(module, file);
            })?;
        }
        let mut sources = Self {
            files,
            passed_on: BTreeMap::new(),
        };
        // A name may be passed on by several tables of contents.
        for _ in 0..3 {
            sources.follow();
        }
        Ok(sources)
    }

    /// Learns where the names come from that files pass on.
    fn follow(&mut self) {
        for (module, file) in &self.files {
            for (path, _) in file.uses.iter().filter(|(_, public)| *public) {
                if let Some(target) = self.resolve(module, path) {
                    let name = path.rsplit("::").next().unwrap_or_default().to_string();
                    self.passed_on.insert((module.clone(), name), target);
                }
            }
        }
    }

    /// The groups of files that import each other.
    fn loops(&self) -> BTreeSet<String> {
        let imports = self.modules().map(|module| (module, self.imports(module)));
        let imports: BTreeMap<_, _> = imports.collect();
        let reached = imports.keys().map(|&from| {
            let (mut found, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(module) = next.pop() {
                let imported = imports[module].iter();
                next.extend(imported.filter(|&module| found.insert(module)));
            }
            (from, found)
        });
        let reached: BTreeMap<_, _> = reached.collect();
        let in_loops = reached
            .keys()
            .filter(|from| reached[*from].contains(**from));
        let groups = in_loops.map(|from| {
            let group = reached[from]
                .iter()
                .filter(|other| reached[**other].contains(from));
            let group = group.map(|module| module.join("::"));
            group.collect::<Vec<_>>().join(", ")
        });
        groups.collect()
    }

    /// The files whose names a file uses.
    pub fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let file = &self.files[module];
        let uses = file.uses.iter();
        let imported = uses.filter(|(_, public)| !(*public && file.is_contents));
        let imported = imported.map(|(path, _)| path).chain(&file.spelled);
        let mut targets: BTreeSet<_> = imported
            .filter_map(|path| self.resolve(module, path))
            .collect();
        targets.remove(module);
        targets
    }

    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.files.keys()
    }

    /// The path of a file, from the workspace's root.
    pub fn path(&self, module: &Module) -> String {
        self.files[module].path.clone()
    }

    /// The file that has what a path in `module` names; nothing if that is in none of these crates.
    fn resolve(&self, module: &Module, path: &str) -> Option<Module> {
        let mut parts = path.split("::").peekable();
        let mut at = module.clone();
        match *parts.peek()? {
            "crate" => {
                at.truncate(1);
                parts.next();
            }
            "self" => {
                parts.next();
            }
            "super" => {
                while parts.next_if_eq(&"super").is_some() {
                    at.pop();
                }
            }
            first if self.files.contains_key(&child(&at, first)) => {}
            first => {
                at = vec![first.to_string()];
                parts.next();
            }
        }
        while let Some(next) = parts.next_if(|part| self.files.contains_key(&child(&at, part))) {
            at.push(next.to_string());
        }
        let name = parts.next().unwrap_or_default().to_string();
        let passed_on = self.passed_on.get(&(at.clone(), name));
        let found = passed_on.cloned().unwrap_or(at);
        self.files.contains_key(&found).then_some(found)
    }
}

fn child(module: &Module, name: &str) -> Module {
    let mut child = module.clone();
    child.push(name.to_string());
    child
}

/// The paths in `code`, but for its `use` declarations, that may begin with a module: its crate, `crate`, `super`, or a child.
fn spelled(code: &str) -> Vec<String> {
    let mut rest = code.to_string();
    for (at, end, _) in declarations(code) {
        rest.replace_range(at..end, &" ".repeat(end - at));
    }
    let words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let paths = words.filter(|word| word.contains("::"));
    let modules = paths.filter(|path| path.starts_with(|c: char| c.is_lowercase()));
    modules.map(Into::into).collect()
}

/// The paths of all `use` declarations, and whether they are public.
fn uses(code: &str) -> Vec<(String, bool)> {
    let mut paths = Vec::new();
    for (at, end, public) in declarations(code) {
        // Words are apart only in `a as b`, which is `a`.
        let mut words = code[at + 4..end].split_whitespace();
        let mut tree = String::new();
        while let Some(word) = words.next() {
            match word {
                "as" => tree.extend(words.next().map(|name| {
                    name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                })),
                word => tree += word,
            }
        }
        expand("", &tree, &mut |path| paths.push((path, public)));
    }
    paths
}

/// Where the `use` declarations in `code` are, from the word to the semicolon, and whether they are public.
fn declarations(code: &str) -> impl Iterator<Item = (usize, usize, bool)> {
    code.match_indices("use ").filter_map(|(at, _)| {
        let before = code[..at].rsplit('\n').next().unwrap_or("").trim();
        let public = before.starts_with("pub");
        let len = code[at..].find(';')?;
        (public || before.is_empty()).then_some((at, at + len, public))
    })
}

/// Calls `found` with every path of `a::{b, c::{d, e}}`.
fn expand(prefix: &str, tree: &str, found: &mut dyn FnMut(String)) {
    let Some((start, rest)) = tree.split_once('{') else {
        found(format!("{prefix}{tree}"));
        return;
    };
    let (prefix, rest) = (format!("{prefix}{start}"), &rest[..rest.len() - 1]);
    let (mut depth, mut from) = (0, 0);
    for (at, c) in rest.char_indices().chain([(rest.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if from < at {
                    expand(&prefix, &rest[from..at], found);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
