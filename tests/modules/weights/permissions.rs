//! Who can read what was saved.

#![cfg(unix)]

use std::{fs, os::unix::fs::PermissionsExt};

use burn_attn_models::weights::{Table, save};
use burn_attn_tests::numbers::filled;

use super::{folder, model};

/// Whoever can read a file that was written in place: the umask says, or the file that was there.
#[test]
fn saved_files_are_readable_as_if_written_in_place() {
    let folder = folder();
    let [written, saved] = ["written", "saved"].map(|name| folder.path().join(name));
    let mode = |path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    fs::write(&written, "in place").expect("written");
    let table = Table::new().row("vectors.0", "a");
    let ours = filled(model(&[5], &[], &[]), 1);
    save(&table, &ours, &saved).expect("saved");
    assert_eq!(mode(&saved), mode(&written));
    for replaced in [0o400, 0o600, 0o640] {
        fs::set_permissions(&saved, fs::Permissions::from_mode(replaced)).expect("set");
        save(&table, &ours, &saved).expect("saved");
        assert_eq!(mode(&saved), replaced);
    }
    let files = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 2, "no other file is left");
}
