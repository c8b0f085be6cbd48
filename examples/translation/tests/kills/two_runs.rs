//! Two runs on one folder: the second is refused, and the first goes on as if nothing had happened.

use super::common::{Running, curve, done, program, refused};
use super::{assert_whole, begin, resume, translate};

#[test]
fn a_second_run_is_refused_while_the_first_trains_and_welcome_when_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // More epochs than the test waits for.
    let mut first = Running::start(&mut begin(folder, "run", 1000, 1));
    let in_use = "error: run is in use: another training writes into it; wait until it has ended, or name another folder \
                  with --out\n";
    // Before the first checkpoint, then beside one.
    for expected in ["training on ", "epoch 1/1000: loss "] {
        while !first.line().starts_with(expected) {}
        assert_eq!(refused(&mut begin(folder, "run", 1000, 1)), in_use);
        assert_eq!(refused(&mut resume(folder, "run")), in_use);
        let demo = refused(program(folder, "run").args(["--device", "flex"]));
        assert_eq!(demo, in_use);
    }
    first.line();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_whole(&folder.join("run"));

    // The resumed run is killed after a while; with this schedule, its curve is that of a run which ends there.
    let mut resumed = Running::start(&mut resume(folder, "run"));
    for _ in 0..2 {
        while !resumed.line().starts_with("epoch ") {}
    }
    resumed.child.kill().unwrap();
    resumed.child.wait().unwrap();
    let ours = curve(&folder.join("run"));
    let epochs = ours.as_array().unwrap().len();
    assert!(epochs >= 3, "{ours}");
    done(&mut begin(folder, "straight", epochs, 1));
    assert_eq!(ours, curve(&folder.join("straight")));
}

#[test]
fn a_run_can_be_read_while_it_trains() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut run = Running::start(&mut begin(folder, "run", 1000, 1));
    while !run.line().starts_with("epoch 1/1000: loss ") {}
    // Each takes as long as a few epochs, whose checkpoints come and go meanwhile.
    for _ in 0..10 {
        done(&mut translate(folder, "run"));
        let figures = done(program(folder, "run").args(["--device", "flex", "evaluate"]));
        assert!(
            figures.contains(" of 5 sentences exactly right"),
            "{figures}"
        );
    }
    assert!(run.child.try_wait().unwrap().is_none(), "it trains");
}
