//! A full disk and one that cannot be written: a file system in memory, which Linux lets root mount.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::common::{done, names, program, refused, text};
use super::{assert_same, assert_whole, begin, checkpoints, resume, translate};

const EPOCHS: usize = 4;

/// A file system that lies in memory and is gone with this.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// `None` where this user may not mount one; the reason is printed even if the test's output is not shown.
    fn mount(kib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self { folder });
        }
        skip("this user cannot mount a file system");
        None
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{options}")]);
        done(mount.arg(self.folder.path()));
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

/// Prints past the test harness, which captures what macros print.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// The space that a file takes (KiB), in blocks of 4 KiB.
fn room(file: &Path) -> u64 {
    4 * fs::metadata(file).unwrap().len().div_ceil(4096)
}

#[test]
fn a_full_disk_ends_the_run_and_more_room_lets_it_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&mut begin(folder, "straight", EPOCHS, 2));
    let straight = folder.join("straight");
    let checkpoint = room(&straight.join("newest.checkpoint"));
    // Room for half a checkpoint, and for one and a half.
    for complete in 0..2 {
        let Some(disk) = Disk::mount(checkpoint * (2 * complete + 1) / 2) else {
            return;
        };
        let run = disk.path().join("run");
        let out = run.to_str().unwrap();
        let is_full = |error: String| {
            let next = format!("{out}/.unfinished-newest.checkpoint");
            let full = "No space left on device (os error 28)";
            assert_eq!(error, format!("error: cannot write {next}: {full}\n"));
            // The complete checkpoints are whole, and nothing else takes space.
            let left = match complete {
                0 => &[".lock"][..],
                _ => &[".lock", "best.checkpoint", "curve.svg", "newest.checkpoint"],
            };
            assert_eq!(names(&run), left);
            assert_whole(&run);
            assert_eq!(checkpoints(&run).len() as u64, 2 * complete);
        };
        is_full(refused(&mut begin(folder, out, EPOCHS, 2)));
        if complete > 0 {
            is_full(refused(&mut resume(folder, out)));
        }
        disk.remount(&format!("size={}k", 3 * checkpoint));
        match complete {
            0 => done(&mut begin(folder, out, EPOCHS, 2)),
            _ => done(&mut resume(folder, out)),
        };
        assert_whole(&run);
        assert_same(&run, &straight);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_training() {
    let Some(disk) = Disk::mount(4096) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = disk.path().join("run");
    let out = run.to_str().unwrap();
    done(&mut begin(folder, out, 1, 1));
    let empty = disk.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let new = disk.path().join("new");
    disk.remount("ro");

    let read_only = "Read-only file system (os error 30)";
    let more = refused(&mut resume(folder, out));
    assert_eq!(
        more,
        format!("error: cannot write into {out}: {read_only}\n")
    );
    for (path, action) in [(&empty, "write into"), (&new, "create")] {
        let path = path.to_str().unwrap();
        let error = refused(&mut begin(folder, path, 1, 1));
        assert_eq!(
            error,
            format!("error: cannot {action} {path}: {read_only}\n")
        );
    }
    // It can still be read.
    done(&mut translate(folder, out));
    assert_whole(&run);
}

#[test]
fn a_folder_of_somebody_else_is_refused_before_training() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = folder.join("run");
    fs::create_dir(&run).unwrap();
    let permit = |mode| fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();
    permit(0o555);
    let probe = run.join("probe");
    if File::create(&probe).is_ok() {
        fs::remove_file(&probe).unwrap();
        skip("this user may write into every folder");
        return;
    }
    let error = refused(&mut begin(folder, "run", 1, 1));
    permit(0o755);
    assert_eq!(
        error,
        "error: cannot write into run: Permission denied (os error 13)\n"
    );
    assert!(names(&run).is_empty());
}

#[test]
fn an_error_that_cannot_be_printed_is_still_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let full = PathBuf::from("/dev/full");
    let output = program(folder.path(), "run")
        .args(["--device", "flex", "evaluate"])
        .stderr(Stdio::from(File::options().write(true).open(full).unwrap()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
}
