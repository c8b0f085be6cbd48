//! What is measured, as plain data: it travels to the contestants' processes as JSON.

use serde::{Deserialize, Serialize};

use crate::work::Work;

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// burn-attn.
    Ours,
    /// The attention operation in `burn::tensor::module`.
    Burn,
    /// The modules of `burn-nn`, or what they compute between their projections.
    BurnNn,
    /// CPU flash attention of `candle-nn`.
    Candle,
    /// PyTorch, in a Python process.
    Pytorch,
    /// The same with transformers' plain attention, which is not what it chooses by itself.
    PytorchEager,
    /// PyTorch through `torch.compile`.
    PytorchCompile,
    /// PyTorch on a CUDA device, by the implementation of its choice.
    PytorchCuda,
    /// There, by FlashAttention.
    PytorchFlash,
    /// There, by the memory-efficient implementation.
    PytorchEfficient,
    /// There, by cuDNN's.
    PytorchCudnn,
}

impl Library {
    /// As in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Burn => "burn",
            Self::BurnNn => "burn-nn",
            Self::Candle => "candle",
            Self::Pytorch => "pytorch",
            Self::PytorchEager => "pytorch eager",
            Self::PytorchCompile => "pytorch compile",
            Self::PytorchCuda => "pytorch cuda",
            Self::PytorchFlash => "pytorch flash",
            Self::PytorchEfficient => "pytorch efficient",
            Self::PytorchCudnn => "pytorch cudnn",
        }
    }

    /// Whether it runs in a Python process.
    pub fn is_python(self) -> bool {
        let on_processor = matches!(
            self,
            Self::Pytorch | Self::PytorchEager | Self::PytorchCompile
        );
        on_processor || self.needs_card()
    }

    /// Whether it needs a CUDA device.
    pub fn needs_card(self) -> bool {
        matches!(
            self,
            Self::PytorchCuda | Self::PytorchFlash | Self::PytorchEfficient | Self::PytorchCudnn
        )
    }
}

/// One contestant: who does what, and what we want to know about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Who.
    pub library: Library,
    /// What.
    pub work: Work,
    /// What for.
    pub goal: Goal,
}

/// What a contestant is asked for: each in a process of its own, because an allocator that is tuned to give back memory
/// at once shows the true peak, but is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Extra peak memory of one iteration: of the process, or of the device's pools where it has some.
    Memory,
    /// Seconds.
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
    /// As in the tables.
    pub name: String,
    /// Who.
    pub library: Library,
    /// What it does: usually the same as ours.
    pub work: Work,
    /// What the row's ratio means.
    pub measure: Measure,
}

/// One of our works and the peers it is measured against, interleaved.
#[derive(Clone, Debug)]
pub struct Case {
    /// As in the tables.
    pub name: String,
    /// What ours does.
    pub ours: Work,
    /// Against whom.
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
        self.peers.extend(libraries.iter().map(|&library| Peer {
            name: library.name().into(),
            library,
            work: self.ours.clone(),
            measure: Measure::Time,
        }));
        self
    }

    /// Adds ourselves doing something else: what does the difference cost?
    pub fn against_self(mut self, name: &str, work: Work) -> Self {
        self.peers.push(Peer {
            name: format!("self:{name}"),
            library: Library::Ours,
            work,
            measure: Measure::Time,
        });
        self
    }

    /// Adds any peer.
    pub fn against_peer(mut self, peer: Peer) -> Self {
        self.peers.push(peer);
        self
    }

    /// Leaves the case out of `--quick`.
    pub fn thorough(mut self) -> Self {
        self.quick = false;
        self
    }
}
