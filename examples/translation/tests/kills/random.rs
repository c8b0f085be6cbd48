//! `kill -9` at random moments.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::common::{Running, curve, done, held_out};
use super::{assert_same, assert_whole, begin, checkpoints, content, resume};

const EPOCHS: usize = 8;
/// The kills of a test, unless `BURN_ATTN_KILLS` says how many.
const KILLS: usize = 5;
/// About the time that a small checkpoint takes to be written.
const WRITING: Duration = Duration::from_millis(3);

#[test]
fn a_run_of_one_replica_survives_kills() {
    survives_kills(1);
}

#[test]
fn a_run_of_two_replicas_survives_kills() {
    survives_kills(2);
}

/// The best checkpoint is written before the newest one.
#[test]
fn a_kill_between_the_two_names_of_a_checkpoint_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&mut begin(folder, "straight", 3, 1));
    let mut run = Running::start(&mut begin(folder, "run", 3, 1));
    while !run.line().starts_with("epoch 1/3: loss ") {}
    run.interrupt();
    let (run, straight) = (folder.join("run"), folder.join("straight"));
    // In the first epoch, there is no newest one.
    let first = folder.join("first");
    fs::create_dir(&first).unwrap();
    for out in [&run, &first] {
        for name in [".unfinished-newest.checkpoint", "best.checkpoint"] {
            fs::copy(straight.join("best.checkpoint"), out.join(name)).unwrap();
        }
        assert_whole(out);
    }
    done(&mut resume(folder, "run"));
    done(&mut begin(folder, "first", 3, 1));
    for out in [&run, &first] {
        assert_same(out, &straight);
        assert_eq!(
            curve_of_best(out),
            curve_of_best(&straight),
            "{}",
            out.display()
        );
    }
}

/// The curve up to the best checkpoint of a run.
fn curve_of_best(out: &Path) -> serde_json::Value {
    let alone = tempfile::tempdir().unwrap();
    fs::copy(
        out.join("best.checkpoint"),
        alone.path().join("newest.checkpoint"),
    )
    .unwrap();
    curve(alone.path())
}

/// Kills trainings and resumes each until it has ended, then begins another until there were enough kills.
fn survives_kills(replicas: usize) {
    let seed = number("BURN_ATTN_KILLS_SEED").unwrap_or_else(|| {
        let now = UNIX_EPOCH.elapsed().unwrap();
        u64::from(now.subsec_nanos())
    });
    println!("--replicas {replicas}, BURN_ATTN_KILLS_SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();

    let begun = Instant::now();
    let mut straight = Running::start(&mut training(folder, "straight", replicas));
    straight.line();
    let starting = begun.elapsed();
    let (code, rest) = straight.end();
    assert_eq!(code, Some(0), "{rest}");
    let whole = begun.elapsed();

    let mut left = number("BURN_ATTN_KILLS").map_or(KILLS, |kills| kills as usize);
    let (mut before_the_first, mut unfinished, mut kills, mut runs) = (0, 0, 0, 0);
    while left > 0 {
        runs += 1;
        let out = format!("run-{runs}");
        let path = folder.join(&out);
        let mut ended = false;
        while !ended {
            let mut command = training(folder, &out, replicas);
            if left == 0 {
                done(&mut command);
                break;
            }
            // While it starts, while it writes a checkpoint, and anywhere. A run that has been resumed some times may be killed in
            // its report too.
            let (longest, later) = match left % 3 {
                0 => (starting, None),
                1 => (whole / 2, Some(WRITING.mul_f64(random.random()))),
                _ => (whole / 2, None),
            };
            let running = Running::start(&mut command);
            if kill(running, longest.mul_f64(random.random()), later, &path) {
                left -= 1;
                kills += 1;
                before_the_first += usize::from(checkpoints(&path).is_empty());
                let is_half = |name: &String| {
                    name.starts_with(".unfinished-") && name.ends_with(".checkpoint")
                };
                unfinished += usize::from(content(&path).iter().any(is_half));
            } else {
                ended = true;
            }
            assert_whole(&path);
        }
        assert_same(&path, &folder.join("straight"));
        let expected = [
            ".lock",
            "best.checkpoint",
            "curve.svg",
            "newest.checkpoint",
            "report.json",
        ];
        assert_eq!(content(&path), expected, "nothing unfinished");
        assert_eq!(
            held_out(&path.join("report.json")),
            held_out(&folder.join("straight/report.json"))
        );
    }
    println!(
        "{kills} kills of {runs} runs: {before_the_first} before the first checkpoint, {unfinished} in the middle of writing one"
    );
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let parsed = text.parse();
    Some(parsed.unwrap_or_else(|_| panic!("{variable} must be a number, got {text:?}")))
}

/// A run that goes on if it has a checkpoint, and begins anew if it has none.
fn training(folder: &Path, out: &str, replicas: usize) -> Command {
    let mut command = match folder.join(out).join("newest.checkpoint").exists() {
        true => resume(folder, out),
        false => begin(folder, out, EPOCHS, replicas),
    };
    command.args(["--report", &format!("{out}/report.json")]);
    command
}

/// Kills a training after some time, or so much later than the next change in its folder after that; returns whether it did, because the
/// training may have ended before.
fn kill(mut running: Running, after: Duration, later: Option<Duration>, out: &Path) -> bool {
    let begun = Instant::now();
    let mut before = None;
    let mut changed = || {
        let now = content(out);
        before.get_or_insert_with(|| now.clone()) != &now
    };
    while begun.elapsed() < after || (later.is_some() && !changed()) {
        if let Some(status) = running.child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(later.unwrap_or_default());
    running.child.kill().unwrap();
    let status = running.child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}
