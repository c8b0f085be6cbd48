//! One case: every contestant in a separate process, sampled in turns, so that a slow minute of the machine hits all.

use std::thread;
use std::time::Duration;

use crate::case::{Case, Library, Measure};
use crate::digest::Digest;
use crate::process::{Contestant, Stage};
use crate::protocol::{LONG_SECONDS, Ready};
use crate::run::Row;
use crate::work::{Matmul, Precision, Work};

/// Between two samples, so that the threads of the last contestant have gone to sleep.
const PAUSE: Duration = Duration::from_millis(5);

/// A sample that takes this long (seconds) is taken once: it has no spread.
const VERY_LONG_SECONDS: f64 = 10.0;

/// Samples of a peak, of which the fastest counts.
const PEAK_SAMPLES: usize = 7;

/// Rows of matrices whose product shows the peak of a slow device, and of a fast one.
const MATMUL_SIZES: [usize; 2] = [1024, 8192];

/// What no driver in software reaches (GFLOP/s): the larger product then takes little more than a second at most.
const FAST: f64 = 1e3;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Seconds for the samples of one contestant, as far as the fewest samples allow.
    pub seconds: f64,
    pub most: usize,
    pub fewest: usize,
}

impl Patience {
    pub const FULL: Self = Self {
        seconds: 0.7,
        most: 7,
        fewest: 3,
    };
    pub const QUICK: Self = Self {
        seconds: 0.15,
        most: 3,
        fewest: 2,
    };

    fn samples(self, ready: &Ready) -> usize {
        let sample = ready.seconds * ready.iterations as f64;
        let fewest = match sample {
            ..LONG_SECONDS => self.fewest,
            // What takes seconds varies little.
            ..VERY_LONG_SECONDS => self.fewest.min(2),
            _ => 1,
        };
        ((self.seconds / sample) as usize).clamp(fewest, self.most)
    }
}

/// What is known about a contestant in the end.
struct Measured {
    /// Median of the samples (seconds per iteration).
    seconds: f64,
    /// Largest less smallest sample, over the median; `None` of one sample.
    spread: Option<f64>,
    /// Operations of an iteration, where they are counted.
    operations: Option<f64>,
    peak_bytes: Option<u64>,
    /// What the contestant said before the first sample.
    ready: Ready,
}

/// A contestant in the ring.
struct Seat {
    contestant: Contestant,
    peak_bytes: Option<u64>,
    samples: Vec<f64>,
}

/// Measures a case: a row for each peer, all of which can be started, or why there is none.
pub fn run(
    suite: &str,
    case: &Case,
    stage: &mut Stage,
    patience: Patience,
) -> Vec<Result<Row, String>> {
    let mut works = vec![(Library::Ours, &case.ours)];
    works.extend(case.peers.iter().map(|peer| (peer.library, &peer.work)));
    let mut measured = measure(&works, stage, patience).into_iter();
    let ours = measured.next().expect("ours is always measured");
    let rows = case.peers.iter().zip(measured).map(|(peer, theirs)| {
        let ours = ours.as_ref().map_err(|why| format!("ours: {why}"))?;
        let theirs = theirs?;
        agree(case, &peer.work, ours, &theirs)?;
        Ok(Row {
            suite: suite.into(),
            case: case.name.clone(),
            peer: peer.name.clone(),
            measure: peer.measure,
            precision: Some(case.ours.precision()),
            ours_seconds: ours.seconds,
            peer_seconds: theirs.seconds,
            ours_operations: ours.operations,
            peer_operations: theirs.operations,
            ratio: ratio(peer.measure, ours, &theirs)?,
            ours_spread: ours.spread,
            peer_spread: theirs.spread,
            ours_peak_bytes: ours.peak_bytes,
            peer_peak_bytes: theirs.peak_bytes,
            peer_note: theirs.ready.note,
        })
    });
    rows.collect()
}

/// Products of matrices on Burn's device (GFLOP/s): of large ones too, if the device is fast enough for them.
pub fn matmul_peak(stage: &mut Stage, precision: Precision) -> Result<f64, String> {
    let mut of = |size| {
        let product = Work::Matmul(Matmul { size, precision });
        peak(stage, Library::Burn, &product)
    };
    let [small, large] = MATMUL_SIZES;
    let rate = of(small)?;
    Ok(match rate < FAST {
        true => rate,
        // The large product may not fit.
        false => of(large).map_or(rate, |larger| larger.max(rate)),
    })
}

/// The rate in the fastest of some samples (GFLOP/s).
pub fn peak(stage: &mut Stage, library: Library, work: &Work) -> Result<f64, String> {
    let mut contestant = stage.timed(library, work)?;
    let mut fastest = f64::INFINITY;
    for _ in 0..PEAK_SAMPLES {
        fastest = fastest.min(contestant.sample()?);
    }
    stage.end(contestant);
    let operations = work.operations().expect("they are counted");
    Ok(1e-9 * operations / fastest)
}

/// Ours and a peer that computes the same must have the same results.
fn agree(case: &Case, work: &Work, ours: &Measured, theirs: &Measured) -> Result<(), String> {
    let tolerance = work
        .tolerance()
        .filter(|_| work.computes_the_same(&case.ours));
    match tolerance
        .and_then(|of| Digest::disagreement(&ours.ready.results, &theirs.ready.results, of))
    {
        Some(difference) => Err(format!("does not compute what ours does: {difference}")),
        None => Ok(()),
    }
}

/// Over 1 where ours is ahead; of memory, where ours needs more.
fn ratio(measure: Measure, ours: &Measured, theirs: &Measured) -> Result<f64, String> {
    match measure {
        Measure::Time => Ok(theirs.seconds / ours.seconds),
        Measure::Rate => {
            let operations = ours.operations.zip(theirs.operations);
            let (our, their) = operations.ok_or("the operations of such a work are not counted")?;
            Ok((our / ours.seconds) / (their / theirs.seconds))
        }
        Measure::Memory => {
            let bytes = ours.peak_bytes.zip(theirs.peak_bytes);
            let (our, their) = bytes.ok_or("peak memory cannot be measured here")?;
            Ok(our as f64 / their as f64)
        }
    }
}

/// Starts every contestant, then samples them in turns.
fn measure(
    works: &[(Library, &Work)],
    stage: &mut Stage,
    patience: Patience,
) -> Vec<Result<Measured, String>> {
    let mut seats: Vec<Result<Seat, String>> = Vec::new();
    for &(library, work) in works {
        seats.push(match seats.first() {
            // Without ours there is no ratio, so the others need not start.
            Some(Err(_)) => Err("ours failed".into()),
            _ => Seat::take(stage, library, work),
        });
    }
    for round in 0..patience.most {
        for seat in &mut seats {
            if let Ok(taken) = seat
                && let Err(why) = taken.sample(round, patience)
            {
                *seat = Err(why);
            }
        }
    }
    let measured = seats.into_iter().zip(works).map(|(seat, (_, work))| {
        let seat = seat?;
        let ready = stage.end(seat.contestant);
        Ok(Measured::new(work, seat.samples, seat.peak_bytes, ready))
    });
    measured.collect()
}

impl Seat {
    /// Memory first, so that the process that measures it is gone when the other one is timed.
    fn take(stage: &mut Stage, library: Library, work: &Work) -> Result<Self, String> {
        let peak_bytes = match work {
            // The memory of a continuation is that of weights and cache, and one more takes seconds to minutes.
            Work::Decoding(_) | Work::Pretrained(_) => None,
            _ => stage.peak(library, work)?,
        };
        Ok(Self {
            contestant: stage.timed(library, work)?,
            peak_bytes,
            samples: Vec::new(),
        })
    }

    /// One sample, if this contestant still has one to give.
    fn sample(&mut self, round: usize, patience: Patience) -> Result<(), String> {
        if round < patience.samples(&self.contestant.ready) {
            thread::sleep(PAUSE);
            self.samples.push(self.contestant.sample()?);
        }
        Ok(())
    }
}

impl Measured {
    fn new(work: &Work, mut samples: Vec<f64>, peak_bytes: Option<u64>, ready: Ready) -> Self {
        samples.sort_by(f64::total_cmp);
        let (low, high) = ((samples.len() - 1) / 2, samples.len() / 2);
        let seconds = (samples[low] + samples[high]) / 2.0;
        Self {
            seconds,
            spread: (samples.len() > 1)
                .then(|| (samples[samples.len() - 1] - samples[0]) / seconds),
            operations: work.operations(),
            peak_bytes,
            ready,
        }
    }
}

#[cfg(test)]
mod tests;
