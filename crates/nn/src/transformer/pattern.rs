//! Which layers of a stack differ, and which share their weights.

use burn::config::Config;
use serde::{Deserialize, Serialize};

use super::BlockConfig;
use crate::error::ConfigError;

/// Which layers of a stack differ from each other, and which share their weights.
///
/// ```
/// use burn_attn::{BlockConfig, LayerPattern, TransformerStackConfig, positions::PositionEncoding};
///
/// // Layers with a window and rotary positions alternate with layers that see everything and have no positions.
/// let block = BlockConfig::new();
/// let near = block.clone().with_window(127).with_position(PositionEncoding::rotary());
/// let config = TransformerStackConfig::causal(32, 64, 4, 6).with_pattern(LayerPattern::Cycle(vec![near, block]));
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LayerPattern {
    /// Every layer is built like the `block` of the configuration, and no two layers share weights.
    #[default]
    Uniform,
    /// Layer `i` is built like block `i mod n` of these `n`, which are no more than the layers: alternating windows or rotary bases (Gemma 3, arXiv:2503.19786;
    /// gpt-oss, arXiv:2508.10925), layers without positions, layers with and without experts. The final norm is that of the
    /// last layer's block.
    Cycle(Vec<BlockConfig>),
    /// Only this many layers have weights. Each of them runs for consecutive layers of the stack, all equally often or some once
    /// more. ALBERT (arXiv:1909.11942) has 1.
    Shared(usize),
}

impl Config for LayerPattern {}

impl LayerPattern {
    pub(super) fn validate(
        &self,
        config: &'static str,
        n_layers: usize,
    ) -> Result<(), ConfigError> {
        let reason = match self {
            Self::Cycle(blocks) if blocks.is_empty() => {
                "pattern Cycle needs at least one block".to_owned()
            }
            Self::Cycle(blocks) if blocks.len() > n_layers => {
                let blocks = blocks.len();
                format!("pattern Cycle has {blocks} blocks for {n_layers} layers")
            }
            Self::Shared(groups) if !(1..=n_layers).contains(groups) => {
                format!("pattern Shared needs 1 to {n_layers} layers with weights, got {groups}")
            }
            _ => return Ok(()),
        };
        Err(ConfigError::new(config, reason))
    }

    /// The blocks that layers are built like, each once.
    pub(super) fn different<'a>(&'a self, block: &'a BlockConfig) -> &'a [BlockConfig] {
        match self {
            Self::Cycle(blocks) => blocks,
            Self::Uniform | Self::Shared(_) => core::slice::from_ref(block),
        }
    }

    /// The blocks of the layers with weights.
    pub(super) fn blocks<'a>(
        &'a self,
        block: &'a BlockConfig,
        n_layers: usize,
    ) -> Vec<&'a BlockConfig> {
        match self {
            Self::Uniform => vec![block; n_layers],
            Self::Cycle(blocks) => blocks.iter().cycle().take(n_layers).collect(),
            Self::Shared(groups) => vec![block; *groups],
        }
    }

    /// The index of the layer with weights that runs as layer `index` of `n_layers`.
    pub(super) fn layer(&self, index: usize, n_layers: usize) -> usize {
        match self {
            Self::Uniform | Self::Cycle(_) => index,
            Self::Shared(groups) => index * groups / n_layers,
        }
    }
}
