//! How CLIP and SigLIP differ.

use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement};
use serde::{Deserialize, Serialize};

/// The families, which embed and pool in different ways: see [the formulas](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClipFamily {
    /// `clip`.
    Clip,
    /// `siglip`.
    Siglip,
}

impl ClipFamily {
    /// The block of the papers' layers, without dropout: pre-norm, with QuickGELU and an epsilon of 1e-5 (CLIP) or with GELU's tanh approximation and
    /// an epsilon of 1e-6 (SigLIP).
    pub fn block(self) -> BlockConfig {
        let activation = match self {
            Self::Clip => FeedForwardActivation::QuickGelu,
            Self::Siglip => FeedForwardActivation::GeluTanh,
        };
        BlockConfig::new()
            .with_norm(NormConfig::layer_norm().with_epsilon(self.epsilon()))
            .with_norm_placement(NormPlacement::Pre)
            .with_activation(activation)
            .with_dropout(0.0)
    }

    pub(super) fn epsilon(self) -> f64 {
        match self {
            Self::Clip => 1e-5,
            Self::Siglip => 1e-6,
        }
    }
}
