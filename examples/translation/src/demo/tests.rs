//! A demo that is over is kept.

use burn::tensor::Device;

use super::*;
use crate::trainer::Trainer;
use crate::trainer::tests::{stopped_at, turn};

#[test]
fn the_command_at_the_end_finds_the_run() {
    let ends = |out: &str, end: &str| {
        let command = your_turn("The dog sleeps.", Path::new(out));
        assert!(command.ends_with(end), "{command}");
    };
    ends(OUT, " translate \"The dog sleeps.\"");
    ends("run/a", " translate \"The dog sleeps.\" --out run/a");
}

#[test]
fn a_finished_demo_is_kept() {
    let _turn = turn();
    let out = tempfile::tempdir().unwrap();
    let shared = Shared {
        out: out.path().join("run"),
        device: None,
        report: None,
        translations: None,
    };
    let target = TargetDevice {
        device: Device::default(),
        name: "test".into(),
    };
    drop(lock::prepare(&shared.out).unwrap());
    let mut config = RunConfig::new(&TrainArgs::default()).unwrap();
    let (split, vocabulary) = config.prepare().unwrap();
    let demo = Trainer::start(config, &split, vocabulary, &target.device, &shared.out);
    // The demo after one step, as if it were the last.
    let mut trainer = stopped_at(1, demo.unwrap());
    trainer.training.state.finished = true;
    trainer.training.save().unwrap();
    let newest =
        || std::fs::read(shared.out.join(burn_attn_models::train::NEWEST_CHECKPOINT)).unwrap();
    let before = newest();

    let (_, outcome) = train(&shared, &target).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    assert!(newest() == before);
}
