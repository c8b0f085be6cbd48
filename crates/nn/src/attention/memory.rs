//! What cross-attention looks at: an encoder's states, or the keys and values made of them.

use burn::tensor::{Device, Int, Tensor};

/// What [`CrossAttention`](crate::CrossAttention) looks at: an encoder's states, or what it has already made of them.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "handles of tensors, moved once per call; a box would be one more allocation"
)]
pub enum CrossMemory {
    /// `[batch, len_kv, d_memory]`
    States(Tensor<3>),
    /// Made by [`CrossAttention::project_memory`](crate::CrossAttention::project_memory).
    Projected(ProjectedMemory),
}

/// Keys and values of a memory, projected once for all tokens to come.
#[derive(Clone, Debug)]
pub struct ProjectedMemory {
    /// `[batch, n_kv_heads, len_kv, d_head]`
    pub(super) key: Tensor<4>,
    /// `[batch, n_kv_heads, len_kv, d_value_head]`
    pub(super) value: Tensor<4>,
}

impl ProjectedMemory {
    pub(crate) fn device(&self) -> Device {
        self.key.device()
    }

    /// The memory of the batch items `items`, in this order, repeated where named twice.
    ///
    /// # Shapes
    ///
    /// `items`: `[batch of the result]`.
    pub fn select(&self, items: Tensor<1, Int>) -> Self {
        Self {
            key: self.key.clone().select(0, items.clone()),
            value: self.value.clone().select(0, items),
        }
    }
}

impl From<Tensor<3>> for CrossMemory {
    fn from(states: Tensor<3>) -> Self {
        Self::States(states)
    }
}

impl From<ProjectedMemory> for CrossMemory {
    fn from(memory: ProjectedMemory) -> Self {
        Self::Projected(memory)
    }
}
