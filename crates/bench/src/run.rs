//! A whole run, as it is written to JSON and read back for the report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::case::Measure;
use crate::machine::{Machine, Versions};
use crate::work::Precision;

/// Where, with what and what came out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub machine: Machine,
    pub versions: Versions,
    /// When it ended, `2026-11-22T14:03:55Z` (UTC); earlier runs name the day alone.
    pub date: String,
    pub command: String,
    /// Whether it was only a look: fewer cases, fewer samples.
    pub quick: bool,
    pub threads: usize,
    /// Burn's default device, and the name of its card, if it is one.
    pub device: String,
    /// f32 multiply-adds of all threads, two operations each (GFLOP/s), at the fastest moment of the run; `None` where it
    /// could not be measured, and on a GPU.
    pub fma_peak: Option<f64>,
    /// Products of two square matrices on Burn's device, where that is a GPU (GFLOP/s).
    #[serde(default)]
    pub matmul_peaks: BTreeMap<Precision, f64>,
    /// What was measured, in the order of the suites.
    pub rows: Vec<Row>,
    /// What was not, and why.
    pub missing: Vec<Missing>,
}

impl Run {
    /// Whether Burn's device was the processor: of those that the bench is built with, flex is the only one.
    pub fn on_processor(&self) -> bool {
        self.device.starts_with("Flex")
    }

    /// What the rates of a row are shares of (GFLOP/s): what the run's device does at most.
    pub fn peak(&self, row: &Row) -> Option<f64> {
        match self.on_processor() {
            true => self.fma_peak,
            false => self.matmul_peaks.get(&row.precision?).copied(),
        }
    }
}

/// Ours against one peer in one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub suite: String,
    pub case: String,
    pub peer: String,
    pub measure: Measure,
    /// The precision of our tensors; earlier runs lack it.
    #[serde(default)]
    pub precision: Option<Precision>,
    /// Our median seconds per iteration.
    pub ours_seconds: f64,
    pub peer_seconds: f64,
    /// Operations of our matrix products in an iteration, if they are counted.
    pub ours_operations: Option<f64>,
    pub peer_operations: Option<f64>,
    /// Over 1 where ours is ahead; of memory, where ours needs more.
    pub ratio: f64,
    /// Largest less smallest of our samples, over the median; none of a single one.
    pub ours_spread: Option<f64>,
    pub peer_spread: Option<f64>,
    /// Extra peak memory of our first iteration.
    pub ours_peak_bytes: Option<u64>,
    pub peer_peak_bytes: Option<u64>,
    /// What the peer says of how it computes, where that is not its fastest.
    pub peer_note: Option<String>,
}

/// A peer without numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Missing {
    pub suite: String,
    pub case: String,
    pub peer: String,
    pub why: String,
}
