//! Results, small enough to send to the parent, which compares those of different contestants.

use serde::{Deserialize, Serialize};

/// Numbers of a result that are looked at one by one.
const SAMPLES: usize = 64;

/// What a result comes down to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Digest {
    /// Which result, such as `output`.
    pub name: String,
    /// The mean of the absolute values.
    pub mean: f64,
    /// The largest absolute value.
    pub largest: f64,
    /// Numbers at even distances.
    pub samples: Vec<f64>,
}

impl Digest {
    /// The digest of a result.
    pub fn new(name: &str, values: &[f32]) -> Self {
        let absolute = |value: &f32| f64::from(*value).abs();
        let step = values.len().div_ceil(SAMPLES).max(1);
        Self {
            name: name.into(),
            mean: values.iter().map(absolute).sum::<f64>() / values.len().max(1) as f64,
            largest: values.iter().map(absolute).fold(0.0, f64::max),
            samples: values
                .iter()
                .step_by(step)
                .map(|&value| value.into())
                .collect(),
        }
    }

    /// What makes two contestants disagree, if anything does. Results that only one of them has are passed over.
    pub fn disagreement(ours: &[Self], theirs: &[Self], tolerance: f64) -> Option<String> {
        ours.iter().find_map(|ours| {
            let theirs = theirs.iter().find(|theirs| theirs.name == ours.name)?;
            let pairs = ours.samples.iter().zip(&theirs.samples);
            let off = pairs
                .chain([(&ours.mean, &theirs.mean)])
                .map(|(a, b)| (a - b).abs())
                // NaN must count as a difference, and `f64::max` passes over it.
                .fold(0.0, |most: f64, off| {
                    if off > most || off.is_nan() {
                        off
                    } else {
                        most
                    }
                });
            let allowed = tolerance * ours.largest;
            (ours.samples.len() != theirs.samples.len() || off.is_nan() || off > allowed).then(
                || {
                    format!(
                        "{} differs by {off:.1e}, and {allowed:.1e} is allowed",
                        ours.name
                    )
                },
            )
        })
    }
}
