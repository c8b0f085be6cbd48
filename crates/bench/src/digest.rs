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

    /// What makes two contestants disagree, if anything does: also that one has a result which the other has not.
    pub fn disagreement(ours: &[Self], theirs: &[Self], tolerance: f64) -> Option<String> {
        let lacks = |some: &[Self], name: &str| !some.iter().any(|digest| digest.name == name);
        let extra = theirs.iter().find(|theirs| lacks(ours, &theirs.name));
        if let Some(extra) = extra {
            return Some(format!("ours has no {}", extra.name));
        }
        ours.iter().find_map(|ours| {
            let Some(theirs) = theirs.iter().find(|theirs| theirs.name == ours.name) else {
                return Some(format!("it has no {}", ours.name));
            };
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
            let agree =
                ours.samples.len() == theirs.samples.len() && off.is_finite() && off <= allowed;
            (!agree).then(|| {
                format!(
                    "{} differs by {off:.1e}, and {allowed:.1e} is allowed",
                    ours.name
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::numbers;

    /// What is wrong with `theirs` if `ours` is right.
    fn disagreement(ours: &[f32], theirs: &[f32]) -> Option<String> {
        let digest = |values| [Digest::new("output", values)];
        Digest::disagreement(&digest(ours), &digest(theirs), 1e-2)
    }

    #[test]
    fn the_same_digest_as_in_python() {
        // The command is in `generator.rs`.
        let digest = Digest::new("", &numbers(7, 131, 1.0));
        assert!((digest.mean - 0.506_828_627_513_565_2).abs() < 1e-15);
        assert_eq!(digest.largest, 0.998_506_188_392_639_2);
        assert_eq!(digest.samples.len(), 44);
        assert_eq!(digest.samples[43], 0.888_197_660_446_167);
    }

    #[test]
    fn a_digest_has_at_most_64_samples() {
        for (count, samples) in [(0, 0), (1, 1), (64, 64), (65, 33), (128, 64), (129, 43)] {
            let digest = Digest::new("", &numbers(3, count, 1.0));
            assert_eq!(digest.samples.len(), samples, "of {count}");
        }
    }

    #[test]
    fn the_largest_number_of_ours_is_the_measure() {
        let ours = [1.0, -200.0, 3.0];
        assert_eq!(disagreement(&ours, &ours), None);
        assert_eq!(disagreement(&ours, &[2.9, -200.0, 3.0]), None);
        assert_eq!(
            disagreement(&ours, &[1.0, -197.0, 3.0]).as_deref(),
            Some("output differs by 3.0e0, and 2.0e0 is allowed")
        );
        // Theirs may be as large as it likes.
        assert!(disagreement(&ours, &[1.0, -200.0, 1e6]).is_some());
        assert!(disagreement(&ours, &[1.0, 200.0, 3.0]).is_some());
        assert!(disagreement(&[0.0], &[1e-30]).is_some());
    }

    #[test]
    fn numbers_between_the_samples_count_in_the_mean() {
        let ours = [1.0; 128];
        let mut theirs = ours;
        // Every other number is a sample.
        (1..128).step_by(2).for_each(|index| theirs[index] = 1.1);
        assert_eq!(
            disagreement(&ours, &theirs).as_deref(),
            Some("output differs by 5.0e-2, and 1.0e-2 is allowed")
        );
    }

    #[test]
    fn nan_is_a_difference_wherever_it_is() {
        let ours = numbers(3, 200, 1.0);
        for place in [0, 1, 199] {
            let mut theirs = ours.clone();
            theirs[place] = f32::NAN;
            assert!(disagreement(&ours, &theirs).is_some(), "theirs at {place}");
            assert!(disagreement(&theirs, &ours).is_some(), "ours at {place}");
            assert!(disagreement(&theirs, &theirs).is_some(), "both at {place}");
        }
        let infinite = [f32::INFINITY, 1.0];
        assert!(disagreement(&[1.0, 1.0], &infinite).is_some());
        assert!(disagreement(&infinite, &[1.0, 1.0]).is_some());
    }

    #[test]
    fn another_number_of_samples_is_a_difference() {
        assert!(disagreement(&[1.0; 64], &[1.0; 65]).is_some());
    }

    #[test]
    fn every_result_is_compared_and_none_may_be_missing() {
        let digests = |results: &[(&str, f32)]| -> Vec<_> {
            let digest = |&(name, value): &_| Digest::new(name, &[value]);
            results.iter().map(digest).collect()
        };
        let ours = digests(&[("output", 1.0), ("dquery", 2.0), ("dkey", 3.0)]);
        let disagreement =
            |theirs: &[(&str, f32)]| Digest::disagreement(&ours, &digests(theirs), 0.1);
        let theirs = [("dkey", 3.0), ("dquery", 2.0), ("output", 1.0)];
        assert_eq!(disagreement(&theirs), None);
        assert_eq!(
            disagreement(&[("output", 1.0), ("dquery", 2.0), ("dkey", 3.5)]).as_deref(),
            Some("dkey differs by 5.0e-1, and 3.0e-1 is allowed")
        );
        assert_eq!(
            disagreement(&theirs[..2]).as_deref(),
            Some("it has no output")
        );
        let more = [&theirs[..], &[("dvalue", 5.0)]].concat();
        assert_eq!(disagreement(&more).as_deref(), Some("ours has no dvalue"));
    }
}
