//! A run that was killed goes on as if nothing had happened.

use std::{fs, path::Path};

use super::{printed, small, started, text, wait_for};

/// The loss curve of a run, as its newest checkpoint has stored it.
fn curve(out: &Path) -> serde_json::Value {
    let file = fs::read(out.join("newest.checkpoint")).unwrap();
    let line = file.split(|&byte| byte == b'\n').next().unwrap();
    let header: serde_json::Value = serde_json::from_slice(line).unwrap();
    header["state"]["curve"].clone()
}

/// Killed wherever it is, on one device and on two.
#[test]
fn a_run_that_was_killed_and_resumed_has_the_curve_of_one_that_was_not() {
    for devices in ["flex", "flex,flex"] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        text(folder);
        // All epochs are trained, whether or not the loss still falls.
        let both = ["--devices", devices];
        let args = [&small()[..], &["--epochs", "4", "--patience", "4"], &both].concat();
        let begin = |out| [&["train", "text.txt", "--out", out][..], &args].concat();
        printed(folder, &begin("straight"));
        for kill in 0.. {
            let resume = ["train", "text.txt", "--out", "run", "--resume"];
            let args = match folder.join("run/newest.checkpoint").exists() {
                true => [&resume[..], &both].concat(),
                false => begin("run"),
            };
            if kill == 3 {
                printed(folder, &args);
                break;
            }
            let (mut training, mut lines) = started(folder, &args);
            // After the first epoch, and in the middle of a later one.
            wait_for(": valid,", &mut lines);
            std::thread::sleep(std::time::Duration::from_millis(7 * kill));
            training.kill().unwrap();
            training.wait().unwrap();
        }
        let [run, straight] = ["run", "straight"].map(|out| curve(&folder.join(out)));
        assert_eq!(straight.as_array().unwrap().len(), 4);
        assert_eq!(run, straight, "{devices}");
    }
}
