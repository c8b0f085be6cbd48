//! How many steps fit into `--minutes`: decided once, by the speed of the first steps, or of the first steps after a run
//! was given other minutes.
//!
//! From then on nothing depends on a clock: the run is that of `--steps` with the same number.

use serde::{Deserialize, Serialize};

use crate::state::State;

/// The steps of one timing. After the last of them the loss is read, so that the device has nothing left to do.
pub const TIMED: usize = 10;
/// The timed steps after which the number of steps is decided. Until then no learning rate may depend on it.
pub const DECIDED_AFTER: usize = 5 * TIMED;

/// The time that the run had taken after one of the timed steps, and the tokens that it had read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Seconds of training.
    pub seconds: f64,
    /// Tokens read and predicted, without padding.
    pub tokens: usize,
}

/// How many steps a run of `minutes` has altogether, or `None` while its speed is not known.
///
/// The minutes that are left after the steps so far are divided by the time of a step of `tokens_per_step`
/// tokens, at the median speed of the timings. The speed of the steps before the first timing does not count: they allocate memory, and
/// compile the kernels of a GPU. Minutes that are over before that end the run at the step in which they end.
pub fn steps(minutes: f64, state: &State, tokens_per_step: f64) -> Option<usize> {
    let left = 60.0 * minutes - state.seconds;
    if left <= 0.0 {
        return Some(state.step);
    }
    if state.step < state.timed_from + DECIDED_AFTER {
        return None;
    }
    let mut paces: Vec<f64> = state
        .timings
        .windows(2)
        .map(|pair| (pair[1].seconds - pair[0].seconds) / (pair[1].tokens - pair[0].tokens) as f64)
        .collect();
    paces.sort_by(f64::total_cmp);
    // A run of an older version has no timings, so its mean speed must do.
    let pace = match paces.len() {
        0 => 1.0 / state.tokens_per_second(),
        count => (paces[(count - 1) / 2] + paces[count / 2]) / 2.0,
    };
    // If a clock stands still, infinitely many steps become as many as can be counted.
    let more = (left / (pace * tokens_per_step)).round() as usize;
    Some(state.step.saturating_add(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of `step` steps of 100 tokens; the first ten take 3 s each, the others `pace` s.
    fn after(step: usize, pace: f64) -> State {
        let seconds = |step: usize| match step {
            0..=TIMED => 3.0 * step as f64,
            _ => 3.0 * TIMED as f64 + pace * (step - TIMED) as f64,
        };
        State {
            step,
            seconds: seconds(step),
            tokens: 100 * step,
            timings: (1..=step.min(DECIDED_AFTER) / TIMED)
                .map(|group| Timing {
                    seconds: seconds(group * TIMED),
                    tokens: 100 * group * TIMED,
                })
                .collect(),
            ..State::default()
        }
    }

    #[test]
    fn the_slow_beginning_is_paid_for_but_not_continued() {
        // 30 s and 40 · 0.5 s are over; 70 s are left, which 140 steps of 0.5 s fill.
        assert_eq!(steps(2.0, &after(50, 0.5), 100.0), Some(190));
        // Steps that are twice as long come half as often.
        assert_eq!(steps(2.0, &after(50, 0.5), 200.0), Some(120));
    }

    #[test]
    fn one_group_that_was_held_up_changes_nothing() {
        let mut state = after(50, 0.5);
        state.seconds += 20.0;
        state.timings[4].seconds += 20.0;
        assert_eq!(steps(2.0, &state, 100.0), Some(150));
    }

    #[test]
    fn nothing_is_decided_before_the_speed_is_known_unless_the_minutes_are_over() {
        assert_eq!(steps(2.0, &after(49, 0.5), 100.0), None);
        assert_eq!(steps(0.5, &after(9, 0.5), 100.0), None);
        assert_eq!(steps(0.5, &after(10, 0.5), 100.0), Some(10));
        assert_eq!(steps(0.5, &after(12, 0.5), 100.0), Some(12));
    }

    #[test]
    fn an_old_run_goes_on_at_its_mean_speed() {
        let old = State {
            timings: Vec::new(),
            ..after(1000, 0.5)
        };
        // 525 s for 1000 steps; 1050 s altogether.
        assert_eq!(steps(17.5, &old, 100.0), Some(2000));
    }

    #[test]
    fn a_clock_that_stands_still_overflows_nothing() {
        let still = State {
            step: 50,
            timings: (1..=5)
                .map(|group| Timing {
                    seconds: 0.0,
                    tokens: group,
                })
                .collect(),
            ..State::default()
        };
        assert_eq!(steps(1.0, &still, 100.0), Some(usize::MAX));
    }
}
