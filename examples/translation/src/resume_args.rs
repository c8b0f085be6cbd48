//! From the options of `train` to the configuration of a resumed run: what they may change, and what they must match.

use std::fmt::Display;
use std::path::Path;

use crate::cli::TrainArgs;
use crate::error::Error;
use crate::run_config::RunConfig;
use crate::schedule::Schedule;

impl TrainArgs {
    /// Makes sure that the given options agree with the run in `out`, and applies those that may change.
    ///
    /// With the Noam schedule a run may be given another end: other epochs, steps or minutes, which replace all its previous
    /// limits. The cosine depends on them. The corpus may have been moved: its content tells whether it is the same.
    /// Returns whether the run was given a new end.
    ///
    /// # Errors
    /// If an option contradicts the run.
    pub fn agree(&self, run: &mut RunConfig, out: &Path) -> Result<bool, Error> {
        let check = Check { out };
        check.same("--seed", self.seed, run.seed)?;
        check.same("--batch", self.batch, run.batch)?;
        check.same_if_any("--batch-tokens", self.batch_tokens, run.batch_tokens)?;
        check.same_if_any("--average", self.average, run.average)?;
        check.same("--replicas", self.replicas, run.replicas)?;
        check.same("--precision", self.precision, run.precision)?;
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
        check.same("--schedule", self.schedule, run.schedule)?;
        if let Some(file) = &self.data {
            run.data.file = Some(file.canonicalize().map_err(Error::file("read", file))?);
        }
        if run.schedule == Schedule::Cosine {
            check.same_if_any("--epochs", self.epochs, run.epochs)?;
            check.same_if_any("--minutes", self.minutes, run.minutes)?;
            check.same_if_any("--steps", self.steps, run.steps)?;
            return Ok(false);
        }
        let differs = other(self.epochs, run.epochs)
            || other(self.minutes, run.minutes)
            || other(self.steps, run.steps);
        if differs {
            // The minutes of the run stay the steps that they came to; other minutes still have to be turned into steps.
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
            Some(given) if given != was => self.refuse(option, given, was),
            _ => Ok(()),
        }
    }

    fn same_if_any<T: PartialEq + Display + Copy>(
        &self,
        option: &'static str,
        given: Option<T>,
        was: Option<T>,
    ) -> Result<(), Error> {
        match (given, was) {
            (Some(given), None) => self.refuse(option, given, "none"),
            (given, Some(was)) => self.same(option, given, was),
            (None, None) => Ok(()),
        }
    }

    fn refuse(
        &self,
        option: &'static str,
        given: impl Display,
        was: impl Display,
    ) -> Result<(), Error> {
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
    use crate::precision::Precision;

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
            precision: Some(Precision::Bf16),
            ..Default::default()
        }
        .agree(&mut run, out)
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot resume with --precision bf16: the run in run was started with f32"
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
