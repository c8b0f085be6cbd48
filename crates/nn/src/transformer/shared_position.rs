//! Position encodings shared by the layers of a stack.

use burn::tensor::Device;

use super::TransformerLayerConfig;
use crate::positions::{Position, PositionEncoding};

/// A position encoding shared by all layers that are configured alike: a rotary table, which would be equal in each layer, or
/// T5's learned bias, of which a stack has only one.
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
