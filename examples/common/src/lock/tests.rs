//! One training in a folder, which finds nothing unfinished.

use super::*;
use crate::files;

#[test]
#[cfg(unix)]
fn a_file_system_without_locks_is_trained_on() {
    let locked_by = |code| {
        let error = io::Error::from_raw_os_error(code);
        locked(Err(TryLockError::Error(error)), Path::new("run"))
    };
    locked_by(libc::ENOSYS).unwrap();
    locked_by(libc::ENOLCK).unwrap();
    let error = locked_by(libc::EIO).unwrap_err().to_string();
    assert!(error.starts_with("cannot lock run: "), "{error}");
}

#[test]
fn a_folder_has_one_training_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    free(&out).unwrap();
    assert!(!out.exists(), "looking creates nothing");
    for _ in 0..2 {
        let first = lock(&out).unwrap();
        let refused = format!(
            "{} is in use: another training writes into it; wait until it has ended, or name another folder with --out",
            out.display()
        );
        assert_eq!(free(&out).unwrap_err().to_string(), refused);
        assert_eq!(lock(&out).unwrap_err().to_string(), refused);
        drop(first);
        free(&out).unwrap();
    }
}

#[test]
fn what_is_no_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run");
    fs::write(&file, "a file").unwrap();
    free(&file).unwrap();
    let error = lock(&file).unwrap_err().to_string();
    let begins = format!("cannot create {}: ", file.display());
    assert!(error.starts_with(&begins), "{error}");
}

#[test]
fn whatever_a_kill_has_left_unfinished_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| fs::write(folder.path().join(name), "half").unwrap();
    write(".unfinished-newest.checkpoint");
    write(".unfinished-report.json");
    write("report.json");
    let _lock = prepare(folder.path()).unwrap();
    let mut left: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| name(&entry.unwrap().path()))
        .collect();
    left.sort();
    assert_eq!(left, [FILE, "report.json"]);
}

#[test]
fn a_second_training_removes_nothing_of_what_the_first_is_writing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    for _ in 0..2 {
        let first = prepare(&out).unwrap();
        let unfinished = files::aside(&out.join("newest.checkpoint"));
        fs::write(&unfinished, "half").unwrap();
        let refused = prepare(&out).unwrap_err().to_string();
        assert!(refused.contains(" is in use: "), "{refused}");
        assert!(unfinished.exists());
        drop(first);
    }
}
