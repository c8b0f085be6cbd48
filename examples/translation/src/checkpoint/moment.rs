//! The names of checkpoints, such as `epoch-0007-step-000100`.

/// When a checkpoint was taken, according to its name: complete epochs, steps of the next one, and its number among those of
/// that step. They are compared as numbers: `epoch-10000` comes after `epoch-9999`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Complete epochs.
    pub epoch: usize,
    /// Complete steps of the next one.
    pub step: usize,
    /// Checkpoints of the same step that were there before.
    pub again: usize,
}

impl Moment {
    /// Parses a name; `None` if it is not that of a checkpoint.
    pub fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("epoch-")?.split('-');
        let mut moment = Self {
            epoch: parts.next()?.parse().ok()?,
            step: 0,
            again: 0,
        };
        while let Some(label) = parts.next() {
            let number = parts.next()?.parse().ok()?;
            match label {
                "step" => moment.step = number,
                "again" => moment.again = number,
                _ => return None,
            }
        }
        Some(moment)
    }
}
