//! The learning rate as a pure function of the step, so that a resumed run needs no scheduler state.

use serde::{Deserialize, Serialize};

/// How the learning rate falls after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Along half a cosine, down to 2 % at the end of the epochs, steps or minutes; with steps and minutes it starts to fall at step
    /// 50
    Cosine,
    /// With one over the square root of the step, so that training needs no end
    Noam,
}

impl Schedule {
    /// The learning rate of a step, counted from 1.
    ///
    /// It rises linearly to `peak` during `warmup` steps. `progress` is the part of the training that is done, from 0
    /// to 1; only the cosine uses it.
    ///
    /// Noam: `peak · sqrt(warmup / step)`, which is Vaswani et al. (2017), equation 3, with
    /// `peak = d_model^-0.5 · warmup^-0.5`.
    pub fn learning_rate(self, peak: f64, warmup: usize, step: usize, progress: f64) -> f64 {
        let (step, warmup) = (step as f64, warmup.max(1) as f64);
        let decay = match self {
            Self::Cosine => {
                0.02 + 0.49 * (1.0 + (std::f64::consts::PI * progress.clamp(0.0, 1.0)).cos())
            }
            Self::Noam => (warmup / step.max(warmup)).sqrt(),
        };
        peak * decay * (step / warmup).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rise_to_the_peak() {
        for schedule in [Schedule::Cosine, Schedule::Noam] {
            assert_eq!(schedule.learning_rate(1e-3, 100, 50, 0.0), 0.5e-3);
            assert_eq!(schedule.learning_rate(1e-3, 100, 100, 0.0), 1e-3);
        }
    }

    #[test]
    fn the_cosine_ends_low_and_noam_falls_with_the_root() {
        assert!((Schedule::Cosine.learning_rate(1.0, 10, 500, 1.0) - 0.02).abs() < 1e-12);
        assert!((Schedule::Cosine.learning_rate(1.0, 10, 500, 0.5) - 0.51).abs() < 1e-12);
        assert_eq!(Schedule::Noam.learning_rate(1.0, 100, 400, 0.9), 0.5);
    }
}
