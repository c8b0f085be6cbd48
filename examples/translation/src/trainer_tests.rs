use super::*;
use crate::data::Pair;
use crate::run_config::DataConfig;
use crate::schedule::Schedule;
use burn_attn_models::seq2seq::Seq2SeqConfig;

/// A corpus that is small, but not so small that an epoch is one batch.
fn split() -> Split {
    let words = ["uno", "dos", "tres", "cuatro", "cinco"];
    let pairs = (0..40).map(|i| {
        let picked: Vec<&str> = (0..1 + i % 4)
            .map(|j| words[(i * 3 + j * j) % words.len()])
            .collect();
        Pair {
            source: format!("{i} {}", picked.join(" ")),
            target: picked.iter().rev().copied().collect::<Vec<_>>().join(" "),
        }
    });
    let mut train: Vec<Pair> = pairs.collect();
    let validation = train.split_off(32);
    Split {
        train,
        validation,
        ..Split::default()
    }
}

fn config(epochs: usize, schedule: Schedule) -> RunConfig {
    RunConfig {
        data: DataConfig {
            file: None,
            held_out: 8,
            fingerprint: String::new(),
        },
        model: Seq2SeqConfig::new(300)
            .with_d_model(12)
            .with_n_heads(3)
            .with_n_encoder_layers(1)
            .with_n_decoder_layers(1)
            .with_d_ff(20)
            .with_dropout(0.2)
            .with_max_len(40),
        vocabulary: 300,
        seed: 5,
        batch: 7,
        epochs: Some(epochs),
        minutes: None,
        schedule,
        learning_rate: 1e-2,
        warmup: 5,
        smoothing: 0.1,
        clip: 1.0,
    }
}

fn start(epochs: usize, out: &Path) -> Trainer {
    let split = split();
    let texts: Vec<&str> = split
        .train
        .iter()
        .flat_map(|pair| [pair.source.as_str(), pair.target.as_str()])
        .collect();
    let vocabulary = Vocabulary::train(texts.into_iter(), 300).unwrap();
    let mut config = config(epochs, Schedule::Cosine);
    config.model.vocab_size = vocabulary.len();
    Trainer::start(config, &split, vocabulary, &Device::default(), out).unwrap()
}

fn resume(out: &Path) -> Trainer {
    let checkpoint = Checkpoint::read(&checkpoint::newest(out).unwrap().unwrap()).unwrap();
    Trainer::resume(&checkpoint, &split(), &Device::default(), out).unwrap()
}

/// Burn's generators and the stream of attention dropout belong to the process: runs that must be repeatable take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn a_resumed_run_has_the_curve_of_an_uninterrupted_one() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let progress = Progress::silent();
    let straight = tempfile::tempdir().unwrap();
    let mut whole = start(4, straight.path());
    assert_eq!(whole.run(&|_| false, &progress).unwrap(), Outcome::Finished);
    assert_eq!(whole.state.curve.len(), 4);
    assert!(
        whole.state.curve[3].train < whole.state.curve[0].train,
        "it learns: {:?}",
        whole.state.curve
    );

    // Stopped after 2 epochs, then again in the middle of the fourth.
    let pieces = tempfile::tempdir().unwrap();
    let steps = whole.state.step / 4;
    let stop_at = |step: usize| move |state: &State| state.step == step;
    let first = start(4, pieces.path())
        .run(&stop_at(2 * steps), &progress)
        .unwrap();
    assert!(matches!(first, Outcome::Interrupted(_)));
    let second = resume(pieces.path())
        .run(&stop_at(3 * steps + 2), &progress)
        .unwrap();
    assert_eq!(
        second,
        Outcome::Interrupted("epoch-0003-step-000002".into())
    );
    let mut last = resume(pieces.path());
    assert_eq!(last.run(&|_| false, &progress).unwrap(), Outcome::Finished);

    assert_eq!(last.state.curve, whole.state.curve);
}

#[test]
fn the_last_and_the_best_checkpoint_are_kept() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(3, out.path());
    trainer.run(&|_| false, &Progress::silent()).unwrap();
    let curve = &trainer.state.curve;
    let best = curve
        .iter()
        .min_by(|a, b| a.validation.total_cmp(&b.validation))
        .unwrap();
    assert_eq!(
        checkpoint::best(out.path()).unwrap(),
        out.path().join(format!("epoch-{:04}", best.epoch))
    );
    assert_eq!(
        checkpoint::newest(out.path()).unwrap().unwrap(),
        out.path().join("epoch-0003")
    );
    let entries = std::fs::read_dir(out.path()).unwrap().count();
    assert_eq!(entries, if best.epoch == 3 { 1 } else { 2 });
}

#[test]
fn a_truncated_checkpoint_is_refused_in_one_sentence() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let out = tempfile::tempdir().unwrap();
    start(1, out.path())
        .run(&|_| false, &Progress::silent())
        .unwrap();
    let path = checkpoint::newest(out.path()).unwrap().unwrap();
    for file in [
        "model.bpk",
        "optimizer.bpk",
        "tokenizer.json",
        "config.json",
        "state.json",
    ] {
        let place = path.join(file);
        let whole = std::fs::read(&place).unwrap();
        std::fs::write(&place, &whole[..whole.len() / 2]).unwrap();
        let error = Checkpoint::read(&path).err().unwrap().to_string();
        assert!(
            error.contains(&format!("{file} is not a checkpoint of this program: ")),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
        std::fs::write(&place, &whole).unwrap();
    }
    assert!(Checkpoint::read(&path).is_ok());
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_behind() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer
        .run(&|state| state.step == 3, &Progress::silent())
        .unwrap();
    // A file where the next checkpoint is to be written aside: it cannot become a folder.
    let obstacle = out.path().join(".unfinished-epoch-0001");
    std::fs::write(&obstacle, "in the way").unwrap();
    let error = trainer
        .run(&|_| false, &Progress::silent())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot "), "{error}");
    assert_eq!(
        checkpoint::list(out.path()).unwrap(),
        [out.path().join("epoch-0000-step-000003")]
    );
    Checkpoint::read(&out.path().join("epoch-0000-step-000003")).unwrap();
}

#[test]
fn one_state_can_be_saved_twice() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let out = tempfile::tempdir().unwrap();
    let mut trainer = start(2, out.path());
    trainer
        .run(&|state| state.step == 3, &Progress::silent())
        .unwrap();
    let first = out.path().join("epoch-0000-step-000003");
    for again in 1..=11 {
        let name = trainer.save().unwrap();
        let newest = checkpoint::newest(out.path()).unwrap().unwrap();
        assert_eq!(newest, out.path().join(&name), "time {again}");
        Checkpoint::read(&newest).unwrap();
        // A kill would leave the one before as well, whole.
        Checkpoint::read(&first).unwrap();
    }
    checkpoint::tidy(out.path()).unwrap();
    let left = checkpoint::list(out.path()).unwrap();
    assert_eq!(left, [out.path().join("epoch-0000-step-000003-again-11")]);
    // The one that was removed does not make its name free for a newer one.
    assert_eq!(trainer.save().unwrap(), "epoch-0000-step-000003-again-12");
}
