//! A mask function as a part of a mask.

use crate::{AttentionMask, MaskFunction};

impl AttentionMask {
    /// A query sees a key where the function says so.
    pub fn function(function: MaskFunction) -> Self {
        Self {
            functions: vec![function],
            ..Self::default()
        }
    }
}
