//! What is measured, as plain data: it travels to the contestants' processes as JSON.

use serde::{Deserialize, Serialize};

use crate::text::name;
use crate::work::Work;

/// Who does the work: first the libraries in Rust, then those of a Python process, last those that need a CUDA device. The tables and the
/// contestants have the same names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    Ours,
    /// The attention operation in `burn::tensor::module`.
    Burn,
    /// The modules of `burn-nn`, or what they compute between their projections.
    BurnNn,
    /// CPU flash attention of `candle-nn`.
    Candle,
    /// PyTorch, in a Python process.
    Pytorch,
    /// PyTorch with transformers' plain attention, which transformers does not choose by itself.
    #[serde(rename = "pytorch eager")]
    PytorchEager,
    /// PyTorch through `torch.compile`.
    #[serde(rename = "pytorch compile")]
    PytorchCompile,
    /// PyTorch on a CUDA device, by the implementation of its choice.
    #[serde(rename = "pytorch cuda")]
    PytorchCuda,
    /// PyTorch on a CUDA device, by FlashAttention.
    #[serde(rename = "pytorch flash")]
    PytorchFlash,
    /// PyTorch on a CUDA device, by the memory-efficient implementation.
    #[serde(rename = "pytorch efficient")]
    PytorchEfficient,
    /// PyTorch on a CUDA device, by cuDNN.
    #[serde(rename = "pytorch cudnn")]
    PytorchCudnn,
}

impl Library {
    pub fn is_python(self) -> bool {
        self >= Self::Pytorch
    }

    pub fn needs_card(self) -> bool {
        self >= Self::PytorchCuda
    }
}

/// One contestant: who does what, and what we want to know about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub library: Library,
    pub work: Work,
    pub goal: Goal,
}

/// What a contestant is asked for: each in a separate process, because an allocator that is tuned to give back memory
/// at once shows the true peak, but is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Extra peak memory of one iteration: of the process, or of the device's pools where it has some.
    Memory,
    /// Seconds per iteration.
    Time,
}

/// What the ratio of a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The peer's seconds over ours.
    Time,
    /// Our operations per second over the peer's, for two works of different size.
    Rate,
    /// Our extra peak memory over the peer's.
    Memory,
}

/// Whom ours is compared with in a case.
#[derive(Clone, Debug)]
pub struct Peer {
    pub name: String,
    pub library: Library,
    /// What it does: usually the same as ours.
    pub work: Work,
    /// What the row's ratio means.
    pub measure: Measure,
}

/// One of our works and the peers it is measured against, interleaved.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub ours: Work,
    pub peers: Vec<Peer>,
    /// Whether `--quick` runs it too.
    pub quick: bool,
}

impl Case {
    /// A case without peers that every run measures.
    pub fn new(name: impl Into<String>, ours: Work) -> Self {
        Self {
            name: name.into(),
            ours,
            peers: Vec::new(),
            quick: true,
        }
    }

    /// Adds other libraries that do the same.
    pub fn against(mut self, libraries: &[Library]) -> Self {
        for &library in libraries {
            let work = self.ours.clone();
            self = self.against_peer(&name(library), library, work, Measure::Time);
        }
        self
    }

    /// Adds ourselves doing something else: what does the difference cost?
    pub fn against_self(self, name: &str, work: Work) -> Self {
        self.against_peer(&format!("self:{name}"), Library::Ours, work, Measure::Time)
    }

    pub fn against_peer(
        mut self,
        name: &str,
        library: Library,
        work: Work,
        measure: Measure,
    ) -> Self {
        self.peers.push(Peer {
            name: name.into(),
            library,
            work,
            measure,
        });
        self
    }

    /// Leaves the case out of `--quick`.
    pub fn thorough(mut self) -> Self {
        self.quick = false;
        self
    }
}
