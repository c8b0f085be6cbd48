//! The position encoding of an attention module: one of three kinds, or none.

use burn::{
    config::Config,
    module::{Module, ParamId},
    tensor::{Device, Tensor},
};
use burn_attn_ops::{AttentionBias, RelativeBuckets};
use serde::{Deserialize, Serialize};

use super::{
    Alibi, AlibiConfig, Positions, RelativeBias, RelativeBiasConfig, ResolvedOffset, Rotary,
    RotaryConfig,
};
use crate::error::ConfigError;

/// Configuration of the position encoding in the heads of an attention module.
///
/// ```
/// use burn_attn::positions::{PositionEncoding, RotaryConfig};
///
/// let encoding = PositionEncoding::rotary();
/// let encoding = PositionEncoding::Rotary(RotaryConfig::new().with_base(500_000.0).with_max_len(8192));
/// ```
///
/// [`QueryOffset`](super::QueryOffset) says where queries stand if queries and keys differ in number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PositionEncoding {
    /// None: positions were added to the embeddings, or order does not matter.
    #[default]
    None,
    /// Queries and keys are rotated: [`Rotary`].
    Rotary(RotaryConfig),
    /// Distant keys get lower scores: [`Alibi`].
    Alibi(AlibiConfig),
    /// A learned bias per distance: [`RelativeBias`].
    Relative(RelativeBiasConfig),
}

impl Config for PositionEncoding {}

impl PositionEncoding {
    /// [`Rotary`] with the paper's angles, and pairs in halves as in most published models.
    pub fn rotary() -> Self {
        Self::Rotary(RotaryConfig::new())
    }

    /// [`Alibi`] with the paper's fixed slopes.
    pub fn alibi() -> Self {
        Self::Alibi(AlibiConfig::new())
    }

    /// [`RelativeBias`] with T5's sizes: of one direction in a causal module, as in its decoder, otherwise of both, as in its encoder.
    pub fn relative() -> Self {
        Self::Relative(RelativeBiasConfig::new())
    }

    /// This configuration with its direction filled in, if it is left open.
    pub(crate) fn directed(mut self, causal: bool) -> Self {
        if let Self::Relative(relative) = &mut self {
            relative.bidirectional.get_or_insert(!causal);
        }
        self
    }

    /// Whether a module can be built for `n_heads` query heads of width `d_head`. `config` is the configuration that has this one as its
    /// field `position`. The error names both configurations, and the fields and values that are wrong.
    pub fn validate(
        &self,
        config: &'static str,
        n_heads: usize,
        d_head: usize,
    ) -> Result<(), ConfigError> {
        match self {
            Self::None => Ok(()),
            Self::Rotary(rotary) => rotary.validate(d_head),
            Self::Alibi(alibi) => alibi.validate(n_heads),
            Self::Relative(relative) => relative.validate(n_heads),
        }
        .map_err(|error| ConfigError::new(config, format!("position: {error}")))
    }

    /// Builds the module for `n_heads` query heads of width `d_head`, or panics with the sentence of the `validate` of the chosen
    /// configuration.
    pub fn init(&self, n_heads: usize, d_head: usize, device: &Device) -> Position {
        let mut position = Position::default();
        match self {
            Self::None => {}
            Self::Rotary(rotary) => position.rotary = Some(rotary.init(d_head, device)),
            Self::Alibi(alibi) => position.alibi = Some(alibi.init(n_heads, device)),
            Self::Relative(relative) => position.relative = Some(relative.init(n_heads, device)),
        }
        position
    }
}

/// The position encoding of an attention module, built by [`PositionEncoding::init`]: at most one of the fields is present.
///
/// It is a struct, not an enum, so that the names of its parameters in a file are `relative.table` and `alibi.slopes`.
///
/// # Source
///
/// [`Rotary`], [`Alibi`] and [`RelativeBias`] name their sources.
#[derive(Module, Debug, Default)]
pub struct Position {
    /// Rotates queries and keys.
    pub rotary: Option<Rotary>,
    /// Adds a bias to the scores.
    pub alibi: Option<Alibi>,
    /// Adds a bias to the scores.
    pub relative: Option<RelativeBias>,
}

/// Tells apart what biases are computed from, without reading numbers from a device: a learned parameter by its ID, whatever its values.
pub(crate) type BiasSource = (Option<ParamId>, Option<RelativeBuckets>);

impl Position {
    /// Queries or keys, `[batch, heads, len, d_head]`, rotated to their positions as by [`Rotary::forward`], or unchanged if the encoding is
    /// not rotary.
    pub fn rotate(&self, x: Tensor<4>, positions: &Positions) -> Tensor<4> {
        match &self.rotary {
            Some(rotary) => rotary.forward(x, positions),
            None => x,
        }
    }

    /// Panics, in the name of `module`, unless every token of a cache of `max_len` tokens has a position.
    pub(crate) fn check_max_len(&self, module: &str, max_len: usize) {
        let positions = self.rotary.as_ref().map_or(usize::MAX, Rotary::max_len);
        assert!(
            max_len <= positions,
            "{module}: a cache of max_len {max_len} is longer than the {positions} positions of the rotary table"
        );
    }

    /// [`rotate`](Self::rotate) of queries from `offset` on.
    pub(crate) fn rotate_from(&self, x: Tensor<4>, offset: &ResolvedOffset) -> Tensor<4> {
        match &self.rotary {
            Some(rotary) => rotary.forward_from(x, offset),
            None => x,
        }
    }

    /// The bias on the scores: none, if the encoding is rotary or absent.
    pub fn bias(&self) -> AttentionBias {
        let alibi = self.alibi.as_ref().map(Alibi::bias);
        let bias = alibi.or_else(|| self.relative.as_ref().map(RelativeBias::bias));
        bias.unwrap_or_default()
    }

    /// What the [`bias`](Self::bias) is computed from.
    pub(crate) fn bias_source(&self) -> Option<BiasSource> {
        let of_alibi = |alibi: &Alibi| (alibi.slopes.as_ref().map(|slopes| slopes.id), None);
        let of_relative = |bias: &RelativeBias| (Some(bias.table.id), Some(bias.buckets));
        let relative = self.relative.as_ref().map(of_relative);
        self.alibi.as_ref().map(of_alibi).or(relative)
    }
}
