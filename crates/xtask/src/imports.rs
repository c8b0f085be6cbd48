//! No file of a crate imports itself, not even through others: whoever reads one from the bottom up meets every name once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::{
    command::{at, root},
    lengths::{is_rust, is_test, visit},
};

/// A module's path from the crate's root, without `crate`.
pub type Module = Vec<String>;

/// The files of a crate, their code, and where the names that a file passes on come from.
pub struct Sources {
    code: BTreeMap<Module, String>,
    passed_on: BTreeMap<(Module, String), Module>,
}

/// Fails if two files of one crate import each other, directly or through others.
///
/// The tables of contents (`mod.rs`, `lib.rs`) only pass names on: an import through them is one of the file that has the name.
pub fn no_loops() -> Result<(), String> {
    let mut loops = Vec::new();
    for folder in ["crates", "examples"] {
        let there = root().join(folder);
        for entry in fs::read_dir(&there).map_err(at(&there))?.flatten() {
            if entry.path().join("src").is_dir() {
                let source = Path::new(folder).join(entry.file_name()).join("src");
                loops.extend(loops_of(&source)?);
            }
        }
    }
    match loops.join("; ") {
        none if none.is_empty() => Ok(()),
        some => Err(format!("files that import each other: {some}")),
    }
}

/// The groups of files of a crate, below this folder, that import each other.
fn loops_of(folder: &Path) -> Result<Vec<String>, String> {
    let sources = Sources::new(folder)?;
    let imports: BTreeMap<_, _> = sources
        .modules()
        .map(|module| (module, sources.imports(module)))
        .collect();
    let mut reached = BTreeMap::new();
    for &from in imports.keys() {
        let (mut found, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            let imported = imports[module].iter();
            next.extend(imported.filter(|&module| found.insert(module)));
        }
        reached.insert(from, found);
    }
    let groups: BTreeSet<Vec<_>> = reached
        .iter()
        .filter(|(module, reached)| reached.contains(*module))
        .map(|(module, others)| {
            let mutual = |other: &&&Module| reached[**other].contains(module);
            let group = others.iter().filter(mutual);
            group.map(|module| module.join("::")).collect()
        })
        .collect();
    let groups = groups.into_iter().map(|group| group.join(", "));
    Ok(groups
        .map(|group| format!("{}: {group}", folder.display()))
        .collect())
}

impl Sources {
    /// Those below the folder `src` of a crate.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        visit(folder, &mut |path, text| {
            // Tests may import what they like.
            if !is_rust(path) || is_test(path) || path.ends_with("model.rs") {
                return;
            }
            let inside = path.strip_prefix(folder).unwrap_or(path).with_extension("");
            let parts = inside.iter().map(|part| part.to_string_lossy());
            let mut module: Module = parts.map(Into::into).collect();
            let mark = match module.pop_if(|last| ["mod", "lib"].contains(&last.as_str())) {
                Some(_) => CONTENTS,
                None => "",
            };
            let code = |line: &str| line.split("//").next().unwrap_or("").to_string();
            let lines = text.lines().map(code).collect::<Vec<_>>().join("\n");
            let end = lines.find("mod tests {").unwrap_or(lines.len());
            files.insert(module, format!("{mark}{}", &lines[..end]));
        })?;
        let mut sources = Self {
            code: files,
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
        for (module, code) in &self.code {
            for (path, public) in uses(code) {
                if let (true, Some(target)) = (public, self.resolve(module, &path)) {
                    let name = path.rsplit("::").next().unwrap_or_default().to_string();
                    self.passed_on.insert((module.clone(), name), target);
                }
            }
        }
    }

    /// The files whose names a file uses.
    pub fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let code = &self.code[module];
        let imported = uses(code)
            .into_iter()
            .filter(|(_, public)| !(*public && code.starts_with(CONTENTS)))
            .map(|(path, _)| path);
        // Paths in the middle of the code.
        let spelled = ["super::", "crate::"]
            .into_iter()
            .flat_map(|start| spelled(code, start));
        let mut targets: BTreeSet<_> = imported
            .chain(spelled)
            .filter_map(|path| self.resolve(module, &path))
            .collect();
        targets.remove(module);
        targets
    }

    /// The files of this crate whose names `code` uses, which is another crate's and calls this one `name`.
    pub fn imports_from_outside(&self, name: &str, code: &str) -> BTreeSet<Module> {
        let prefix = format!("{name}::");
        let imported = uses(code).into_iter().map(|(path, _)| path);
        let imported = imported.chain(spelled(code, &prefix));
        let inside = imported.filter_map(|path| Some(path.strip_prefix(&prefix)?.to_string()));
        inside
            .filter_map(|path| self.resolve(&Vec::new(), &format!("crate::{path}")))
            .collect()
    }

    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.code.keys()
    }

    /// The code of a file, without its comments and its tests.
    pub fn code(&self, module: &Module) -> &str {
        &self.code[module]
    }

    /// The file that has what a path in `module` names; nothing if that is another crate's.
    fn resolve(&self, module: &Module, path: &str) -> Option<Module> {
        let mut parts = path.split("::").peekable();
        let mut at = module.clone();
        let first = *parts.peek()?;
        if first == "crate" {
            at.clear();
            parts.next();
        } else if first == "super" {
            while parts.next_if_eq(&"super").is_some() {
                at.pop();
            }
        } else if !self.code.contains_key(&child(&at, first)) {
            return None;
        }
        while let Some(next) = parts.next_if(|part| self.code.contains_key(&child(&at, part))) {
            at.push(next.to_string());
        }
        let name = parts.next().unwrap_or_default().to_string();
        let passed_on = self.passed_on.get(&(at.clone(), name));
        Some(passed_on.cloned().unwrap_or(at))
    }
}

/// What the code of a table of contents begins with.
const CONTENTS: &str = "\0";

fn child(module: &Module, name: &str) -> Module {
    let mut child = module.clone();
    child.push(name.to_string());
    child
}

/// The paths in `code` that begin with `start`.
fn spelled<'a>(code: &'a str, start: &'a str) -> impl Iterator<Item = String> + 'a {
    let paths = code.match_indices(start).map(|(at, _)| {
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let rest = &code[at..];
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        rest[..end].to_string()
    });
    // `use super::{..}` is spelled `super::` as well, which names no file of its own.
    paths.filter(|path| !path.ends_with(':'))
}

/// The paths of all `use` declarations, and whether they are public.
fn uses(code: &str) -> Vec<(String, bool)> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rsplit(['\n', '\0']).next().unwrap_or("").trim();
        if let (true, Some(tree)) = (
            line.is_empty() || line.starts_with("pub"),
            code[at + 4..].split(';').next(),
        ) {
            let tree: String = tree.chars().filter(|c| !c.is_whitespace()).collect();
            expand("", &tree, &mut |path| {
                paths.push((path, line.starts_with("pub")));
            });
        }
    }
    paths
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
