//! Files that are complete or not there.

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(&entry.unwrap().path())).collect();
    names.sort();
    names
}

#[test]
fn a_probe_leaves_no_trace_and_a_replaced_file_no_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    probe(&path).unwrap();
    assert!(names(folder.path()).is_empty());
    for text in ["old", "new"] {
        replace(&path, text.as_bytes()).unwrap();
        probe(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(names(folder.path()), ["report.json"]);
    }
}

#[test]
fn a_file_that_cannot_be_replaced_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    replace(&path, b"old").unwrap();
    // A folder where the new one is to be written aside.
    fs::create_dir(aside(&path)).unwrap();
    assert!(probe(&path).is_err());
    assert!(replace(&path, b"new").is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions_and_a_read_only_one_its_text() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    replace(&path, b"old").unwrap();
    let set = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    set(0o620);
    replace(&path, b"new").unwrap();
    let found = path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(found, 0o620);
    set(0o440);
    for refused in [probe(&path), replace(&path, b"newest")] {
        let error = refused.unwrap_err().to_string();
        assert!(error.ends_with("report.json: it is read-only"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn what_cannot_be_written_is_known_beforehand() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").join("report.json");
    let slash = folder.path().join("missing/");
    for path in [folder.path(), &missing, &slash, Path::new("")] {
        assert!(probe(path).is_err(), "{}", path.display());
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn outputs_are_neither_each_other_nor_inputs() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let path = |name: &str| Some(folder.path().join(name));
    let [a, b] = ["a", "b"].map(path);
    let refused = |second: &Option<PathBuf>, input: &Option<PathBuf>| {
        let outputs = [("--first", &a), ("--second", second)];
        let error = probe_outputs(&outputs, input).err()?.to_string();
        Some(error.replace(&folder.path().display().to_string(), "FOLDER"))
    };
    assert_eq!(refused(&b, &None), None);
    assert_eq!(
        refused(&path("sub/../a"), &None).unwrap(),
        "--first and --second name the same file, FOLDER/sub/../a"
    );
    fs::write(folder.path().join("b"), "input").unwrap();
    assert_eq!(
        refused(&b, &path("sub/../b")).unwrap(),
        "--second would overwrite FOLDER/b"
    );
    assert_eq!(names(folder.path()), ["b", "sub"]);
    if cfg!(unix) {
        let null = Some("/dev/null".into());
        probe_outputs(&[("--first", &null), ("--second", &null)], &null).unwrap();
    }
}
