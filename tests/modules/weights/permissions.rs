//! Who can read what was saved.

#![cfg(unix)]

use std::{fs, os::unix::fs::PermissionsExt};

use burn_attn_models::weights::{Table, save};
use burn_attn_tests::numbers::filled;

use super::{folder, model};

/// Whoever can read a file that was written in place: the umask says.
#[test]
fn saved_files_are_readable_as_the_umask_says() {
    let folder = folder();
    let [written, saved] = ["written", "saved"].map(|name| folder.path().join(name));
    let mode = |path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    fs::write(&written, "in place").expect("written");
    let table = Table::new().row("vectors.0", "a");
    let ours = filled(model(&[5], &[], &[]), 1);
    // A new file, and one in the place of another.
    for _ in 0..2 {
        save(&table, &ours, &saved).expect("saved");
        assert_eq!(mode(&saved), mode(&written));
        fs::set_permissions(&saved, fs::Permissions::from_mode(0o400)).expect("set");
    }
    let files = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 2, "no other file is left");
}
