//! Which layers of a stack differ, and which are the same.

use burn::config::Config;
use serde::{Deserialize, Serialize};

use super::BlockConfig;
use crate::error::ConfigError;

/// Which layers of a stack differ from each other, and which share their weights.
///
/// ```
/// use burn_attn::{BlockConfig, CausalTransformerConfig, LayerPattern, positions::PositionEncoding};
///
/// // Layers that look back a little alternate with layers that look back all the way and know no positions.
/// let block = BlockConfig::new();
/// let near = block.clone().with_window(Some(127)).with_position(PositionEncoding::rotary());
/// let config = CausalTransformerConfig::new(32, 64, 4, 6).with_pattern(LayerPattern::Cycle(vec![near, block]));
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LayerPattern {
    /// Every layer is built as the `block` of the configuration, with weights of its own.
    #[default]
    Alike,
    /// Layer `i` is built as block `i mod n` of these `n`: windows or rotary bases that alternate (Gemma 3, arXiv:2503.19786; gpt-oss,
    /// arXiv:2508.10925), layers without positions, layers with experts and without. The last norm is that of the last layer's block.
    Cycle(Vec<BlockConfig>),
    /// So many layers have weights of their own, and each of them is used for as many layers in a row as the others, or one more: ALBERT
    /// (arXiv:1909.11942) has 1.
    Shared(usize),
}

impl Config for LayerPattern {}

impl LayerPattern {
    /// Whether a stack of `n_layers` layers can have it.
    pub(super) fn validate(
        &self,
        config: &'static str,
        n_layers: usize,
    ) -> Result<(), ConfigError> {
        let reason = match self {
            Self::Cycle(blocks) if blocks.is_empty() => {
                "pattern Cycle needs at least one block".to_owned()
            }
            Self::Shared(groups) if !(1..=n_layers).contains(groups) => {
                format!("pattern Shared needs 1 to {n_layers} layers with weights, got {groups}")
            }
            _ => return Ok(()),
        };
        Err(ConfigError::Invalid { config, reason })
    }

    /// The blocks of the layers that have weights of their own.
    pub(super) fn blocks<'a>(
        &'a self,
        block: &'a BlockConfig,
        n_layers: usize,
    ) -> Vec<&'a BlockConfig> {
        match self {
            Self::Alike => vec![block; n_layers],
            Self::Cycle(blocks) => blocks.iter().cycle().take(n_layers).collect(),
            Self::Shared(groups) => vec![block; *groups],
        }
    }

    /// Which of those layers is layer `index` of `n_layers`.
    pub(super) fn layer(&self, index: usize, n_layers: usize) -> usize {
        match self {
            Self::Alike | Self::Cycle(_) => index,
            Self::Shared(groups) => index * groups / n_layers,
        }
    }
}
