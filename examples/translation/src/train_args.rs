//! From the options of `train` to the configuration of a run, new or resumed.

use std::fmt::Display;
use std::path::Path;

use burn_attn_models::seq2seq::Seq2SeqConfig;

use crate::cli::TrainArgs;
use crate::error::Error;
use crate::run_config::{DataConfig, RunConfig};
use crate::schedule::Schedule;
use crate::vocabulary;

/// What is not asked for.
struct Defaults {
    vocabulary: usize,
    d_model: usize,
    d_ff: usize,
    heads: usize,
    layers: usize,
    max_len: usize,
    dropout: f64,
    batch: usize,
    epochs: usize,
    learning_rate: f64,
    warmup: usize,
    smoothing: f64,
}

/// For the built-in corpus: tuned so that a new sentence comes out right after two minutes on two CPU cores.
///
/// Its grammar has no exceptions to learn by heart, so that dropout would only cost time.
const BUILT_IN: Defaults = Defaults {
    vocabulary: 2000,
    d_model: 96,
    d_ff: 256,
    heads: 4,
    layers: 2,
    max_len: 64,
    dropout: 0.0,
    batch: 32,
    epochs: 7,
    learning_rate: 3e-3,
    warmup: 200,
    smoothing: 0.05,
};

/// For a corpus of people's sentences: the run that the README measures.
const OWN: Defaults = Defaults {
    vocabulary: 8000,
    d_model: 256,
    d_ff: 1024,
    heads: 8,
    layers: 3,
    max_len: 128,
    dropout: 0.1,
    batch: 64,
    epochs: 10,
    learning_rate: 1e-3,
    warmup: 500,
    smoothing: 0.1,
};

impl TrainArgs {
    /// The configuration of a new run: the options given, and defaults that fit the corpus for the others.
    ///
    /// # Errors
    /// If the corpus cannot be found, or a value cannot work.
    pub fn config(&self) -> Result<RunConfig, Error> {
        let defaults = if self.data.is_none() { &BUILT_IN } else { &OWN };
        // The folder may be left before the run is resumed.
        let file = self
            .data
            .as_ref()
            .map(|path| path.canonicalize().map_err(Error::file("read", path)))
            .transpose()?;
        let layers = self.layers.unwrap_or(defaults.layers);
        let config = RunConfig {
            data: DataConfig {
                file,
                held_out: self.held_out.unwrap_or(400),
                fingerprint: String::new(),
            },
            // The vocabulary may come out smaller; until it is learnt, the smallest one stands in.
            model: Seq2SeqConfig::new(vocabulary::SMALLEST)
                .with_d_model(self.d_model.unwrap_or(defaults.d_model))
                .with_n_heads(self.heads.unwrap_or(defaults.heads))
                .with_n_encoder_layers(layers)
                .with_n_decoder_layers(layers)
                .with_d_ff(self.d_ff.unwrap_or(defaults.d_ff))
                .with_dropout(self.dropout.unwrap_or(defaults.dropout))
                .with_max_len(self.max_len.unwrap_or(defaults.max_len)),
            vocabulary: self.vocabulary.unwrap_or(defaults.vocabulary),
            seed: self.seed.unwrap_or(1),
            batch: self.batch.unwrap_or(defaults.batch),
            epochs: self
                .epochs
                .or((self.minutes.is_none() && self.steps.is_none()).then_some(defaults.epochs)),
            minutes: self.minutes,
            steps: self.steps,
            schedule: self.schedule.unwrap_or(Schedule::Cosine),
            learning_rate: self.learning_rate.unwrap_or(defaults.learning_rate),
            warmup: self.warmup.unwrap_or(defaults.warmup),
            smoothing: self.smoothing.unwrap_or(defaults.smoothing),
            clip: self.clip.unwrap_or(1.0),
        };
        config.validate()?;
        Ok(config)
    }

    /// Makes sure that the options given say the same as the run in `out`, and takes over those that may change.
    ///
    /// With the Noam schedule a run may be given another end: other epochs, steps or minutes, which replace all limits it
    /// had. The cosine depends on them. The corpus may have been moved: whether it is the same is told by its content.
    /// Returns whether the run was given a new end.
    ///
    /// # Errors
    /// If an option contradicts the run.
    pub fn agree(&self, run: &mut RunConfig, out: &Path) -> Result<bool, Error> {
        let check = Check { out };
        check.same("--seed", self.seed, run.seed)?;
        check.same("--batch", self.batch, run.batch)?;
        check.same("--held-out", self.held_out, run.data.held_out)?;
        check.same("--vocabulary", self.vocabulary, run.vocabulary)?;
        check.same("--d-model", self.d_model, run.model.d_model)?;
        check.same("--heads", self.heads, run.model.n_heads)?;
        check.same("--layers", self.layers, run.model.n_encoder_layers)?;
        check.same("--d-ff", self.d_ff, run.model.d_ff)?;
        check.same("--max-len", self.max_len, run.model.max_len)?;
        check.same("--dropout", self.dropout, run.model.dropout)?;
        check.same("--learning-rate", self.learning_rate, run.learning_rate)?;
        check.same("--warmup", self.warmup, run.warmup)?;
        check.same("--smoothing", self.smoothing, run.smoothing)?;
        check.same("--clip", self.clip, run.clip)?;
        if self
            .schedule
            .is_some_and(|schedule| schedule != run.schedule)
        {
            let name = |schedule| format!("{schedule:?}").to_lowercase();
            return check.refuse(
                "--schedule",
                name(self.schedule.unwrap_or(run.schedule)),
                name(run.schedule),
            );
        }
        if let Some(file) = &self.data {
            run.data.file = Some(file.canonicalize().map_err(Error::file("read", file))?);
        }
        if run.schedule == Schedule::Cosine {
            check.same_limit("--epochs", self.epochs, run.epochs)?;
            check.same_limit("--minutes", self.minutes, run.minutes)?;
            check.same_limit("--steps", self.steps, run.steps)?;
            return Ok(false);
        }
        let differs = other(self.epochs, run.epochs)
            || other(self.minutes, run.minutes)
            || other(self.steps, run.steps);
        if differs {
            // The minutes of the run stay the steps that they came to; other minutes have yet to be turned into steps.
            let decided = (self.minutes.is_some() && self.minutes == run.minutes)
                .then_some(run.steps)
                .flatten();
            (run.epochs, run.minutes, run.steps) =
                (self.epochs, self.minutes, self.steps.or(decided));
        }
        run.validate()?;
        Ok(differs)
    }
}

/// Whether a limit is given that is not the one of the run.
fn other<T: PartialEq>(given: Option<T>, was: Option<T>) -> bool {
    given.is_some() && given != was
}

/// Compares options with a run.
struct Check<'a> {
    out: &'a Path,
}

impl Check<'_> {
    fn same<T: PartialEq + Display>(
        &self,
        option: &'static str,
        given: Option<T>,
        was: T,
    ) -> Result<(), Error> {
        match given {
            Some(given) if given != was => self.refuse(option, given, was).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn same_limit<T: PartialEq + Display + Copy>(
        &self,
        option: &'static str,
        given: Option<T>,
        was: Option<T>,
    ) -> Result<(), Error> {
        match (given, was) {
            (Some(given), None) => self.refuse(option, given, "no such limit").map(|_| ()),
            (given, Some(was)) => self.same(option, given, was),
            (None, None) => Ok(()),
        }
    }

    fn refuse(
        &self,
        option: &'static str,
        given: impl Display,
        was: impl Display,
    ) -> Result<bool, Error> {
        Err(Error::Contradiction {
            path: self.out.to_path_buf(),
            option,
            given: given.to_string(),
            was: was.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_are_named_before_anything_is_read() {
        let refused = |args: TrainArgs| args.config().unwrap_err().to_string();
        let args = TrainArgs::default;
        let message = refused(TrainArgs {
            d_model: Some(30),
            heads: Some(4),
            ..args()
        });
        assert!(message.contains("30") && message.contains('4'), "{message}");
        let message = refused(TrainArgs {
            dropout: Some(1.0),
            ..args()
        });
        assert!(
            message.contains("dropout") && message.contains('1'),
            "{message}"
        );
        let message = refused(TrainArgs {
            layers: Some(0),
            ..args()
        });
        assert!(message.contains('0'), "{message}");
        assert_eq!(
            refused(TrainArgs {
                batch: Some(0),
                ..args()
            }),
            "--batch must be at least 1, got 0"
        );
        assert_eq!(
            refused(TrainArgs {
                epochs: Some(0),
                ..args()
            }),
            "--epochs must be at least 1, got 0"
        );
        assert_eq!(
            refused(TrainArgs {
                steps: Some(0),
                ..args()
            }),
            "--steps must be at least 1, got 0"
        );
        assert_eq!(
            refused(TrainArgs {
                smoothing: Some(1.5),
                ..args()
            }),
            "--smoothing must be in [0, 1), got 1.5"
        );
        assert_eq!(
            refused(TrainArgs {
                learning_rate: Some(f64::NAN),
                ..args()
            }),
            "--learning-rate must be greater than 0, got NaN"
        );
        let message = refused(TrainArgs {
            data: Some("/no/such.tsv".into()),
            ..args()
        });
        assert!(
            message.starts_with("cannot read /no/such.tsv: "),
            "{message}"
        );
    }

    #[test]
    fn a_resumed_run_is_not_contradicted() {
        let mut run = TrainArgs::default().config().unwrap();
        let out = Path::new("run");
        assert!(!TrainArgs::default().agree(&mut run, out).unwrap());
        assert!(
            !TrainArgs {
                d_model: Some(96),
                epochs: Some(7),
                ..Default::default()
            }
            .agree(&mut run, out)
            .unwrap()
        );
        let error = TrainArgs {
            d_model: Some(64),
            ..Default::default()
        }
        .agree(&mut run, out)
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot resume with --d-model 64: the run in run was started with 96"
        );
        let error = TrainArgs {
            epochs: Some(20),
            ..Default::default()
        }
        .agree(&mut run, out)
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot resume with --epochs 20: the run in run was started with 7"
        );
    }

    #[test]
    fn the_cosine_keeps_the_steps_that_its_minutes_came_to() {
        let args = || TrainArgs {
            minutes: Some(5.0),
            ..Default::default()
        };
        let mut run = args().config().unwrap();
        run.steps = Some(700);
        let out = Path::new("run");
        assert!(!args().agree(&mut run, out).unwrap());
        assert_eq!((run.minutes, run.steps), (Some(5.0), Some(700)));
        let error = TrainArgs {
            steps: Some(800),
            ..Default::default()
        }
        .agree(&mut run, out)
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot resume with --steps 800: the run in run was started with 700"
        );
    }

    #[test]
    fn with_noam_other_minutes_become_other_steps() {
        let args = |minutes, steps| TrainArgs {
            schedule: Some(Schedule::Noam),
            minutes,
            steps,
            ..Default::default()
        };
        let mut run = args(Some(5.0), None).config().unwrap();
        run.steps = Some(700);
        let out = Path::new("run");
        assert!(!args(Some(5.0), None).agree(&mut run, out).unwrap());
        assert_eq!((run.minutes, run.steps), (Some(5.0), Some(700)));
        assert!(args(Some(8.0), None).agree(&mut run, out).unwrap());
        assert_eq!((run.minutes, run.steps), (Some(8.0), None));
        assert!(args(None, Some(900)).agree(&mut run, out).unwrap());
        assert_eq!((run.minutes, run.steps), (None, Some(900)));
    }

    #[test]
    fn with_noam_a_new_end_replaces_all_limits() {
        let args = |epochs, minutes, steps| TrainArgs {
            schedule: Some(Schedule::Noam),
            epochs,
            minutes,
            steps,
            ..Default::default()
        };
        let out = Path::new("run");
        let first = args(Some(7), Some(5.0), None).config().unwrap();
        for (given, differs, end) in [
            ((None, None, None), false, (Some(7), Some(5.0), Some(700))),
            (
                (Some(7), None, None),
                false,
                (Some(7), Some(5.0), Some(700)),
            ),
            (
                (None, None, Some(700)),
                false,
                (Some(7), Some(5.0), Some(700)),
            ),
            ((Some(9), None, None), true, (Some(9), None, None)),
            ((None, None, Some(900)), true, (None, None, Some(900))),
            ((None, Some(8.0), None), true, (None, Some(8.0), None)),
            (
                (Some(9), Some(5.0), None),
                true,
                (Some(9), Some(5.0), Some(700)),
            ),
        ] {
            let mut run = first.clone();
            run.steps = Some(700);
            let (epochs, minutes, steps) = given;
            let agreed = args(epochs, minutes, steps).agree(&mut run, out).unwrap();
            let found = (run.epochs, run.minutes, run.steps);
            assert_eq!((agreed, found), (differs, end), "{given:?}");
        }
    }

    #[test]
    fn with_noam_a_run_may_become_longer() {
        let args = TrainArgs {
            schedule: Some(Schedule::Noam),
            ..Default::default()
        };
        let mut run = args.config().unwrap();
        assert!(
            TrainArgs {
                epochs: Some(20),
                ..args
            }
            .agree(&mut run, Path::new("run"))
            .unwrap()
        );
        assert_eq!(run.epochs, Some(20));
    }
}
