//! Progress: a bar with the loss, the speed and the time left on a terminal, the same as lines anywhere else.

use std::cell::Cell;
use std::time::Duration;

use example_common::exit::println;
use example_common::input;
use indicatif::ProgressBar;

/// The time between two lines of an epoch where there is no bar.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Shows how far training is.
pub struct Progress {
    bar: ProgressBar,
    print: Box<dyn Fn(&str)>,
    /// The time of the last line, or of the beginning.
    shown: Cell<Option<Duration>>,
}

impl Progress {
    /// A bar if standard error is a terminal; otherwise only lines.
    pub fn new() -> Self {
        Self {
            bar: input::bar(0, "{prefix} {wide_bar} {msg}"),
            print: Box::new(println),
            shown: Cell::default(),
        }
    }

    /// Lines without a bar that go to `print`, for tests.
    #[cfg(test)]
    pub fn lines_to(print: impl Fn(&str) + 'static) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            print: Box::new(print),
            shown: Cell::default(),
        }
    }

    /// One that shows nothing, for tests.
    #[cfg(test)]
    pub fn silent() -> Self {
        Self::lines_to(|_| {})
    }

    /// Moves the bar of an epoch, or prints a line, if it is due: always with a bar, which limits how often it is drawn, and after half a
    /// minute without one.
    pub fn step(
        &self,
        now: Duration,
        label: &str,
        [done, steps]: [usize; 2],
        message: impl FnOnce() -> String,
    ) {
        if !self.bar.is_hidden() {
            self.bar.set_prefix(label.to_string());
            self.bar.set_length(steps as u64);
            self.bar.set_position(done as u64);
            self.bar.set_message(message());
            return;
        }
        let last = self.shown.get().unwrap_or(now);
        let is_due = now.saturating_sub(last) >= LINE_EVERY;
        self.shown.set(Some(if is_due { now } else { last }));
        if is_due {
            self.line(&format!("{label}, step {done} of {steps}: {}", message()));
        }
    }

    /// Prints a line above the bar.
    pub fn line(&self, text: &str) {
        self.bar.suspend(|| (self.print)(text));
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
mod tests;
