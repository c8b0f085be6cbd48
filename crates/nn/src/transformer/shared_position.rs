//! Position encodings that the layers of a stack have in common.

use burn::tensor::Device;

use super::TransformerLayerConfig;
use crate::positions::{Position, PositionEncoding};

/// A position encoding that all layers with the same one share: a rotary table, which is the same in all of them anyhow, and T5's learned
/// one, of which a stack has one.
#[derive(PartialEq)]
pub(super) struct SharedPosition {
    encoding: PositionEncoding,
    n_heads: usize,
    d_head: usize,
}

impl SharedPosition {
    pub(super) fn of(layer: &TransformerLayerConfig) -> Option<Self> {
        let heads = layer.heads();
        match heads.position {
            PositionEncoding::Rotary(_) | PositionEncoding::Relative(_) => Some(Self {
                encoding: heads.position,
                n_heads: layer.n_heads,
                d_head: heads.d_head.unwrap_or(layer.d_model / layer.n_heads),
            }),
            PositionEncoding::None | PositionEncoding::Alibi(_) => None,
        }
    }

    pub(super) fn init(&self, device: &Device) -> Position {
        self.encoding.init(self.n_heads, self.d_head, device)
    }
}
