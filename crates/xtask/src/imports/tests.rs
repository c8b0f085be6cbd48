use super::*;

/// Whether a file of a crate imports another.
fn imports(name: &str, file: &[&str], other: &[&str]) -> bool {
    imports_in("crates", name, file, other)
}

fn imports_in(folder: &str, name: &str, file: &[&str], other: &[&str]) -> bool {
    let sources = Sources::new(&[(&format!("{folder}/{name}/src"), name)]).unwrap();
    let module = |path: &[&str]| {
        [&[name], path]
            .concat()
            .into_iter()
            .map(Into::into)
            .collect()
    };
    sources.imports(&module(file)).contains(&module(other))
}

#[test]
fn every_file_of_rust_is_read_and_no_other() {
    // Beside them are `page.css` and `page.js`.
    assert!(imports("viz", &["page"], &["limits"]));
    assert!(imports(
        "models",
        &["families", "bert", "model"],
        &["families", "bert", "config"]
    ));
}

#[test]
fn names_are_followed_to_their_files() {
    assert!(imports("viz", &["svg"], &["map"]));
    assert!(!imports("viz", &["map"], &["svg"]));
}

#[test]
fn other_names_of_imports_are_left_out() {
    let code = "use super::{heads as own_heads, map::{self as m,\n    Map}};\n";
    let paths: Vec<String> = uses(code).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        ["super::heads", "super::map::self", "super::map::Map"]
    );
}

#[test]
fn children_are_imported_by_their_path_and_by_self() {
    assert!(imports("bench", &["subjects"], &["subjects", "oracle"]));
    let tense = ["grammar", "tense"];
    assert!(imports_in("examples", "toy-corpus", &["grammar"], &tense));
}
