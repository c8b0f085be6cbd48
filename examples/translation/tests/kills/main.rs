//! What can happen to a training: its checkpoints stay whole, and a resumed run has the loss curve of one to which nothing happened.
//!
//! | file | what happens |
//! | --- | --- |
//! | `random.rs` | it is killed at random moments |
//! | `disks.rs` | the disk is full, or cannot be written |
//! | `two_runs.rs` | another process trains, or reads, in the same folder |

#![cfg(all(unix, feature = "flex"))]

#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod disks;
mod random;
mod two_runs;

use std::path::Path;
use std::process::Command;

use common::{done, header, names, program, train_in_batches};

/// A new run of so many epochs of 3 steps, each of which ends with a checkpoint.
fn begin(folder: &Path, out: &str, epochs: usize, replicas: usize) -> Command {
    let mut command = train_in_batches(folder, out);
    let (epochs, replicas) = (epochs.to_string(), replicas.to_string());
    command.args(["--device", "flex", "--batch", "17"]);
    command.args(["--epochs", &epochs, "--replicas", &replicas]);
    command
}

fn resume(folder: &Path, out: &str) -> Command {
    let mut command = program(folder, out);
    command.args(["--device", "flex", "train", "--resume"]);
    command
}

fn translate(folder: &Path, out: &str) -> Command {
    let mut command = program(folder, out);
    command.args(["--device", "flex", "translate", "1 uno"]);
    command
}

/// The names of what is in the folder of a run, if it is there yet.
fn content(out: &Path) -> Vec<String> {
    match out.exists() {
        true => names(out),
        false => Vec::new(),
    }
}

/// The names of the checkpoints of a run.
fn checkpoints(out: &Path) -> Vec<String> {
    let mut found = content(out);
    found.retain(|name| ["newest.checkpoint", "best.checkpoint"].contains(&name.as_str()));
    found
}

/// Makes sure that the program can read each checkpoint of a run, which it compares with its hash.
fn assert_whole(out: &Path) {
    for name in checkpoints(out) {
        // The program would choose the best one: each is read alone in a folder.
        let alone = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(out.join(&name), alone.path().join(&name)).unwrap();
        done(&mut translate(alone.path(), "."));
    }
}

/// Makes sure that a run which has ended is the same as another, its curve to the bit. The bytes of its model are others, because Burn gives
/// parameters random names.
fn assert_same(out: &Path, straight: &Path) {
    let (ours, expected) = (header(out), header(straight));
    for part in ["curve", "epoch", "step", "tokens", "finished"] {
        assert_eq!(ours["state"][part], expected["state"][part], "{part}");
    }
    // Each replica has an optimizer with its moments.
    let names = |header: &serde_json::Value| -> Vec<String> {
        let parts = header["parts"].as_array().unwrap();
        parts.iter().map(|part| part[0].to_string()).collect()
    };
    assert_eq!(names(&ours), names(&expected));
    assert_eq!(checkpoints(out), checkpoints(straight));
}
