//! Progress: a bar with the loss, the speed and the time left on a terminal, one line per epoch anywhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far training is.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar if standard error is a terminal; otherwise only lines.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Self { bar }
    }

    /// One that shows nothing, for tests.
    #[cfg(test)]
    pub fn silent() -> Self {
        Self {
            bar: ProgressBar::hidden(),
        }
    }

    /// Whether anybody sees the bar.
    pub fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Begins an epoch of `steps` steps.
    pub fn begin_epoch(&self, label: &str, steps: usize, done: usize) {
        self.bar.set_prefix(label.to_string());
        self.bar.set_length(steps as u64);
        self.bar.set_position(done as u64);
    }

    /// Moves the bar.
    pub fn step(&self, done: usize, loss: f64, tokens_per_second: f64, left: Option<f64>) {
        self.bar.set_position(done as u64);
        let left = left.map_or_else(String::new, |seconds| {
            format!(", {} left", duration(seconds))
        });
        self.bar.set_message(format!(
            "loss {loss:.3}, {tokens_per_second:.0} tokens/s{left}"
        ));
    }

    /// Prints a line above the bar.
    pub fn line(&self, text: &str) {
        self.bar.suspend(|| println!("{text}"));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Seconds as people read them: `59 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds)
        .unwrap_or(Duration::MAX)
        .as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(59.9), "59 s");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(7500.0), "2 h 5 min");
    }
}
