//! Results, small enough to send to the parent, which compares those of different contestants.

use serde::{Deserialize, Serialize};

use crate::work::Tolerance;

/// Numbers of a result that are looked at one by one: of a smaller result, all of them.
const SAMPLES: usize = 256;

/// What a result comes down to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Digest {
    pub name: String,
    /// How many numbers the result has.
    pub count: usize,
    pub mean: f64,
    pub largest: f64,
    pub root_mean_square: f64,
    /// Numbers from all over the result, the last one first.
    pub samples: Vec<f64>,
}

impl Digest {
    pub fn new(name: &str, values: &[f32]) -> Self {
        let absolute = |value: &f32| f64::from(*value).abs();
        let (count, step) = (values.len(), step(values.len()));
        let mean = |sum: f64| sum / count.max(1) as f64;
        Self {
            name: name.into(),
            count,
            mean: mean(values.iter().map(absolute).sum()),
            root_mean_square: mean(values.iter().map(|value| absolute(value).powi(2)).sum()).sqrt(),
            largest: values.iter().map(absolute).fold(0.0, f64::max),
            samples: (0..count.min(SAMPLES))
                .map(|sample| values[count - 1 - sample * step % count].into())
                .collect(),
        }
    }

    /// The digests of named results, unless one has NaN or infinity: JSON cannot hold them, and no result agrees with them.
    pub fn all(results: &[(String, Vec<f32>)]) -> Result<Vec<Self>, String> {
        let digest = |(name, values): &(String, Vec<f32>)| {
            let digest = Self::new(name, values);
            match digest.mean.is_finite() {
                true => Ok(digest),
                false => Err(format!("{name} has NaN or infinity")),
            }
        };
        results.iter().map(digest).collect()
    }

    /// What makes two contestants disagree, if anything does: also that one has a result which the other has not.
    pub fn disagreement(ours: &[Self], theirs: &[Self], tolerance: Tolerance) -> Option<String> {
        let lacks = |some: &[Self], name: &str| !some.iter().any(|digest| digest.name == name);
        let extra = theirs.iter().find(|theirs| lacks(ours, &theirs.name));
        if let Some(extra) = extra {
            return Some(format!("ours has no {}", extra.name));
        }
        ours.iter().find_map(|ours| {
            let name = &ours.name;
            let Some(theirs) = theirs.iter().find(|theirs| theirs.name == *name) else {
                return Some(format!("it has no {name}"));
            };
            let [our_count, their_count] = [ours.count, theirs.count];
            if our_count != their_count {
                let counts = format!("{their_count} elements, and ours has {our_count}");
                return Some(format!("{name} has {counts}"));
            }
            let pairs = ours.samples.iter().zip(&theirs.samples);
            let mut pairs = pairs.chain([(&ours.mean, &theirs.mean)]);
            pairs.find_map(|(&ours_is, &theirs_is)| {
                let allowed = tolerance.allowed(ours_is, ours.largest, ours.root_mean_square);
                let off = (ours_is - theirs_is).abs();
                // NaN and infinity are differences.
                let agree = off.is_finite() && off <= allowed;
                let differs =
                    || format!("{name} differs by {off:.1e}, and {allowed:.1e} is allowed");
                (!agree).then(differs)
            })
        })
    }
}

/// From one sample to the next of so many numbers, going round: near the golden section, so that any stretch of the result
/// gets its share, and without a common divisor, so that no column of a power of two is passed over. `peers.py` has the same
/// lines.
fn step(count: usize) -> usize {
    let mut step = count * 618 / 1000;
    while common_divisor(count, step) > 1 {
        step += 1;
    }
    step
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
